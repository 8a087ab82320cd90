"""The offset index and the time index of a segment: entries, rule, rebuild.

`.index`: offset → position in the segment's `.log`. One entry, 8 bytes, big-endian:

| position | field           | type  | note                                                   |
|----------|-----------------|-------|--------------------------------------------------------|
| 0        | relative offset | int32 | last offset of the append - base offset of the segment |
| 4        | position        | int32 | byte in `.log` where that append starts                |

Offsets are relative so that four bytes suffice; a segment whose offsets do not fit is rolled. A
read at an offset starts at the position of the greatest entry ≤ it and scans forward.

`.timeindex`: timestamp → offset, for lookups by time. One entry, 12 bytes, big-endian:

| position | field           | type  | note                                                       |
|----------|-----------------|-------|------------------------------------------------------------|
| 0        | timestamp       | int64 | ms; the largest of the segment so far                      |
| 8        | relative offset | int32 | last offset of the batch that has it - base of the segment |

An entry is added with an offset-index entry and only if the largest timestamp grew; one more at
roll and close, so that the segment's largest timestamp is in the file. "Every record up to the
offset has a timestamp ≤ this one": so the search for the first record with a timestamp ≥ t may
start behind the greatest entry < t.

An index is a hint: sparse, without checksum, rebuilt from the segment whenever it is missing or
wrong. Entries are therefore appended to memory first and written 512 at a time, at roll, flush and
close: no system call per batch. Unlike Kafka's, the file of the active segment is not preallocated
and mapped; it holds just the entries written so far, which Kafka accepts as well (it grows the file
itself). After a crash the entries still in memory are missing; recovery makes them again.

Lookups return the greatest entry ≤ the target; the end of the file is searched in memory, the rest
by reads of the file, so an index costs no memory while nobody looks.

All code that fills indexes uses `IndexRule`: an append (`Segment.note_append`), recovery,
compaction (`SegmentWriter`), and a rebuild of lost indexes. A batch gets an entry when more than
`index.interval.bytes` came since the last one. The offset index gets the batch's last offset, the
time index the largest timestamp so far and the last offset of the batch that holds it.

Source: Kafka OffsetIndex, TimeIndex, LogSegment.append, LogSegment.recover, LogSegment.sanityCheck;
KIP-33; FORMAT.md sections 3 and 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, ClassVar, Final

from minibroker.broker.storage import names
from minibroker.broker.storage.batch_walks import walk_headers
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import BatchHeader

logger = logging.getLogger(__name__)

TAIL_ENTRIES: Final = 512
"""Entries are written this many at a time; as many written ones stay in memory for reads at the
end.
"""
_BLOCK_ENTRIES: Final = 512
"""Entries that a search reads at once."""
_NEAR_ENTRIES: Final = 64
"""Entries that it reads at first around a guess."""
_NEAR: Final = 2
"""Entries by which a guess is wrong at most in an index that grows evenly."""
Unpack = Callable[[bytes | bytearray, int], tuple[Any, ...]]


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
        entries = self._disk.pread(self.path, count * size, index * size)
        if len(entries) < count * size and index + count > self._written:
            first_in_tail = max(self._written, self._tail_first)
            entries = entries[: (first_in_tail - index) * size] + self.entry_bytes(
                first_in_tail, index + count - first_in_tail
            )
        return entries

    def find_floor(self, target: int, key: Struct | None = None, key_at: int = 0) -> int:
        """Index of the last entry whose key ≤ `target`, -1 where there is none.

        `key` and `key_at` pick another ascending field of the entry than the first. Raises OSError.
        """
        return self._find(target, (key or self.KEY).unpack_from, key_at)[0]

    def _find(
        self, target: int, unpack: Unpack, key_at: int = 0, guess: int | None = None
    ) -> tuple[int, bytes | bytearray, int]:
        """Do `find_floor`. Return the entries that were read, too, and the index of their first.

        `guess`: an index near to the entry, most often; None: the middle.
        """
        low, high, block, first = self._find_block(target, unpack, key_at, guess)
        size = self.ENTRY_BYTES
        if guess is not None:
            for edge in (guess - _NEAR, guess + _NEAR):
                if low <= edge < high:
                    if unpack(block, (edge - first) * size + key_at)[0] <= target:
                        low = edge + 1
                    else:
                        high = edge
        while low < high:
            middle = (low + high) // 2
            if unpack(block, (middle - first) * size + key_at)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1, block, first

    def _find_block(
        self, target: int, unpack: Unpack, key_at: int, guess: int | None
    ) -> tuple[int, int, bytes | bytearray, int]:
        """Return low ≤ answer + 1 ≤ high, entries that have `low` to `high`, and their first."""
        size = self.ENTRY_BYTES
        block: bytes | bytearray = self._tail
        first = self._tail_first
        if block and unpack(block, key_at)[0] <= target:
            return first, self.entry_count, block, first
        low, high = 0, first
        count = _BLOCK_ENTRIES if guess is None else _NEAR_ENTRIES
        while low < high:
            middle = (low + high) // 2 if guess is None else guess
            first = max(low, min(middle - count // 2, high - count))
            end = min(high, first + count)
            block = self.entry_bytes(first, end - first)
            if unpack(block, key_at)[0] > target:
                high = first
            elif unpack(block, (end - 1 - first) * size + key_at)[0] <= target:
                low = end
            else:
                return first + 1, end - 1, block, first
            guess, count = None, _BLOCK_ENTRIES
        return low, high, block, first

    def cut(self, entry_count: int) -> None:
        """Keep the first `entry_count` entries, in memory and in the file. Raises OSError."""
        if entry_count < self._written or self._odd_bytes:
            handle = self._disk.handles.get(self.path, create=True)
            kept_count = min(self._written, entry_count)
            self._disk.files.truncate(handle, kept_count * self.ENTRY_BYTES)
            self._written = kept_count
            self._odd_bytes = 0
        self._last_key = None
        if entry_count < self.entry_count:
            self.entry_count = entry_count
            if entry_count >= self._tail_first:
                del self._tail[(entry_count - self._tail_first) * self.ENTRY_BYTES :]
            else:
                self._tail = bytearray()
                self._tail_first = entry_count


_OFFSET_ENTRY: Final = Struct(">ii")


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
        last = self._last_key
        if relative > (self._read_last_key() if last is None else last):
            self._tail += _OFFSET_ENTRY.pack(relative, position)
            self.entry_count += 1
            self._last_key = relative

    def entry(self, index: int) -> tuple[int, int]:
        """Return (offset, position) of one entry. Raises OSError."""
        relative, position = _OFFSET_ENTRY.unpack(self.entry_bytes(index))
        return self.base_offset + relative, position

    def last_entry(self) -> tuple[int, int]:
        """Return (offset, position); (base offset, 0) while there is none."""
        return self.entry(self.entry_count - 1) if self.entry_count else (self.base_offset, 0)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Return (offset, position) of the greatest entry ≤ `offset`; (base offset, 0) if none."""
        relative = offset - self.base_offset
        last_key = self._last_key
        if last_key is None:
            self._last_key = last_key = self._read_last_key()
        guess = self.entry_count * relative // last_key if last_key > 0 else 0
        index, block, first = self._find(relative, self.KEY.unpack_from, guess=guess)
        if index < first:  # the last one of the block before
            return self.entry(index) if index >= 0 else (self.base_offset, 0)
        relative, position = _OFFSET_ENTRY.unpack_from(block, (index - first) * self.ENTRY_BYTES)
        return self.base_offset + relative, position

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


