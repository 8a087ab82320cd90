"""Lookups by time and by segment: ListOffsets of every version."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from minibroker.broker.storage import log_reads
from tests.support.logs import (
    NOW_MS,
    ManualClock,
    append,
    batch,
    records_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]

ONE = batch(b"x" * 100)
SIZE = len(ONE)


def bases(log: PartitionLog) -> list[int]:
    return log.segments.base_offsets


def test_a_lookup_by_time_finds_the_first_record_not_earlier(new_log: NewLog) -> None:
    """Out-of-order timestamps, compressed or not, over segments: compared with a plain search."""
    log = new_log(segment_bytes=700, index_interval_bytes=150)
    times = [NOW_MS + 37 * (number * 29 % 50) for number in range(60)]
    for start in range(0, 60, 3):
        codec = ("none", "gzip", "lz4")[start // 3 % 3]
        append(log, b"v" * 40, b"w" * 40, b"x", timestamps=times[start : start + 3], codec=codec)
    records = records_of(log)
    assert len(log.segments) > 3
    for target in [NOW_MS - 1, NOW_MS, *times, *(time + 1 for time in times)]:
        expected = next((r for r in records if r.timestamp >= target), None)
        found = log_reads.offset_for_timestamp(log, target)
        assert (found and (found.timestamp, found.offset)) == (
            expected and (expected.timestamp, expected.offset)
        )
    biggest = max(times)
    found = log_reads.max_timestamp_offset(log)
    assert found is not None
    assert (found.timestamp, found.offset) == (biggest, times.index(biggest))


def test_no_record_is_late_enough(new_log: NewLog) -> None:
    log = new_log()
    assert log_reads.offset_for_timestamp(log, 0) is None or log.log_end_offset == 0
    append(log, b"v")
    assert log_reads.offset_for_timestamp(log, NOW_MS + 1) is None


def test_version_0_answers_from_segments(new_log: NewLog, clock: ManualClock) -> None:
    """Three segments last written at seconds 10, 20 and 30 of the epoch; the log's end counts as
    now.
    """
    log = new_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, b"x" * 100)
    for segment, second in zip(log.segments, (10, 20, 30), strict=True):
        os.utime(segment.log_path, (second, second))
    clock.now = 40_000
    assert log_reads.offsets_before(log, -1, 10) == [5, 4, 2, 0]
    assert log_reads.offsets_before(log, -1, 2) == [5, 4]
    assert log_reads.offsets_before(log, -2, 10) == [0]
    assert log_reads.offsets_before(log, 25_000, 10) == [2, 0]
    assert log_reads.offsets_before(log, 40_000, 1) == [5]
    assert log_reads.offsets_before(log, 9_999, 10) == []


def test_size_is_the_sum_of_the_log_files(new_log: NewLog) -> None:
    log = new_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, b"x" * 100)
    assert log.size_bytes == 5 * SIZE


def test_the_first_record_with_the_largest_time_is_found(new_log: NewLog) -> None:
    """Also of a batch with LogAppendTime, and where no record has a time at all."""
    assert log_reads.max_timestamp_offset(new_log("empty")) is None
    timeless = new_log("timeless")
    for _ in range(3):
        append(timeless, b"a", b"b", timestamp_ms=-1)
    assert log_reads.max_timestamp_offset(timeless) == (-1, 0, 0)
    append(timeless, b"c", timestamp_ms=5)
    assert log_reads.max_timestamp_offset(timeless) == (5, 6, 0)
    stamped = new_log("stamped", message_timestamp_type="LogAppendTime")
    append(stamped, b"a", b"b", b"c", codec="gzip")
    assert log_reads.max_timestamp_offset(stamped) == (NOW_MS, 0, 0)
