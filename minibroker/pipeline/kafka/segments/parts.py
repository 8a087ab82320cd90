"""The part of a segment that a task reads, found by the task: its borders, and what is committed.

Third station of raw segments. The driver cuts segments at bytes that it chose by their sizes alone.
A task moves each of them to the next batch that the segment's `.index` tells of, and checks that
one begins there. Two tasks that share a border find the same batch: the segment is the same file,
and of the newest one they look at no more than the bytes that it had when the read was planned.

    SegmentTask ─► border, border ─► SegmentPart: its bytes, aborted transactions, last offset

Source: Kafka OffsetIndex (an entry has the byte where an append begins), TransactionIndex.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from contextlib import closing
from itertools import groupby
from pathlib import Path
from sys import byteorder
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.errors import CorruptionError
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.segments.file import SegmentFile
from minibroker.pipeline.kafka.segments.layout import segment_paths
from minibroker.pipeline.kafka.segments.transactions import (
    Newest,
    Transactions,
    overlapping,
    read_transactions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from minibroker.pipeline.kafka.segments.file import SegmentDefect
    from minibroker.pipeline.kafka.segments.layout import ListedSegment, SegmentTask
    from minibroker.pipeline.kafka.segments.transactions import Aborted

logger = logging.getLogger(__name__)

ENTRY_BYTES: Final = 8
CHECK_WINDOW_BYTES: Final = 64 << 10
"""Bytes of the first read of a batch at a border."""
ENTRIES_TRIED: Final = 16
"""Entries of an index that may be wrong in a row until the rest of the segment is not cut."""
INDEX_BYTES_MAX: Final = 1 << 30
"""Largest index that is read; an index of Kafka cannot be larger than its 32-bit positions need."""


class SegmentPart(NamedTuple):
    """The part of a segment that one task reads."""

    task: SegmentTask
    begin: int
    """Byte of its first batch."""
    end: int | None
    """Byte behind its last batch; None: the end of the file, whatever it is then."""
    aborted: tuple[Aborted, ...]
    """Aborted transactions that overlap the segment."""
    end_offset: int | None
    """Offset from which on nothing is committed; None: all of the part is."""
    sound_bytes: int | None
    """Byte where the chain of batches of a newest segment ends, None if that is not known."""

    def is_tail(self, defect: SegmentDefect) -> bool:
        """Return whether a defect is at the end of a log, as a crash leaves one there."""
        if not self.task.is_newest:
            return False
        return self.task.is_last or (
            self.sound_bytes is not None and defect.position >= self.sound_bytes
        )

    def lost_bytes(self, defect: SegmentDefect) -> int:
        """Return the bytes that a defect takes away: at the end of a log all that are left."""
        if self.is_tail(defect):
            return max(self.task.segment.size_bytes - defect.position, defect.size_bytes)
        return defect.size_bytes


def parts_of(
    tasks: Iterable[SegmentTask], *, tell_aborted: bool, leave_out_open: bool
) -> Iterator[SegmentPart]:
    """Yield what each of a task's parts is to be read with, in their order.

    `tell_aborted`: the parts get the aborted transactions; `leave_out_open`: they end at the start
    of the first open transaction. Raises PipelineError for files that cannot be read.
    """
    for directory, parts in groupby(tasks, key=lambda task: task.path.rpartition("/")[0]):
        yield from _parts_of_partition(
            directory, list(parts), tell_aborted=tell_aborted, leave_out_open=leave_out_open
        )


def _parts_of_partition(
    directory: str, tasks: Sequence[SegmentTask], *, tell_aborted: bool, leave_out_open: bool
) -> Iterator[SegmentPart]:
    """Yield `parts_of` for parts of one partition; what is committed is found out once for all."""
    transactions = Transactions((), None, None)
    is_cut_newest = any(task.is_newest and not task.is_whole for task in tasks)
    if tell_aborted or leave_out_open or is_cut_newest:
        transactions = _transactions(directory, tasks[0], tasks[-1], leave_out_open=leave_out_open)
    end_offset = transactions.last_stable_offset if leave_out_open else None
    for task in tasks:
        aborted = overlapping(transactions.aborted, task.segment.base_offset, task.next_offset)
        sound = transactions.sound_bytes if task.is_newest else None
        if end_offset is not None and task.segment.base_offset >= end_offset:
            continue
        begin, end = _borders(task)
        if begin > 0 and begin >= min(limit for limit in (end, sound) if limit is not None):
            continue
        yield SegmentPart(task, begin, end, aborted if tell_aborted else (), end_offset, sound)


def _transactions(
    directory: str, first: SegmentTask, last: SegmentTask, *, leave_out_open: bool
) -> Transactions:
    """Return the transactions of the parts of a partition from `first` to `last`.

    Raises PipelineError for files that cannot be read.
    """
    newest = Newest(last.newest.base_offset, last.newest.path, last.newest.size_bytes)
    try:
        segments = [
            (base_offset, path)
            for base_offset, path in segment_paths(directory, REAL_FILES.list_files(directory))
            if base_offset <= newest.base_offset
        ]
        transactions = read_transactions(
            directory,
            segments,
            newest,
            since=first.segment.base_offset,
            end_offset=last.next_offset,
        )
    except (CorruptionError, OSError) as error:
        raise PipelineError(
            f"which records of {directory} are committed cannot be found out: {error}; "
            "set isolation.level to read_uncommitted to read without knowing"
        ) from error
    if leave_out_open and last.is_newest and transactions.last_stable_offset is not None:
        logger.warning(
            "%s: a transaction is open, records behind offset %d are not committed",
            directory,
            transactions.last_stable_offset - 1,
        )
    return transactions


def _borders(task: SegmentTask) -> tuple[int, int | None]:
    """Return the bytes where a part begins and ends. Raises PipelineError."""
    if task.is_whole:
        return 0, task.end if task.is_newest else None
    try:
        _check_same(task.segment)
        return border(task.segment, task.begin), border(task.segment, task.end)
    except OSError as error:
        raise PipelineError(f"{task.path} cannot be read: {error.strerror}") from error


def _check_same(segment: ListedSegment) -> None:
    """Raise PipelineError if another file has the name now: its batches are at other bytes."""
    status = Path(segment.path).stat()
    if status.st_ino == segment.file_id and status.st_size >= segment.size_bytes:
        return
    raise PipelineError(
        f"{segment.path} was replaced or cut while it was read: a broker has compacted or "
        "truncated it; read again, or stop the broker before"
    )


def border(segment: ListedSegment, byte: int) -> int:
    """Return the byte of the first batch at `byte` or behind it that the index tells of; the
    segment's size if there is none.

    Raises OSError.
    """
    if byte <= 0 or byte >= segment.size_bytes:
        return max(0, min(byte, segment.size_bytes))
    entries = _entries(segment.path)
    offsets, positions = entries[0::2], entries[1::2]
    first = bisect_left(positions, byte)
    for number in range(first, min(first + ENTRIES_TRIED, len(positions))):
        position = positions[number]
        last_offset = segment.base_offset + offsets[number]
        if byte <= position < segment.size_bytes and _begins_batch(segment, position, last_offset):
            return position
    return segment.size_bytes


def _begins_batch(segment: ListedSegment, position: int, last_offset: int) -> bool:
    """Return whether a sound batch begins at a byte, with offsets that the index allows there."""
    file = SegmentFile(segment.path, CHECK_WINDOW_BYTES, begin=position, end=segment.size_bytes)
    with closing(file.batches()) as batches:
        batch = next(batches, None)
    return batch is not None and segment.base_offset <= batch.header.last_offset <= last_offset


def _entries(path: str) -> array[int]:
    """Return the index of a segment as offsets and positions in turn; empty without one.

    Zeros at its end are the room that a running Kafka keeps for more entries. Raises OSError.
    """
    suffix = names.SWAP if path.endswith(names.SWAP) else ""
    index = path.removesuffix(names.SWAP).removesuffix(names.LOG) + names.OFFSET_INDEX + suffix
    entries: array[int] = array("i")
    try:
        if REAL_FILES.size_at(index) > INDEX_BYTES_MAX:
            return entries
        content = REAL_FILES.read_all(index)
    except FileNotFoundError:
        return entries
    used = -(-len(content.rstrip(b"\x00")) // ENTRY_BYTES) * ENTRY_BYTES
    entries.frombytes(content[: min(used, len(content) // ENTRY_BYTES * ENTRY_BYTES)])
    if byteorder == "little":
        entries.byteswap()
    return entries
