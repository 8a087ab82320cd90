"""`.txnindex`: the aborted transactions of a segment, for consumers that read committed data only.

One entry, 34 bytes, big-endian; absent file: none.

| position | field              | type  | note                                              |
|----------|--------------------|-------|---------------------------------------------------|
| 0        | version            | int16 | 0                                                 |
| 2        | producer id        | int64 |                                                   |
| 10       | first offset       | int64 | of the transaction                                |
| 18       | last offset        | int64 | of its abort marker; ascending through the file    |
| 26       | last stable offset | int64 | when the marker was written                       |

Recovery and truncation read the file as a whole; a fetch finds the first entry that matters to it
by its marker's offset and reads on from there, until an entry says that no later one matters.

Source: Kafka TransactionIndex, AbortedTxn; KIP-98; FORMAT.md section 4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.producer_state import CompletedTransaction
from minibroker.kafka.errors import CorruptionError

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0
BLOCK_ENTRIES: Final = 120
"""Read at a time, about a page."""


class AbortedTransaction(NamedTuple):
    """One entry; offsets inclusive."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_transaction(completed: CompletedTransaction) -> AbortedTransaction:
    """Return the entry for a transaction that an abort marker ended."""
    return AbortedTransaction(
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        completed.last_stable_offset,
    )


def encode_entry(aborted: AbortedTransaction) -> bytes:
    """Return one entry as it stands in the file."""
    return _ENTRY.pack(_VERSION, *aborted)


class TxnIndex:
    """The transaction index of one segment. Entries are written at once: there are few."""

    __slots__ = ("_disk", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def append(self, aborted: AbortedTransaction) -> None:
        """Write one entry at the end of the file, which is made by the first. Raises OSError."""
        files = self._disk.files
        handle = self._disk.handles.get(self.path, create=True)
        files.write_all(handle, [encode_entry(aborted)], files.size_of(handle))

    def read(self) -> list[AbortedTransaction]:
        """Return every entry. Raises CorruptionError for a version that is not 0, OSError."""
        try:
            content = self._disk.files.read_all(self.path)
        except FileNotFoundError:
            return []
        return self._decode(content)

    def _decode(self, content: bytes) -> list[AbortedTransaction]:
        """Return the whole entries in `content`."""
        whole = len(content) - len(content) % _ENTRY.size
        entries = []
        for version, *fields in _ENTRY.iter_unpack(content[:whole]):
            if version != _VERSION:
                raise CorruptionError(f"{self.path}: entry of version {version}, expected 0")
            entries.append(AbortedTransaction(*fields))
        return entries

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """Make `entries` all that is in the file; one that says so already stays. Raises OSError.

        Bytes that a crash left behind the last whole entry go, too.
        """
        files = self._disk.files
        content = b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)
        try:
            if files.read_all(self.path) == content:
                return
        except FileNotFoundError:
            if not content:
                return
        handle = self._disk.handles.get(self.path, create=True)
        files.truncate(handle, 0)
        if content:
            files.write_all(handle, [content], 0)

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool] | None:
        """Return those with data in `start` ≤ offset < `end`, and whether later segments need no
        look; None where there is no file.

        Kafka's rule: a transaction matters when its marker is at or beyond `start` and it began
        below `end`; an entry whose last stable offset reached `end` proves that all of them were
        seen. Reads about as much as it finds. Raises CorruptionError, OSError.
        """
        files = self._disk.files
        entries = []
        try:
            handle = files.open_to_read(self.path)
        except FileNotFoundError:
            return None
        try:
            for aborted in self._from_marker(handle, start):
                if aborted.first_offset < end:
                    entries.append(aborted)
                if aborted.last_stable_offset >= end:
                    return entries, True
        finally:
            files.close(handle)
        return entries, False

    def _from_marker(self, handle: int, start: int) -> Iterator[AbortedTransaction]:
        """Entries whose marker is at `start` or beyond, as many read as are asked for."""
        pread = self._disk.files.pread
        size = _ENTRY.size
        count = self._disk.files.size_of(handle) // size

        def marker_at(number: int) -> int:
            (entry,) = self._decode(pread(handle, size, number * size))
            return entry.last_offset

        first = bisect_left(range(count), start, key=marker_at)
        for number in range(first, count, BLOCK_ENTRIES):
            entry_count = min(BLOCK_ENTRIES, count - number)
            yield from self._decode(pread(handle, entry_count * size, number * size))

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose marker is at `offset` or above. Raises OSError, CorruptionError."""
        entries = self.read()
        kept_entries = [entry for entry in entries if entry.last_offset < offset]
        if len(kept_entries) < len(entries):
            handle = self._disk.handles.get(self.path)
            self._disk.files.truncate(handle, len(kept_entries) * _ENTRY.size)
