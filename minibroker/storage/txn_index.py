"""`.txnindex`: the aborted transactions of a segment, for consumers that read committed data only.

One entry, 34 bytes, big-endian; absent file: none.

| position | field              | type  | note                                              |
|----------|--------------------|-------|---------------------------------------------------|
| 0        | version            | int16 | 0                                                 |
| 2        | producer id        | int64 |                                                   |
| 10       | first offset       | int64 | of the transaction                                |
| 18       | last offset        | int64 | of its abort marker; ascending through the file    |
| 26       | last stable offset | int64 | when the marker was written                       |

Rare and small: the file is read as a whole when somebody asks.

Source: Kafka TransactionIndex, AbortedTxn; KIP-98; FORMAT.md section 4.
"""

from struct import Struct
from typing import Final, NamedTuple

from minibroker.errors import CorruptionError
from minibroker.storage.disk import Disk
from minibroker.storage.producer_state import CompletedTransaction

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """One entry; offsets inclusive."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_transaction(completed: CompletedTransaction) -> AbortedTransaction:
    """The entry for a transaction that an abort marker ended."""
    return AbortedTransaction(
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        completed.last_stable_offset,
    )


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
        entry = _ENTRY.pack(_VERSION, *aborted)
        files.write_all(handle, [entry], files.size_of(handle))

    def read(self) -> list[AbortedTransaction]:
        """Every entry. Raises CorruptionError for a version that is not 0, OSError."""
        try:
            content = self._disk.files.read_all(self.path)
        except FileNotFoundError:
            return []
        whole = len(content) - len(content) % _ENTRY.size
        found = []
        for version, *fields in _ENTRY.iter_unpack(content[:whole]):
            if version != _VERSION:
                raise CorruptionError(f"{self.path}: entry of version {version}, expected 0")
            found.append(AbortedTransaction(*fields))
        return found

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Those with data in `start` ≤ offset < `end`, and whether later segments need no look.

        Kafka's rule: a transaction matters when its marker is at or beyond `start` and it began
        below `end`; an entry whose last stable offset reached `end` proves that all of them were
        seen.
        """
        found = []
        for aborted in self.read():
            if aborted.last_offset >= start and aborted.first_offset < end:
                found.append(aborted)
            if aborted.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose marker is at `offset` or above. Raises OSError, CorruptionError."""
        entries = self.read()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            handle = self._disk.handles.get(self.path)
            self._disk.files.truncate(handle, len(kept) * _ENTRY.size)
