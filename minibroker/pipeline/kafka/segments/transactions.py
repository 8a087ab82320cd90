"""The committed part of a partition's data, found from its files alone.

Used by `segments_committed` in the tasks; a broker has this in memory. Aborted transactions are in
the `.txnindex` files, open ones in the newest producer snapshot. Later changes are in the batches
behind that snapshot. So the headers of the newest segment are read, as in a broker's recovery, and
no other segment.

Source: Kafka ProducerStateManager, TransactionIndex, AbortedTxn; KIP-98.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.batch_walks import walk_headers
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.producer_state import parse_snapshot
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.control import read_marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.kafka.records.batch import BatchHeader

logger = logging.getLogger(__name__)

MARKER_BYTES_MAX: Final = 4 << 10
"""Bytes of a marker that are read; Kafka's have less than a hundred."""
_TXN_ENTRY: Final = Struct(">hqqqq")
"""version, producer id, first offset, last offset (of the marker), last stable offset."""


class Aborted(NamedTuple):
    """An aborted transaction; both offsets are inclusive, the last is the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class Transactions(NamedTuple):
    """Transactions of one partition, as far as a reader of some segments has to know them."""

    aborted: tuple[Aborted, ...]
    last_stable_offset: int | None
    """Start of the first open transaction; None if what is read is before it."""
    sound_bytes: int | None
    """Byte of the newest segment where its chain of batches ends; None if it was not walked."""


class AbortedBatches:
    """Tells whether a batch belongs to an aborted transaction."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        for transaction in sorted(aborted):
            self._ranges.setdefault(transaction.producer_id, []).append(
                (transaction.first_offset, transaction.last_offset)
            )

    def has(self, header: BatchHeader) -> bool:
        """Return whether a data batch belongs to an aborted transaction; markers are not data."""
        if not header.is_transactional:
            return False
        ranges = self._ranges.get(header.producer_id)
        if ranges is None:
            return False
        # A producer has one transaction at a time: the last one that began before tells.
        place = bisect_right(ranges, header.base_offset, key=itemgetter(0)) - 1
        return place >= 0 and header.base_offset <= ranges[place][1]


class Newest(NamedTuple):
    """The newest segment of a partition when a read was planned, and its size then."""

    base_offset: int
    path: str
    size_bytes: int


def read_transactions(
    directory: str,
    segments: Sequence[tuple[int, str]],
    newest: Newest,
    *,
    since: int,
    end_offset: int | None,
) -> Transactions:
    """Return the transactions that a reader of some of a partition's segments has to know.

    Segments behind the newest producer snapshot are walked, by their headers. For records before it
    that is needed only where a transaction was open at the snapshot.

    Args:
        directory: of the partition.
        segments: (base offset, path of the `.log`), ascending, up to the newest.
        newest: the last of them, which may be longer by now.
        since: base offset of the first segment that is read.
        end_offset: base offset of the first segment behind those that are read, None: the newest is
            read, too.

    Raises CorruptionError for a file that is no transaction index, OSError.
    """
    aborted: dict[Aborted, None] = {}
    for base_offset, path in segments:
        if base_offset >= since:
            stem = path.removesuffix(names.SWAP).removesuffix(names.LOG) + names.TXN_INDEX
            for index in (stem, stem + names.SWAP):
                aborted |= dict.fromkeys(read_txn_index(index))
    snapshot_offset, open_starts = _newest_snapshot(directory, newest.base_offset)
    if (
        end_offset is not None
        and end_offset <= snapshot_offset
        and min(open_starts.values(), default=end_offset) >= end_offset
    ):
        return Transactions(tuple(aborted), None, None)
    sound = newest.size_bytes
    next_offsets: list[int | None] = [base_offset for base_offset, _ in segments[1:]]
    for (_, path), next_offset in zip(segments, [*next_offsets, None], strict=True):
        if next_offset is None or next_offset > snapshot_offset:
            size = newest.size_bytes if next_offset is None else REAL_FILES.size_at(path)
            ended, sound = _walk(path, size, snapshot_offset, open_starts)
            aborted |= dict.fromkeys(ended)
    return Transactions(tuple(aborted), min(open_starts.values(), default=None), sound)


