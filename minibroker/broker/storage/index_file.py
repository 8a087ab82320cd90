"""Common code of offset index and time index: a file of equal, ascending entries with a floor
search.

An index is a hint: sparse, without checksum, rebuilt from the segment whenever it is missing or
wrong. Entries are therefore appended to memory first (`_tail`) and written 512 at a time, at roll,
flush and close: no system call per batch. Unlike Kafka's, the file of the active segment is not
preallocated and mapped; it holds just the entries written so far, which Kafka accepts as well (it
grows the file itself). After a crash the entries still in memory are missing; recovery makes them
again.

Lookups return the greatest entry ≤ the target; the end of the file is searched in memory, the
rest by reads of the file, so an index costs no memory while nobody looks.
"""

from struct import Struct
from typing import ClassVar, Final

from minibroker.broker.storage.disk import Disk

TAIL_ENTRIES: Final = 512
"""Entries are written this many at a time; as many written ones stay in memory for reads at the
end.
"""
_BLOCK_ENTRIES: Final = 512


class IndexFile:
    """Entries of one segment's index. `entry_count` counts those in memory, too."""

    ENTRY_BYTES: ClassVar[int]
    KEY: ClassVar[Struct]
    """The searched number, at the start of an entry."""

    __slots__ = (
        "_disk",
        "_last_key",
        "_odd_bytes",
        "_tail",
        "_tail_first",
        "_written",
        "base_offset",
        "entry_count",
        "path",
    )

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        """Opens nothing but asks for the file's size; a missing file is an empty index."""
        # Constant after construction: these three. All others belong to who uses the index: the
        # loop, a start, or the thread of compaction.
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        try:
            size_bytes = disk.files.size_at(path)
        except FileNotFoundError:
            size_bytes = 0
        self.entry_count, self._odd_bytes = divmod(size_bytes, self.ENTRY_BYTES)
        self._written = self.entry_count
        # Entries in the file.
        self._tail = bytearray()
        self._tail_first = self.entry_count
        # The last entries, written or not, and the index of the first one of them.
        # Key of the last entry, so that an append need not look at it; None: not known.
        self._last_key: int | None = None

    def create(self) -> None:
        """Make the file if there is none. Raises OSError."""
        self._disk.handles.get(self.path, create=True)

    def read_last_key(self) -> None:
        """Read what an append compares with, if it is not in memory. Raises OSError.

        After this `append` touches no file.
        """
        if self._last_key is None:
            self._last_key = self._read_last_key()

    def _add(self, key: int, entry: bytes) -> None:
        """Add an entry unless its key is not above the last one's. Raises OSError."""
        last = self._last_key
        if last is None:
            last = self._read_last_key()
        if key > last:
            self._tail += entry
            self.entry_count += 1
            self._last_key = key

    def _read_last_key(self) -> int:
        """-1 while there is no entry: keys are never negative."""
        if not self.entry_count:
            return -1
        (key,) = self.KEY.unpack_from(self.entry_bytes(self.entry_count - 1))
        return int(key)

    @property
    def unwritten_count(self) -> int:
        return self.entry_count - self._written

    def write(self) -> None:
        """Write the entries that are in memory only. Raises OSError; they stay in memory then.

        The file is opened for this: it is rare, and a log that is only appended to keeps one file
        open, not three.
        """
        if self.entry_count == self._written:
            return
        size = self.ENTRY_BYTES
        files = self._disk.files
        fresh = bytes(self._tail[(self._written - self._tail_first) * size :])
        handle = files.open(self.path, create=True)
        try:
            files.write_all(handle, [fresh], self._written * size)
        finally:
            files.close(handle)
        self._written = self.entry_count
        if len(self._tail) > 2 * TAIL_ENTRIES * size:
            del self._tail[: -TAIL_ENTRIES * size]
            self._tail_first = self.entry_count - TAIL_ENTRIES

    def release(self) -> None:
        """Write, and give back memory and handle: the segment is not active any more."""
        self.write()
        self._tail = bytearray()
        self._tail_first = self.entry_count
        self._disk.handles.forget(self.path)

    def entry_bytes(self, index: int, count: int = 1) -> bytes | bytearray:
        """Return the raw entries `index` … `index + count`; they must exist. Raises OSError."""
        size = self.ENTRY_BYTES
        if index >= self._tail_first:
            first = index - self._tail_first
            return self._tail[first * size : (first + count) * size]
        found = self._disk.pread(self.path, count * size, index * size)
        if len(found) < count * size and index + count > self._written:
            first_in_tail = max(self._written, self._tail_first)
            found = found[: (first_in_tail - index) * size] + self.entry_bytes(
                first_in_tail, index + count - first_in_tail
            )
        return found

    def find_floor(self, target: int, key: Struct | None = None, key_at: int = 0) -> int:
        """Index of the last entry whose key ≤ `target`, -1 where there is none.

        `key` and `key_at` pick another ascending field of the entry than the first. Raises OSError.
        """
        unpack = (key or self.KEY).unpack_from
        size = self.ENTRY_BYTES
        low, high = 0, self.entry_count  # the answer + 1 is in low … high
        if self._tail and unpack(self._tail, key_at)[0] <= target:
            low = self._tail_first
        elif self._tail:
            high = self._tail_first
        while high - low > _BLOCK_ENTRIES and low < self._tail_first:
            middle = (low + high) // 2
            if unpack(self.entry_bytes(middle), key_at)[0] <= target:
                low = middle + 1
            else:
                high = middle
        if low == high:
            return low - 1
        if low >= self._tail_first:
            block: bytes | bytearray = self._tail
            first = self._tail_first
        else:
            block = self.entry_bytes(low, high - low)
            first = low
        while low < high:
            middle = (low + high) // 2
            if unpack(block, (middle - first) * size + key_at)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def cut(self, entry_count: int) -> None:
        """Keep the first `entry_count` entries, in memory and in the file. Raises OSError."""
        if entry_count < self._written or self._odd_bytes:
            handle = self._disk.handles.get(self.path, create=True)
            kept = min(self._written, entry_count)
            self._disk.files.truncate(handle, kept * self.ENTRY_BYTES)
            self._written = kept
            self._odd_bytes = 0
        self._last_key = None
        if entry_count < self.entry_count:
            self.entry_count = entry_count
            if entry_count >= self._tail_first:
                del self._tail[(entry_count - self._tail_first) * self.ENTRY_BYTES :]
            else:
                self._tail = bytearray()
                self._tail_first = entry_count
