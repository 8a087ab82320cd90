"""Reads of a log: bytes for Fetch, offsets by time and by segment for ListOffsets.

`read` is the first station of a Fetch on disk: floor of the ordered segments, floor in the offset
index, forward along batch headers, then a slice of the file. Nothing is decompressed; what is found
goes to the socket as it lies on disk. The caller says how far a reader may read.

`survey` reads sizes and largest timestamps of closed segments on a worker. Retention and lookups by
time go by them. Kafka knows them from the start; here nobody reads a file before somebody asks.

Source: Kafka UnifiedLog.read, LocalLog.read, UnifiedLog.fetchOffsetByTimestamp,
legacyFetchOffsetsBefore, LogSegment; KIP-79, KIP-734.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.indexes import read_last_entry
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import COPY_BYTES_MAX, Segment, Segments
from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from minibroker.kafka.records.conversion import read_records


class SegmentSurvey(NamedTuple):
    """The facts that `survey` read of one segment; -1: not read, or not reliable."""

    segment: Segment
    size_bytes: int
    max_timestamp: int
    offset: int


def survey(files: Files, segments: Sequence[Segment], oldest_kept_ms: int) -> list[SegmentSurvey]:
    """Read sizes and largest timestamps, by name: any thread may. `Segment.note_survey` takes them.

    Timestamps are read up to the first segment that has one of `oldest_kept_ms` or later: those
    behind it are not asked for. A file that is away is passed by: who uses it will say so.
    """
    surveys = []
    with_times = True
    for segment in segments:
        timestamp, offset = -1, -1
        try:
            size_bytes = files.size_at(segment.log_path)
            if with_times:
                path = segment.path(names.TIME_INDEX)
                timestamp, offset = read_last_entry(files, path, segment.base_offset)
        except OSError:
            continue
        with_times = with_times and timestamp < oldest_kept_ms
        surveys.append(SegmentSurvey(segment, size_bytes, timestamp, offset))
    return surveys


class SurveyTask:
    """A survey of segments that a reader asks for. A worker calls it, then the loop `apply`."""

    __slots__ = ("_files", "_segments", "_surveys", "_timestamp")

    def __init__(self, files: Files, segments: Sequence[Segment], timestamp: int) -> None:
        """`timestamp`: ms; a segment that reaches it is the last one whose time is read."""
        self._files = files
        self._segments = segments
        self._timestamp = timestamp
        # Set by the worker, read by the loop in `apply`.
        self._surveys: list[SegmentSurvey] = []

    def __call__(self) -> None:
        """Read. Raises nothing: a file that is away is passed by."""
        self._surveys = survey(self._files, self._segments, self._timestamp)

    def apply(self) -> None:
        """Tell the segments."""
        for survey_result in self._surveys:
            survey_result.segment.note_survey(
                survey_result.size_bytes, survey_result.max_timestamp, survey_result.offset
            )


_NOTHING: Final = memoryview(b"")


class LogRead:
    """The result of a read: bytes of whole batches, the last one perhaps cut.

    `segment_base_offset` and `position` say where in the files they begin; `is_first_batch_cut`:
    the bytes are fewer than their first batch, so a client that must make progress needs more.
    """

    __slots__ = ("is_first_batch_cut", "position", "records", "segment_base_offset")

    def __init__(
        self,
        records: memoryview,
        segment_base_offset: int,
        position: int,
        is_first_batch_cut: bool,
    ) -> None:
        self.records = records
        self.segment_base_offset = segment_base_offset
        self.position = position
        self.is_first_batch_cut = is_first_batch_cut


LogPosition = tuple[int, int]
"""A place in the files: the base offset of the segment, and bytes from its start."""


def read(
    log: PartitionLog,
    offset: int,
    max_bytes: int,
    *,
    end_offset: int,
    min_one_batch: bool,
    resident_only: bool = False,
) -> LogRead:
    """Return bytes from the batch that holds `offset`, at most `max_bytes`, nothing from
    `end_offset` on.

    With `min_one_batch` the first batch is whole even if larger. The slice is read-only and stays
    valid as long as it is kept. Raises KafkaError OFFSET_OUT_OF_RANGE, UNKNOWN_SERVER_ERROR (there
    are records, and `max_bytes` is negative), StorageError; with `resident_only`, ColdError where
    it would wait for the disk.
    """
    log.write_staged()
    log_end = log.log_end_offset
    if not log.log_start_offset <= offset <= log_end:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {log.name} is not in {log.log_start_offset} … {log_end}",
        )
    try:
        if offset >= end_offset or offset == log_end:
            segment = log.segments.last
            return LogRead(_NOTHING, segment.base_offset, segment.size_bytes, False)
        if not resident_only:
            return _read(log, offset, max_bytes, end_offset, min_one_batch)
        with log.disk.resident_only:
            return _read(log, offset, max_bytes, end_offset, min_one_batch)
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read", error) from error


def _read(
    log: PartitionLog, offset: int, max_bytes: int, end_offset: int, min_one_batch: bool
) -> LogRead:
    """Read from `offset`, which is in the log and before `end_offset`. Raises OSError,
    CorruptionError.
    """
    segments, log_end_offset = log.segments, log.log_end_offset
    segment = segments.last
    if offset == segment.tail_offset and end_offset >= log_end_offset:
        position = segment.tail_position
        size = segment.size_bytes - position
        if size <= max_bytes:
            records = segment.read(position, size)
            return _log_read(log, segment, records, position, is_first_batch_cut=False)
    if max_bytes < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"invalid max size {max_bytes} of a read")
    around = None
    if max_bytes > COPY_BYTES_MAX:
        segment = segments.floor(offset) or segments.first
        around = segment.read_around(offset, max_bytes)
    batch: tuple[int, int, int] | None
    if around is not None:
        view, view_start, batch = around
    else:
        segment, batch = segments.find_batch(offset)
        if batch is None:
            return LogRead(_NOTHING, segment.base_offset, segment.size_bytes, False)
        view, view_start = _NOTHING, 0
    position, first_bytes, _ = batch
    limit = segment.size_bytes
    if position + first_bytes > limit:  # a client would ask for the rest for ever
        raise CorruptionError(f"{segment.log_path}: ends inside the batch at {position}")
    if end_offset < log_end_offset:
        end = segment.find_batch(end_offset) if end_offset > segment.base_offset else batch
        limit = limit if end is None else end[0]
    size_max = max(max_bytes, first_bytes) if min_one_batch else max_bytes
    size = max(min(size_max, limit - position), 0)
    at = position - view_start
    records = view[at : at + size] if size else _NOTHING
    if len(records) < size:
        records = segment.read(position, size)
    return _log_read(log, segment, records, position, is_first_batch_cut=size < first_bytes)


def _log_read(
    log: PartitionLog,
    segment: Segment,
    records: memoryview,
    position: int,
    *,
    is_first_batch_cut: bool,
) -> LogRead:
    """Return the result of a read; the place of a large slice is known until it has left."""
    if len(records) > COPY_BYTES_MAX:
        log.disk.note_slice(records, segment.log_path, position)
    return LogRead(records, segment.base_offset, position, is_first_batch_cut)


def position_of(log: PartitionLog, offset: int) -> LogPosition:
    """Return where the first batch begins that ends at `offset` or later.

    Without such a batch it is the end of the log. Raises StorageError.

    Source: Kafka LocalLog.convertToOffsetMetadataOrThrow.
    """
    try:
        if offset >= log.log_end_offset:
            segment = log.segments.last
            return segment.base_offset, segment.size_bytes
        segment, batch = log.segments.find_batch(offset)
        return segment.base_offset, segment.size_bytes if batch is None else batch[0]
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read", error) from error


def aborted_in(log: PartitionLog, offset: int, log_read: LogRead) -> list[AbortedTransaction]:
    """Return the aborted transactions with data from `offset` to the end of `log_read`, and perhaps
    some behind it. On the loop. Raises StorageError.
    """
    last = log.segments.last
    if last.lacks_txn_index and offset >= last.base_offset:
        return []  # most often
    segments = [segment for segment in log.segments.since(offset) if not segment.lacks_txn_index]
    if not segments:
        return []
    try:
        end = _end_of(log, log_read)
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read the index of", error) from error
    return _aborted(log, segments, offset, end, on_absent=_note_absent)


def _note_absent(segment: Segment) -> None:
    segment.lacks_txn_index = True


def _end_of(log: PartitionLog, log_read: LogRead) -> int:
    """Return an offset at or behind the last one in `log_read`. Cheap, not exact. Raises OSError,
    CorruptionError.
    """
    segment = log.segments.floor(log_read.segment_base_offset) or log.segments.last
    above = segment.offset_index.lookup_above(log_read.position + len(log_read.records))
    if above is not None:
        return above
    higher = log.segments.higher(segment.base_offset)
    return log.log_end_offset if higher is None else higher.base_offset


def aborted_transactions(log: PartitionLog, start: int, end: int) -> list[AbortedTransaction]:
    """Return aborted transactions with data in `start` ≤ offset < `end`. On any thread. Raises
    StorageError.
    """
    return _aborted(log, log.segments.since(start), start, end, on_absent=lambda _segment: None)


def _aborted(
    log: PartitionLog,
    segments: Iterable[Segment],
    start: int,
    end: int,
    *,
    on_absent: Callable[[Segment], None],
) -> list[AbortedTransaction]:
    transactions: list[AbortedTransaction] = []
    try:
        for segment in segments:
            overlap = segment.txn_index.overlapping(start, end)
            if overlap is None:
                on_absent(segment)
                continue
            entries, is_complete = overlap
            transactions += entries
            if is_complete:
                break
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read the transaction index of", error) from error
    return transactions


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
        segments = log.segments.since(log.log_start_offset)
        unknown = [segment for segment in segments if not segment.has_size]
        if unknown:
            task = SurveyTask(log.files, unknown, timestamp)
            raise log.disk.cold(f"timestamps of {log.name}", task)
        with log.disk.resident_only:
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
            position = _find_in_segment(segment, timestamp, start_offset)
            if position is not None:
                return position
    return None


def largest_timestamp(segment: Segment) -> int:
    """Return the largest timestamp in ms; where no record has one, the time when the file was
    written.
    """
    timestamp = segment.max_timestamp
    return timestamp if timestamp >= 0 else segment.modified_ms


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
    offsets = [max(segment.base_offset, start) for segment in log.segments]
    if log.active_segment.size_bytes > 0:
        offsets.append(log.log_end_offset)
    try:
        count = _count_before(log, timestamp, len(offsets))
    except OSError as error:
        raise log.place.failed("look up a time in", error) from error
    return sorted(offsets[max(count - max_count, 0) : count], reverse=True)


def _count_before(log: PartitionLog, timestamp: int, count: int) -> int:
    """Return how many of `count` segments, the log's end among them, were last written at or before
    a time. Raises OSError. Files are asked from the newest on, until one is old enough.
    """
    if timestamp == LATEST_TIMESTAMP:
        return count
    if timestamp == EARLIEST_TIMESTAMP:
        return 1
    if count > len(log.segments):
        if log.clock.now_ms() <= timestamp:
            return count
        count -= 1
    for segment in reversed(log.segments):
        if segment.modified_ms <= timestamp:
            return count
        count -= 1
    return count
