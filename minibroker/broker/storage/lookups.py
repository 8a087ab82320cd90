"""Lookups of ListOffsets in a log: offsets by time and by segment.

Source: Kafka UnifiedLog.fetchOffsetByTimestamp, legacyFetchOffsetsBefore, LogSegment; KIP-79,
KIP-734.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.segments import Segments
from minibroker.broker.storage.survey import SurveyTask
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from minibroker.kafka.records.conversion import read_records

_LATEST_MS: Final = 1 << 62
"""Later than every timestamp, ms."""


class TimestampOffset(NamedTuple):
    """A record found by its time; `leader_epoch` is that of its batch, -1: none."""

    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(
    log: PartitionLog, timestamp: int, *, resident_only: bool = False
) -> TimestampOffset | None:
    """Return the first record with a timestamp ≥ `timestamp` (ms), None if there is none. Raises
    StorageError; with `resident_only`, ColdError where it would wait for the disk.
    """
    log.write_staged()
    find = partial(_find_by_timestamp, log.segments, timestamp, log.log_start_offset)
    return _look_up(log, find, timestamp, resident_only=resident_only)


def max_timestamp_offset(
    log: PartitionLog, *, resident_only: bool = False
) -> TimestampOffset | None:
    """Return the first record with the largest timestamp (ListOffsets -3), None for an empty log.
    Raises StorageError; with `resident_only`, ColdError where it would wait for the disk.
    """
    log.write_staged()
    find = partial(_find_max_timestamp, log.segments)
    return _look_up(log, find, _LATEST_MS, resident_only=resident_only)


def _look_up(
    log: PartitionLog,
    find: Callable[[], TimestampOffset | None],
    timestamp: int,
    *,
    resident_only: bool,
) -> TimestampOffset | None:
    """Return what `find` finds. Before it reads under `resident_only`, a worker surveys segments of
    which nothing is known.
    """
    try:
        if not resident_only:
            return find()
        reached = log.segments.since(log.log_start_offset)
        unknown = [segment for segment in reached if not segment.has_size]
        if unknown:
            task = SurveyTask(log.files, unknown, timestamp)
            raise log.disk.cold(f"timestamps of {log.name}", task)
        with log.disk.resident_only():
            return find()
    except (OSError, CorruptionError) as error:
        raise log.place.failed("look up a time in", error) from error


def _find_by_timestamp(
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


def _find_max_timestamp(segments: Segments) -> TimestampOffset | None:
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


def offsets_before(log: PartitionLog, timestamp: int, max_count: int) -> list[int]:
    """Return base offsets of segments last written at or before `timestamp` (ms), newest first, for
    ListOffsets v0. Raises StorageError.

    The log's end counts as one more segment, written now. -1: all, -2: only the first.
    """
    log.write_staged()
    start = log.log_start_offset
    try:
        marks = [(max(segment.base_offset, start), segment.modified_ms) for segment in log.segments]
        if log.active_segment.size_bytes > 0:
            marks.append((log.log_end_offset, log.clock.now_ms()))
    except OSError as error:
        raise log.place.failed("look up a time in", error) from error
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
