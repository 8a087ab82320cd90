"""The producers of a log, read from its directory on any thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.producers import ProducersLoad
from tests.support.logs import NOW_MS, append, flush

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def loading(log: PartitionLog, *, end_offset: int | None = None) -> ProducersLoad:
    return ProducersLoad(
        log.files,
        log.name,
        log.directory,
        log.segments,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset if end_offset is None else end_offset,
        now_ms=NOW_MS,
        expiration_ms=1 << 40,
        on_loaded=lambda _load: None,
    )


@pytest.fixture
def log(new_log: NewLog) -> PartitionLog:
    """Twelve batches of producer 3 in three segments."""
    made = new_log()
    for sequence in range(12):
        if sequence in {4, 8}:
            made.roll()
        append(made, b"v", producer_id=3, producer_epoch=0, sequence=sequence)
    flush(made)
    return made


def test_the_producers_are_those_at_the_offset(log: PartitionLog) -> None:
    assert loading(log).producers()[3].last_sequence == 11
    assert loading(log, end_offset=6).producers()[3].last_sequence == 5


def test_a_snapshot_that_is_damaged_is_left_where_it_is(log: PartitionLog) -> None:
    path = f"{log.directory}/{8:020d}.snapshot"
    REAL_FILES.write_atomically(path, b"\0\1damaged")
    assert loading(log).producers()[3].last_sequence == 11
    assert Path(path).exists()


def test_a_segment_that_retention_took_is_passed_by(log: PartitionLog) -> None:
    load = loading(log)
    log.advance_log_start(8)
    log.remove_segments(list(log.segments)[:2])
    assert load.producers()[3].last_sequence == 11


def test_no_file_is_changed(log: PartitionLog) -> None:
    """Indexes that are damaged are left to who owns the segments."""
    for path in Path(log.directory).glob("*.index"):
        path.write_bytes(b"odd")
    before = {path: path.read_bytes() for path in Path(log.directory).iterdir()}
    for path in Path(log.directory).glob("*.snapshot"):
        before[path] = b""
        path.write_bytes(b"")
    assert loading(log).producers()[3].last_sequence == 11
    assert {path: path.read_bytes() for path in Path(log.directory).iterdir()} == before


def test_after_a_failure_it_is_tried_again(log: PartitionLog) -> None:
    load = loading(log)
    hidden = f"{log.directory}-hidden"
    REAL_FILES.replace(log.directory, hidden)
    load()
    assert isinstance(load.failure, FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        load.producers()
    REAL_FILES.replace(hidden, log.directory)
    assert load.producers()[3].last_sequence == 11
    assert load.failure is None
