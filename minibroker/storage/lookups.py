"""Lookups of ListOffsets and OffsetForLeaderEpoch: offsets by time, by segment, by epoch.

Source: Kafka UnifiedLog.fetchOffsetByTimestamp, legacyFetchOffsetsBefore, LogSegment; KIP-79,
KIP-734.
"""

from collections.abc import Sequence
from typing import NamedTuple

from minibroker.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from minibroker.records.conversion import read_records
from minibroker.storage.segment import Segment
from minibroker.storage.segments import Segments


class TimestampOffset(NamedTuple):
    """A record found by its time; `leader_epoch` is that of its batch, -1: none."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(
    segments: Segments, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    """Return the first record at or behind `start_offset` with a timestamp ≥ `timestamp` (ms), if
    any.

    Segments whose largest timestamp is smaller are passed by. Differs from Kafka, which searches
    only the first one left: where that timestamp is of a record below the log's start, Kafka
    answers "none" although later segments have one. Raises CorruptionError, OSError.
    """
    for segment in segments.since(start_offset):
        if largest_timestamp(segment) >= timestamp:
            found = _find_in_segment(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def largest_timestamp(segment: Segment) -> int:
    """Return the largest timestamp in ms; where no record has one, the time when the file was
    written.
    """
    found = segment.max_timestamp
    return found if found >= 0 else segment.modified_ms


def _find_in_segment(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    _, indexed_offset = segment.time_index.lookup(timestamp)
    start = segment.offset_index.lookup(max(indexed_offset, start_offset))[1]
    for position, header in segment.headers(start):
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            continue
        for record in read_records(segment.read(position, header.size_bytes), 0, header):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def find_max_timestamp(segments: Segments) -> TimestampOffset | None:
    """Return the first record that has the log's largest timestamp, None for an empty log.

    Where no record has a time that is the first record, with -1. Raises CorruptionError, OSError.
    """
    best = max(segments, key=lambda segment: segment.max_timestamp)
    timestamp = best.max_timestamp
    start = best.offset_index.lookup(best.offset_of_max_timestamp)[1]
    for position, header in best.headers(start):
        if header.max_timestamp == timestamp:
            for record in read_records(best.read(position, header.size_bytes), 0, header):
                if record.timestamp == timestamp:
                    return TimestampOffset(timestamp, record.offset, header.leader_epoch)
            return None
    return None


def offsets_before(
    segments: Segments,
    timestamp: int,
    max_count: int,
    *,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> list[int]:
    """ListOffsets v0: base offsets of segments last written at or before `timestamp`, newest first.

    The log's end counts as one more segment, written now. -1: all, -2: only the first.
    """
    marks = [
        (max(segment.base_offset, log_start_offset), segment.modified_ms) for segment in segments
    ]
    if segments.last.size_bytes > 0:
        marks.append((log_end_offset, now_ms))
    count = _count_before(marks, timestamp)
    return sorted((offset for offset, _ in marks[max(count - max_count, 0) : count]), reverse=True)


def _count_before(marks: Sequence[tuple[int, int]], timestamp: int) -> int:
    if timestamp == LATEST_TIMESTAMP:
        return len(marks)
    if timestamp == EARLIEST_TIMESTAMP:
        return 1
    for index in range(len(marks) - 1, -1, -1):
        if marks[index][1] <= timestamp:
            return index + 1
    return 0
