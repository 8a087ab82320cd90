"""Truncation of a log, its start offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]

ONE = batch(b"x" * 100)
SIZE = len(ONE)


def bases(log: PartitionLog) -> list[int]:
    return log.segments.base_offsets


@pytest.mark.parametrize("offset", range(8))
def test_truncation_keeps_what_is_below(new_log: NewLog, offset: int) -> None:
    log = new_log(segment_bytes=3 * SIZE, index_interval_bytes=0)
    for number in range(8):
        append(log, b"%d" % number * 100, leader_epoch=number // 4, timestamp_ms=NOW_MS + number)
    assert log.truncate_to(offset)
    assert values_of(log) == [b"%d" % number * 100 for number in range(offset)]
    assert log.end_offset_for_epoch(9) == (-1, -1)
    assert append(log, b"new", leader_epoch=5) == offset
    assert values_of(log)[-1] == b"new"
    assert log.active_segment.max_timestamp >= NOW_MS


def test_truncation_below_the_first_segment_begins_again(new_log: NewLog) -> None:
    log = new_log()
    log.truncate_fully(100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert append(log, b"a") == 100
    assert log.truncate_to(50)
    assert bases(log) == [50]
    assert append(log, b"b") == 50


def test_truncation_at_the_end_does_nothing(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    assert not log.truncate_to(1)
