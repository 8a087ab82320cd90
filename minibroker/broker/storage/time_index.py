"""`.timeindex`: timestamp → offset, for lookups by time.

One entry, 12 bytes, big-endian:

| position | field           | type  | note                                                       |
|----------|-----------------|-------|------------------------------------------------------------|
| 0        | timestamp       | int64 | ms; the largest of the segment so far                       |
| 8        | relative offset | int32 | last offset of the batch that has it - base of the segment  |

An entry is added with an offset-index entry and only if the largest timestamp grew; one more at
roll and close, so that the segment's largest timestamp is in the file. "Every record up to the
offset has a timestamp ≤ this one": so the search for the first record with a timestamp ≥ t may
start behind the greatest entry < t.

Source: Kafka TimeIndex, KIP-33; FORMAT.md section 4.
"""

from struct import Struct
from typing import ClassVar, Final

from minibroker.broker.storage.files import Files
from minibroker.broker.storage.index_file import IndexFile
from minibroker.kafka.errors import CorruptionError

NO_TIMESTAMP: Final = -1
_ENTRY: Final = Struct(">qi")
_RELATIVE_OFFSET: Final = Struct(">i")


def read_last_entry(files: Files, path: str, base_offset: int) -> tuple[int, int]:
    """Return (timestamp, offset) of the last entry in the file, on any thread; (-1, -1) where it
    has none, or one that no closed segment ends with (0 is what preallocation leaves). Raises
    OSError.
    """
    handle = files.open_to_read(path)
    try:
        end = files.size_of(handle)
        entry = files.pread(handle, _ENTRY.size, end - _ENTRY.size) if end >= _ENTRY.size else b""
    finally:
        files.close(handle)
    if len(entry) != _ENTRY.size or end % _ENTRY.size:
        return NO_TIMESTAMP, -1
    timestamp, relative = _ENTRY.unpack(entry)
    if timestamp <= 0 or relative < 0:
        return NO_TIMESTAMP, -1
    return timestamp, base_offset + relative


class TimeIndex(IndexFile):
    """The time index of one segment; in a crash it loses at most what `write` had not written."""

    ENTRY_BYTES: ClassVar[int] = 12
    KEY: ClassVar[Struct] = Struct(">q")

    __slots__ = ()

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is larger than every one before. Raises struct.error beyond
        2³¹-1.
        """
        self._add(timestamp, _ENTRY.pack(timestamp, offset - self.base_offset))

    def entry(self, index: int) -> tuple[int, int]:
        """Return (timestamp, offset) of one entry. Raises OSError."""
        timestamp, relative = _ENTRY.unpack(self.entry_bytes(index))
        return timestamp, self.base_offset + relative

    def last_entry(self) -> tuple[int, int]:
        """Return (timestamp, offset); (-1, base offset) while there is none."""
        if not self.entry_count:
            return NO_TIMESTAMP, self.base_offset
        return self.entry(self.entry_count - 1)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """Return the greatest entry ≤ `timestamp`, as (timestamp, offset); (-1, base offset) below
        the first.
        """
        index = self.find_floor(timestamp)
        return self.entry(index) if index >= 0 else (NO_TIMESTAMP, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop every entry of `offset` and above. Raises OSError."""
        relative = offset - self.base_offset
        self.cut(self.find_floor(relative - 1, _RELATIVE_OFFSET, 8) + 1)

    def check(self) -> None:
        """Raises CorruptionError for an index that no segment can have (FileNotFoundError: none
        there).

        Timestamps of entries grow, so a 0 behind another entry is what preallocation left.
        """
        size = self._disk.files.size_at(self.path)
        if size % self.ENTRY_BYTES:
            raise CorruptionError(f"{self.path}: {size} bytes, not a multiple of 12")
        if not self.entry_count:
            return
        first, (last, offset) = self.entry(0)[0], self.last_entry()
        zeros = last == 0 and self.entry_count > 1
        if zeros or last < first or offset < self.base_offset:
            raise CorruptionError(
                f"{self.path}: last entry is timestamp {last} at offset {offset}, expected at "
                f"least {first} and {self.base_offset}"
            )
