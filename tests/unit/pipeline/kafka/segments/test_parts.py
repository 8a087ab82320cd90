"""Parts of segments: wherever a segment is cut, each batch is in one part."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import names
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.segments.file import SegmentFile
from minibroker.pipeline.kafka.segments.layout import SegmentTask, find_partitions, plan_tasks
from minibroker.pipeline.kafka.segments.parts import SegmentPart, border, parts_of
from tests.support.batches import batch

if TYPE_CHECKING:
    from collections.abc import Iterable

BATCHES = 200
INDEXED = 7
"""Every batch of this number has an entry in the index."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a segment of BATCHES batches of two records, with its index, in a directory a-0."""
    directory = tmp_path / "a-0"
    directory.mkdir()
    content, entries = bytearray(), bytearray()
    for number in range(BATCHES):
        if number and number % INDEXED == 0:
            entries += (2 * number + 1).to_bytes(4, "big") + len(content).to_bytes(4, "big")
        content += batch(b"x" * (number % 50), b"y", base_offset=2 * number)
    path = directory / names.segment_file(0, names.LOG)
    path.write_bytes(content)
    path.with_suffix(names.OFFSET_INDEX).write_bytes(entries)
    return path


def whole(log: Path) -> SegmentTask:
    [[task]] = plan_tasks(find_partitions([str(log.parent)]))
    return task


def cut(task: SegmentTask, borders: Iterable[int]) -> list[SegmentTask]:
    edges = [0, *borders, task.end]
    return [task._replace(begin=begin, end=end) for begin, end in itertools.pairwise(edges)]


def parts(tasks: Iterable[SegmentTask], *, committed: bool = True) -> list[SegmentPart]:
    return [
        part
        for task in tasks
        for part in parts_of([task], tell_aborted=committed, leave_out_open=committed)
    ]


def offsets(segment_parts: Iterable[SegmentPart]) -> list[int]:
    return [
        stored.header.base_offset
        for part in segment_parts
        for stored in SegmentFile(part.task.path, begin=part.begin, end=part.end).batches()
    ]


@pytest.mark.parametrize("step", [61, 400, 5_000])
def test_each_batch_is_in_one_part_wherever_it_is_cut(log: Path, step: int) -> None:
    task = whole(log)
    pieces = parts(cut(task, range(step, task.end, step)))
    assert offsets(pieces) == list(range(0, 2 * BATCHES, 2))
    assert 1 < len(pieces) <= BATCHES // INDEXED + 1


def test_a_border_is_the_next_batch_that_the_index_tells_of(log: Path) -> None:
    segment = whole(log).segment
    index_content = log.with_suffix(names.OFFSET_INDEX).read_bytes()
    positions = [
        int.from_bytes(index_content[at + 4 : at + 8], "big")
        for at in range(0, len(index_content), 8)
    ]
    assert border(segment, 1) == positions[0]
    assert border(segment, positions[3]) == positions[3]
    assert border(segment, positions[3] + 1) == positions[4]
    assert border(segment, positions[-1] + 1) == segment.size_bytes
    assert border(segment, 0) == 0


def test_room_that_kafka_keeps_in_an_index_is_no_entry(log: Path) -> None:
    segment = whole(log).segment
    borders = [border(segment, at) for at in range(0, segment.size_bytes, 4_000)]
    index = log.with_suffix(names.OFFSET_INDEX)
    os.truncate(index, 10 << 20)
    assert [border(segment, at) for at in range(0, segment.size_bytes, 4_000)] == borders


def test_wrong_entries_are_passed_by(log: Path) -> None:
    segment = whole(log).segment
    index = log.with_suffix(names.OFFSET_INDEX)
    content = bytearray(index.read_bytes())
    second = int.from_bytes(content[12:16], "big")
    content[4:8] = (int.from_bytes(content[4:8], "big") + 3).to_bytes(4, "big")
    index.write_bytes(content)
    assert border(segment, 1) == second


def test_a_segment_without_an_index_stays_in_one_part(log: Path) -> None:
    log.with_suffix(names.OFFSET_INDEX).unlink()
    task = whole(log)
    pieces = parts(cut(task, [1_000, 5_000]))
    assert [(part.begin, part.end) for part in pieces] == [(0, task.end)]


def test_a_segment_that_was_replaced_is_an_error_where_it_is_cut(log: Path) -> None:
    task = whole(log)
    other = log.with_suffix(".other")
    other.write_bytes(log.read_bytes())
    other.replace(log)
    assert len(parts([task])) == 1
    with pytest.raises(PipelineError, match=r"0\.log was replaced or cut while it was read"):
        parts(cut(task, [5_000]))


def test_appends_after_the_plan_are_not_read(log: Path) -> None:
    task = whole(log)
    with log.open("ab") as file:
        file.write(batch(b"late", base_offset=2 * BATCHES))
    for borders in ([], [5_000]):
        assert offsets(parts(cut(task, borders))) == list(range(0, 2 * BATCHES, 2))


@pytest.mark.parametrize("committed", [True, False])
def test_nothing_is_read_behind_a_torn_chain(log: Path, *, committed: bool) -> None:
    task = whole(log)
    content = bytearray(log.read_bytes())
    torn = border(task.segment, 5_000)
    content[torn : torn + 100] = bytes(100)
    log.write_bytes(content)
    pieces = parts(cut(whole(log), [2_000, torn + 1, 9_000]), committed=committed)
    sound = [part for part in pieces if part.begin < torn]
    assert pieces == sound
    assert all(part.sound_bytes == torn for part in pieces)
    [*_, last] = pieces
    file = SegmentFile(last.task.path, begin=last.begin, end=last.end)
    assert all(stored.position < torn for stored in file.batches())
    assert file.defect is not None
    assert last.is_tail(file.defect)
    assert last.lost_bytes(file.defect) == task.end - torn