NO_TIMESTAMP: Final = -1
_TIME_ENTRY: Final = Struct(">qi")
_TIME_ENTRY_OFFSET: Final = Struct(">i")


def read_last_entry(files: Files, path: str, base_offset: int) -> tuple[int, int]:
    """Return (timestamp, offset) of the last entry in the file, on any thread; (-1, -1) where it
    has none, or one that no closed segment ends with (0 is what preallocation leaves). Raises
    OSError.
    """
    handle = files.open_to_read(path)
    try:
        end = files.size_of(handle)
        entry = (
            files.pread(handle, _TIME_ENTRY.size, end - _TIME_ENTRY.size)
            if end >= _TIME_ENTRY.size
            else b""
        )
    finally:
        files.close(handle)
    if len(entry) != _TIME_ENTRY.size or end % _TIME_ENTRY.size:
        return NO_TIMESTAMP, -1
    timestamp, relative = _TIME_ENTRY.unpack(entry)
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
        last = self._last_key
        if timestamp > (self._read_last_key() if last is None else last):
            self._tail += _TIME_ENTRY.pack(timestamp, offset - self.base_offset)
            self.entry_count += 1
            self._last_key = timestamp

    def entry(self, index: int) -> tuple[int, int]:
        """Return (timestamp, offset) of one entry. Raises OSError."""
        timestamp, relative = _TIME_ENTRY.unpack(self.entry_bytes(index))
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
        self.cut(self.find_floor(relative - 1, _TIME_ENTRY_OFFSET, 8) + 1)

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


