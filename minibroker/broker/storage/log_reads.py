"""Reads of a log for Fetch: offsets to places in the files, and from there to slices of bytes.

First station of a Fetch on disk: floor of the ordered segments, floor in the offset index, forward
along batch headers, then a slice of the file. Nothing is decompressed; what is found goes
to the socket as it lies on disk. The caller says how far a reader may read.

Source: Kafka UnifiedLog.read, LocalLog.read.
"""

from typing import Final, NamedTuple

from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError

_NOTHING: Final = memoryview(b"")


class LogRead(NamedTuple):
    """The result of a read: bytes of whole batches, the last one perhaps cut.

    `segment_base_offset` and `position` say where in the files they begin; `is_first_batch_cut`:
    the bytes are fewer than their first batch, so a client that must make progress needs more.
    """

    records: memoryview
    segment_base_offset: int
    position: int
    is_first_batch_cut: bool


class LogPosition(NamedTuple):
    """A place in the files: the base offset of the segment, and bytes from its start."""

    segment_base_offset: int
    position: int


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
        if not resident_only:
            return _read(log, offset, max_bytes, end_offset, min_one_batch)
        with log.disk.resident_only():
            return _read(log, offset, max_bytes, end_offset, min_one_batch)
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read", error) from error


def _read(
    log: PartitionLog, offset: int, max_bytes: int, end_offset: int, min_one_batch: bool
) -> LogRead:
    """Read from `offset`, which is in the log or at its end. Raises OSError, CorruptionError."""
    segments, log_end_offset = log.segments, log.log_end_offset
    segment = segments.last
    if offset >= end_offset or offset == log_end_offset:
        return LogRead(_NOTHING, segment.base_offset, segment.size_bytes, False)
    if offset == segment.tail_offset and end_offset >= log_end_offset:
        position = segment.tail_position
        size = segment.size_bytes - position
        if size <= max_bytes:
            return LogRead(segment.read(position, size), segment.base_offset, position, False)
    if max_bytes < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"invalid max size {max_bytes} of a read")
    segment, found = segments.find_batch(offset)
    if found is None:
        return LogRead(_NOTHING, segment.base_offset, segment.size_bytes, False)
    position, first_bytes, _ = found
    limit = segment.size_bytes
    if end_offset < log_end_offset:
        end = segment.find_batch(end_offset) if end_offset > segment.base_offset else found
        limit = limit if end is None else end[0]
    wanted = max(max_bytes, first_bytes) if min_one_batch else max_bytes
    size = max(min(wanted, limit - position), 0)
    records = segment.read(position, size) if size else _NOTHING
    return LogRead(records, segment.base_offset, position, size < first_bytes)


def position_of(log: PartitionLog, offset: int) -> LogPosition:
    """Return where the first batch begins that ends at `offset` or later.

    Without such a batch it is the end of the log. Raises StorageError.

    Source: Kafka LocalLog.convertToOffsetMetadataOrThrow.
    """
    try:
        if offset >= log.log_end_offset:
            return LogPosition(log.segments.last.base_offset, log.segments.last.size_bytes)
        segment, found = log.segments.find_batch(offset)
        return LogPosition(segment.base_offset, segment.size_bytes if found is None else found[0])
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read", error) from error


def aborted_in(log: PartitionLog, offset: int, found: LogRead) -> list[AbortedTransaction]:
    """Return the aborted transactions with data from `offset` to the end of `found`, and perhaps
    some behind it. Raises StorageError.
    """
    try:
        end = _end_of(log, found)
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read the index of", error) from error
    return aborted_transactions(log, offset, end)


def _end_of(log: PartitionLog, found: LogRead) -> int:
    """Return an offset at or behind the last one in `found`. Cheap, not exact. Raises OSError,
    CorruptionError.
    """
    segment = log.segments.floor(found.segment_base_offset) or log.segments.last
    above = segment.offset_index.lookup_above(found.position + len(found.records))
    if above is not None:
        return above
    higher = log.segments.higher(segment.base_offset)
    return log.log_end_offset if higher is None else higher.base_offset


def aborted_transactions(log: PartitionLog, start: int, end: int) -> list[AbortedTransaction]:
    """Return aborted transactions with data in `start` ≤ offset < `end`. Raises StorageError."""
    found: list[AbortedTransaction] = []
    try:
        for segment in log.segments.since(start):
            entries, is_complete = segment.txn_index.overlapping(start, end)
            found += entries
            if is_complete:
                break
    except (OSError, CorruptionError) as error:
        raise log.place.failed("read the transaction index of", error) from error
    return found
