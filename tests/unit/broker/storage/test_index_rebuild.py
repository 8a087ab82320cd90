"""Indexes made again hold what a broker writes as it goes, and nothing of what was there before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.indexes import (
    INDEX_INTERVAL_BYTES,
    NO_TIMESTAMP,
    OffsetIndex,
    TimeIndex,
    rebuild_indexes,
)
from tests.support.logs import NOW_MS, append

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def fresh_indexes(directory: Path) -> tuple[OffsetIndex, TimeIndex]:
    return (
        OffsetIndex(Disk(), str(directory / "again.index"), 0),
        TimeIndex(Disk(), str(directory / "again.timeindex"), 0),
    )


def test_rebuilt_indexes_are_those_that_the_broker_wrote(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(index_interval_bytes=INDEX_INTERVAL_BYTES)
    for number in range(100):
        append(log, b"x" * 500, timestamp_ms=NOW_MS + number)
    log.roll()
    segment = log.segments.first
    offset_index, time_index = fresh_indexes(tmp_path)
    rebuild_indexes(0, segment.headers(), offset_index, time_index)
    assert offset_index.entry_count == segment.offset_index.entry_count > 5
    assert time_index.entry_count == segment.time_index.entry_count
    for offset in range(100):
        assert offset_index.lookup(offset) == segment.offset_index.lookup(offset)
    assert time_index.last_entry() == (NOW_MS + 99, 99)


def test_an_old_index_is_replaced(tmp_path: Path) -> None:
    offset_index, time_index = fresh_indexes(tmp_path)
    offset_index.append(5, 500)
    time_index.append(NOW_MS, 5)
    rebuild_indexes(0, [], offset_index, time_index)
    assert (offset_index.entry_count, time_index.entry_count) == (0, 0)
    assert time_index.last_entry()[0] == NO_TIMESTAMP
    assert {path.name for path in tmp_path.iterdir()} == {"again.index", "again.timeindex"}