class IndexRule:
    """The state of one segment between two batches. Belongs to the code that fills its indexes."""

    __slots__ = ("bytes_since_entry", "max_timestamp", "offset_of_max_timestamp")

    def __init__(self, base_offset: int, max_timestamp: int = NO_TIMESTAMP) -> None:
        self.bytes_since_entry = 0
        self.max_timestamp = max_timestamp
        """The largest of all batches, ms."""
        self.offset_of_max_timestamp = base_offset
        """Last offset of the first batch that holds it."""

    def note(self, last_offset: int, max_timestamp: int, size_bytes: int, interval: int) -> bool:
        """Note the next batch. Return whether it gets an entry (`add_entry`).

        `interval`: `index.interval.bytes`. `max_timestamp` in ms.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_entry <= interval:
            self.bytes_since_entry += size_bytes
            return False
        self.bytes_since_entry = size_bytes
        return True

    def add_entry(
        self, offset_index: OffsetIndex, time_index: TimeIndex, last_offset: int, position: int
    ) -> None:
        """Add the entries of the batch that was noted last and begins at `position` (bytes)."""
        offset_index.append(last_offset, position)
        time_index.append(self.max_timestamp, self.offset_of_max_timestamp)

    def finish(self, time_index: TimeIndex) -> None:
        """Add an entry for the largest timestamp, unless the last entry has it: nothing follows."""
        if self.max_timestamp >= 0:
            time_index.append(self.max_timestamp, self.offset_of_max_timestamp)


INDEX_INTERVAL_BYTES: Final = 4096
"""How dense an index is that is made again while nobody knows the topic's configuration."""


def rebuild_indexes(
    base_offset: int,
    headers: Iterable[tuple[int, BatchHeader]],
    offset_index: OffsetIndex,
    time_index: TimeIndex,
) -> None:
    """Fill both indexes anew, and write them.

    `headers`: (position in bytes, header) of every batch. The last entry of the time index is the
    largest timestamp, as at a roll. Raises CorruptionError of a header that cannot be, OSError.
    """
    for index in (offset_index, time_index):
        index.cut(0)
    rule = IndexRule(base_offset)
    for position, header in headers:
        last_offset = header.last_offset
        if rule.note(last_offset, header.max_timestamp, header.size_bytes, INDEX_INTERVAL_BYTES):
            rule.add_entry(offset_index, time_index, last_offset, position)
    rule.finish(time_index)
    for index in (offset_index, time_index):
        index.create()
        index.write()


