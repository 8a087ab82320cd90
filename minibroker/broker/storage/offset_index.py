"""`.index`: offset → position in the segment's `.log`, every `index.interval.bytes`.

One entry, 8 bytes, big-endian:

| position | field           | type  | note                                                  |
|----------|-----------------|-------|-------------------------------------------------------|
| 0        | relative offset | int32 | last offset of the append - base offset of the segment |
| 4        | position        | int32 | byte in `.log` where that append starts                |

Offsets are relative so that four bytes suffice; a segment whose offsets do not fit is rolled. A
read at an offset starts at the position of the greatest entry ≤ it and scans forward.

Source: Kafka OffsetIndex; FORMAT.md section 3.
"""

from struct import Struct
from typing import ClassVar, Final

from minibroker.broker.storage.index_file import IndexFile
from minibroker.kafka.errors import CorruptionError

_ENTRY: Final = Struct(">ii")


class OffsetIndex(IndexFile):
    """The offset index of one segment; in a crash it loses at most what `write` had not written."""

    ENTRY_BYTES: ClassVar[int] = 8
    KEY: ClassVar[Struct] = Struct(">i")

    __slots__ = ()

    def append(self, offset: int, position: int) -> None:
        """Add an entry; one that is not beyond the last is left out. The caller rolls a full index.

        Raises struct.error for an offset more than 2³¹-1 beyond the base.
        """
        relative = offset - self.base_offset
        self._add(relative, _ENTRY.pack(relative, position))

    def entry(self, index: int) -> tuple[int, int]:
        """Return (offset, position) of one entry. Raises OSError."""
        relative, position = _ENTRY.unpack(self.entry_bytes(index))
        return self.base_offset + relative, position

    def last_entry(self) -> tuple[int, int]:
        """Return (offset, position); (base offset, 0) while there is none."""
        return self.entry(self.entry_count - 1) if self.entry_count else (self.base_offset, 0)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Return (offset, position) of the greatest entry ≤ `offset`; (base offset, 0) if none."""
        index = self.find_floor(offset - self.base_offset)
        return self.entry(index) if index >= 0 else (self.base_offset, 0)

    def lookup_above(self, position: int) -> int | None:
        """Return the offset of the first entry whose position is ≥ `position`, None where there is
        none.
        """
        index = self.find_floor(position - 1, self.KEY, 4) + 1
        return self.entry(index)[0] if index < self.entry_count else None

    def truncate_to(self, offset: int) -> None:
        """Drop every entry of `offset` and above. Raises OSError."""
        self.cut(self.find_floor(offset - self.base_offset - 1) + 1)

    def check(self, log_size_bytes: int) -> None:
        """Raises CorruptionError for an index that cannot belong to a `.log` of this size.

        No entry points to position 0, so the zeros that a killed Kafka leaves behind the entries of
        a preallocated index are found here. FileNotFoundError: there is no index.
        """
        size = self._disk.files.size_at(self.path)
        if size % self.ENTRY_BYTES:
            raise CorruptionError(f"{self.path}: {size} bytes, not a multiple of 8")
        if not self.entry_count:
            return
        offset, position = self.last_entry()
        if offset < self.base_offset or not 0 < position < log_size_bytes:
            raise CorruptionError(
                f"{self.path}: last entry is offset {offset} at position {position}, expected an "
                f"offset from {self.base_offset} on in {log_size_bytes} bytes"
            )