def read_txn_index(path: str) -> list[Aborted]:
    """Return the entries of one `.txnindex`, without a cut entry at its end; empty without a file.

    Raises CorruptionError for a version that is not 0, OSError.
    """
    try:
        content = REAL_FILES.read_all(path)
    except FileNotFoundError:
        return []
    whole = len(content) - len(content) % _TXN_ENTRY.size
    aborted = []
    for version, producer_id, first, last, _ in _TXN_ENTRY.iter_unpack(content[:whole]):
        if version != 0:
            raise CorruptionError(f"{path}: entry of version {version}, expected 0")
        aborted.append(Aborted(producer_id, first, last))
    return aborted


def _newest_snapshot(directory: str, newest_base_offset: int) -> tuple[int, dict[int, int]]:
    """Return (offset, producer id → start of its open transaction) of the newest sound snapshot.

    A snapshot inside the newest segment is not used, because the log may end before it. Without a
    snapshot the offset is 0, and everything is read.
    """
    snapshots = [
        (offset, name)
        for name in REAL_FILES.list_files(directory)
        if name.endswith(names.SNAPSHOT) and (offset := names.base_offset_of(name)) is not None
    ]
    for offset, name in sorted(snapshots, reverse=True):
        if offset > newest_base_offset:
            continue
        path = f"{directory}/{name}"
        try:
            entries = parse_snapshot(REAL_FILES.read_all(path))
        except CorruptionError as error:
            logger.warning("%s is ignored: %s", path, error)
            continue
        return offset, {
            producer_id: entry.transaction_start
            for producer_id, entry in entries.items()
            if entry.transaction_start >= 0
        }
    return 0, {}


def _walk(
    path: str, size_bytes: int, start: int, open_starts: dict[int, int]
) -> tuple[list[Aborted], int]:
    """Return the transactions aborted in a segment from offset `start` on, and the byte where the
    chain of its batches ends.

    Updates `open_starts` to the state there. `size_bytes`: bytes of the segment that count.
    """
    aborted: list[Aborted] = []
    end = 0
    disk = Disk()
    try:
        for position, header in walk_headers(disk, path, 0, size_bytes):
            end = position + header.size_bytes
            if header.base_offset < start or not header.is_transactional or header.magic < 2:
                continue
            if not header.is_control:
                open_starts.setdefault(header.producer_id, header.base_offset)
                continue
            content = disk.pread(path, min(header.size_bytes, MARKER_BYTES_MAX), position)
            aborted += _ended(f"{path} at {position}", content, header, open_starts)
    except CorruptionError as error:
        # The reader of this place says more: it looks at whole batches.
        logger.debug("%s: no batch behind byte %d: %s", path, end, error)
    finally:
        disk.close()
    return aborted, end


def _ended(
    place: str, content: bytes | bytearray, header: BatchHeader, open_starts: dict[int, int]
) -> list[Aborted]:
    """Take the transaction that a marker ends out of `open_starts`; return it if it was aborted."""
    try:
        marker = read_marker(content, 0, header)
    except CorruptionError as error:
        logger.warning("%s: marker: %s", place, error)
        return []
    first = open_starts.pop(header.producer_id, None) if marker is not None else None
    if marker is None or first is None or marker.is_commit:
        return []
    return [Aborted(header.producer_id, first, header.base_offset)]


def overlapping(
    aborted: Iterable[Aborted], first_offset: int, end_offset: int | None
) -> tuple[Aborted, ...]:
    """Return the transactions that overlap `first_offset` up to (not including) `end_offset`."""
    return tuple(
        transaction
        for transaction in aborted
        if transaction.last_offset >= first_offset
        and (end_offset is None or transaction.first_offset < end_offset)
    )