class SegmentIndexes:
    """Both indexes. They belong to the owner of the segment. Methods raise OSError."""

    __slots__ = ("_base_offset", "offset", "time")

    def __init__(self, disk: Disk, offset_path: str, time_path: str, base_offset: int) -> None:
        """Open nothing, but ask for the sizes of the files; a missing file is an empty index."""
        self._base_offset = base_offset
        self.offset = OffsetIndex(disk, offset_path, base_offset)
        """Constant after construction, like `time`."""
        self.time = TimeIndex(disk, time_path, base_offset)

    def can_be_right(self, log_size_bytes: int) -> bool:
        """Return whether both files are there and fit a `.log` of this size (bytes)."""
        try:
            self.offset.check(log_size_bytes)
            self.time.check()
        except (CorruptionError, FileNotFoundError):
            return False
        return True

    def rebuild(self, headers: Iterable[tuple[int, BatchHeader]]) -> None:
        """Fill both anew from the batches in `.log`: (position in bytes, header) of each, and write
        them. Raises CorruptionError for a header that no format has.
        """
        rebuild_indexes(self._base_offset, headers, self.offset, self.time)

    def read_last_keys(self) -> None:
        """Read the last entries where they are not in memory: an append touches no file then."""
        self.offset.read_last_key()
        self.time.read_last_key()

    @property
    def unwritten_count(self) -> int:
        """Number of offset index entries that are in memory only."""
        return self.offset.unwritten_count

    def write(self) -> None:
        """Write the entries that are in memory only. Nothing is lost where this raises."""
        self.offset.write()
        self.time.write()

    def release(self) -> bool:
        """Write, and give back memory and handles. Return whether there was anything to write."""
        has_unwritten = self.offset.unwritten_count > 0 or self.time.unwritten_count > 0
        self.offset.release()
        self.time.release()
        return has_unwritten

    def create(self) -> None:
        """Make the files that are absent."""
        self.offset.create()
        self.time.create()

    def truncate_to(self, offset: int) -> None:
        """Remove the entries of `offset` and above, in memory and in the files."""
        self.offset.truncate_to(offset)
        self.time.truncate_to(offset)

    def clear(self) -> None:
        """Remove all entries, in memory and in the files."""
        self.offset.cut(0)
        self.time.cut(0)

    def room(self, index_bytes_max: int) -> int:
        """Return how many entries both files still take, of `segment.index.bytes` each. The time
        index keeps one for the roll.
        """
        return min(
            index_bytes_max // OffsetIndex.ENTRY_BYTES - self.offset.entry_count,
            index_bytes_max // TimeIndex.ENTRY_BYTES - 1 - self.time.entry_count,
        )


UNFINISHED: Final = names.DELETED
"""A start removes files with this suffix."""


class IndexLoad:
    """A worker calls it, then the loop calls `apply`."""

    __slots__ = (
        "_base_offset",
        "_damage",
        "_disk",
        "_is_done",
        "_is_wanted",
        "_on_damaged",
        "_paths",
        "_size_bytes",
    )

    def __init__(
        self,
        disk: Disk,
        paths: tuple[str, str, str],
        base_offset: int,
        size_bytes: int,
        *,
        is_wanted: Callable[[], bool],
        on_damaged: Callable[[CorruptionError], None],
    ) -> None:
        """`paths`: of `.log`, offset index and time index. `size_bytes`: of `.log`. `is_wanted` is
        asked on the loop: is the segment in service, and has nobody opened its indexes?
        `on_damaged` is told there of a `.log` that has none.
        """
        self._disk = disk
        self._paths = paths
        self._base_offset = base_offset
        self._size_bytes = size_bytes
        self._is_wanted = is_wanted
        self._on_damaged = on_damaged
        # Set by the worker, read by the loop in `apply`.
        self._is_done = False
        self._damage: CorruptionError | None = None

    def __call__(self) -> None:
        """Make them. Raises nothing: the next reader is told why there are none."""
        log_path, *index_paths = self._paths
        disk = Disk(self._disk.files)
        try:
            offset_path, time_path = (path + UNFINISHED for path in index_paths)
            indexes = SegmentIndexes(disk, offset_path, time_path, self._base_offset)
            indexes.rebuild(walk_headers(disk, log_path, 0, self._size_bytes))
            self._is_done = True
        except CorruptionError as damage:
            self._damage = damage
        except OSError as error:
            logger.warning("cannot make the indexes of %s again: %s", log_path, error)
        finally:
            disk.close()

    def apply(self) -> None:
        """Put them in their place. On the loop."""
        if not self._is_wanted():
            return
        if self._damage is not None:
            self._on_damaged(self._damage)
        if not self._is_done:
            return
        try:
            for path in self._paths[1:]:
                self._disk.handles.forget(path)
                self._disk.files.replace(path + UNFINISHED, path)
        except OSError as error:
            logger.warning("cannot put %s in its place: %s", path, error)
