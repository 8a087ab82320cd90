"""Reads of a log for Fetch: offsets to places in the files, and from there to slices of bytes.

First station of a Fetch on disk: floor of the ordered segments, floor in the offset index, forward
along batch headers, then a slice of the file. Nothing is decompressed; what is found goes
to the socket as it lies on disk. `PartitionLog` says how far a reader may read.

Source: Kafka UnifiedLog.read, LocalLog.read.
"""

from typing import Final, NamedTuple

from minibroker.storage.segments import Segments
from minibroker.storage.txn_index import AbortedTransaction

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
    segments: Segments,
    offset: int,
    max_bytes: int,
    *,
    end_offset: int,
    log_end_offset: int,
    min_one_batch: bool,
) -> LogRead:
    """Return bytes from the batch that holds `offset`, at most `max_bytes`, nothing from
    `end_offset` on.

    With `min_one_batch` the first batch is whole even if larger. `offset` is in the log or at its
    end. Raises OSError, CorruptionError.
    """
    segment = segments.last
    if offset >= end_offset or offset == log_end_offset:
        return LogRead(_NOTHING, segment.base_offset, segment.size_bytes, False)
    if offset == segment.tail_offset and end_offset >= log_end_offset:
        position = segment.tail_position
        size = segment.size_bytes - position
        if size <= max_bytes:
            return LogRead(segment.read(position, size), segment.base_offset, position, False)
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


def position_of(segments: Segments, offset: int, log_end_offset: int) -> LogPosition:
    """Return where the first batch begins that ends at `offset` or later.

    Without such a batch it is the end of the log. Raises OSError, CorruptionError.

    Source: Kafka LocalLog.convertToOffsetMetadataOrThrow.
    """
    if offset >= log_end_offset:
        return LogPosition(segments.last.base_offset, segments.last.size_bytes)
    segment, found = segments.find_batch(offset)
    return LogPosition(segment.base_offset, segment.size_bytes if found is None else found[0])


def end_of(segments: Segments, found: LogRead, log_end_offset: int) -> int:
    """Return an offset at or behind the last one in `found`, for `aborted_transactions`. Cheap, not
    exact.

    Raises OSError, CorruptionError.
    """
    segment = segments.floor(found.segment_base_offset) or segments.last
    above = segment.offset_index.lookup_above(found.position + len(found.records))
    if above is not None:
        return above
    higher = segments.higher(segment.base_offset)
    return log_end_offset if higher is None else higher.base_offset


def aborted_transactions(segments: Segments, start: int, end: int) -> list[AbortedTransaction]:
    """Aborted transactions with data in `start` ≤ offset < `end`. Raises OSError,
    CorruptionError.
    """
    found: list[AbortedTransaction] = []
    for segment in segments.since(start):
        entries, is_complete = segment.txn_index.overlapping(start, end)
        found += entries
        if is_complete:
            break
    return found
