"""Indexes that are made again on a worker, and put in their place by the loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.open_files import ColdError
from minibroker.broker.storage.segment import Segment
from tests.support.logs import NOW_MS, append, flush

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.open_files import ColdTask
    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


@pytest.fixture
def segment(new_log: NewLog) -> Segment:
    """Thirty batches, and two damaged indexes."""
    log = new_log(index_interval_bytes=300)
    for number in range(30):
        append(log, b"x" * 100, timestamp_ms=NOW_MS + number)
    flush(log)
    found = Segment(Disk(), log.directory, 0, created_ms=NOW_MS)
    for path in found.paths[1:]:
        Path(path).write_bytes(b"odd")
    return found


def cold_task(segment: Segment) -> ColdTask:
    disk = segment._disk
    disk.handles.get(segment.log_path)
    with disk.resident_only(), pytest.raises(ColdError) as caught:
        segment.find_batch(20)
    return caught.value.task


def test_the_next_reader_finds_them(segment: Segment) -> None:
    task = cold_task(segment)
    task()
    assert Path(segment.paths[1]).read_bytes() == b"odd"  # the loop may be at them
    task.apply()
    assert segment.open_sound_indexes()
    assert segment.offset_index.entry_count == 1  # one for each 4 KiB
    assert segment.time_index.last_entry() == (NOW_MS + 29, 29)
    assert [path for path in Path(segment.directory).iterdir() if path.suffix == ".deleted"] == []


def test_loaded_indexes_are_dropped_if_others_were_opened_meanwhile(segment: Segment) -> None:
    task = cold_task(segment)
    task()
    opened = segment.indexes
    content = Path(segment.paths[1]).read_bytes()
    Path(segment.paths[1] + ".deleted").write_bytes(b"older")
    task.apply()
    assert segment.indexes is opened
    assert Path(segment.paths[1]).read_bytes() == content


def test_loaded_indexes_are_dropped_if_the_segment_left_service(segment: Segment) -> None:
    task = cold_task(segment)
    task()
    marked = segment.mark_deleted()
    task.apply()
    assert not any(Path(path).exists() for path in segment.paths)
    assert all(Path(path).exists() for path in marked)


def test_a_log_that_cannot_be_read_is_left_to_its_reader(segment: Segment) -> None:
    task = cold_task(segment)
    Path(segment.log_path).write_bytes(b"\xff" * segment.size_bytes)
    task()
    task.apply()
    assert Path(segment.paths[1]).read_bytes() == b"odd"
