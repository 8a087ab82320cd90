"""One segment, from its first byte to the end of its service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.storage.disk import Disk
from minibroker.storage.segment import Segment, roll_jitter_ms
from tests.support.logs import NOW_MS, append, config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]


def test_an_empty_segment_ages_by_the_clock(tmp_path: Path) -> None:
    fresh = Segment(Disk(), str(tmp_path), 5, created_ms=1000)
    fresh.begin_empty()
    assert [path.rpartition("/")[2] for path in fresh.paths] == [
        "00000000000000000005.log",
        "00000000000000000005.index",
        "00000000000000000005.timeindex",
    ]
    assert list(tmp_path.iterdir()) == []
    assert (fresh.size_bytes, fresh.max_timestamp, fresh.first_timestamp) == (0, -1, -1)
    assert fresh.age_ms(1700, 5) == 700
    assert fresh.modified_ms == 1000
    assert fresh.read_next_offset() == 5


def test_marking_deleted_renames_what_is_there(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log()
    append(log, b"a")
    log.flush()
    marked = Segment(Disk(), log.directory, 0, created_ms=NOW_MS).mark_deleted()
    assert len(marked) == 3
    assert all(path.endswith(".deleted") for path in marked)
    assert not list((tmp_path / "t/t-0").glob("*.log"))


def test_jitter_stays_below_its_limits() -> None:
    assert roll_jitter_ms(config()) == 0
    settings = config(segment_jitter_ms=1000, segment_ms=10)
    assert {roll_jitter_ms(settings) for _ in range(300)} <= set(range(10))
    assert len({roll_jitter_ms(settings) for _ in range(300)}) > 1
