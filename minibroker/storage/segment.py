"""One segment of a log: `<base offset>.log` with its offset, time and transaction index.

On the way of a Produce request: `partition_log` stages batches and writes them to the active
segment's `.log` in one call, then tells the segment what was written (`note_append`), which keeps
the indexes and the largest timestamp. On the way of a Fetch: `find_batch` turns an offset into a
position, `read` into a slice of bytes, mapped or read.

Nothing is opened before it is needed: a segment of an idle partition is this object and no more. In
a crash the file may lose, or keep a torn part of, what was appended after the last fsync;
`recovery` cuts it there. Sizes and positions are bytes of `.log`; `size_bytes` counts acknowledged
bytes only.

Source: Kafka LogSegment; FORMAT.md sections 2 to 4.
"""

import logging
from collections.abc import Iterator
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Final

from minibroker.errors import CorruptionError
from minibroker.records.batch import HEADER_BYTES, BatchHeader, read_header
from minibroker.storage import names
from minibroker.storage.disk import Disk
from minibroker.storage.index_rebuild import rebuild
from minibroker.storage.offset_index import OffsetIndex
from minibroker.storage.time_index import NO_TIMESTAMP, TimeIndex
from minibroker.storage.txn_index import TxnIndex

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_log = logging.getLogger(__name__)

_UNKNOWN: Final = -2
"""A timestamp or size not looked up yet; no file has it."""

_NO_TAIL: Final = 1 << 63
"""`tail_offset` of a segment that was not written to: no offset reaches it."""

_PREFIX: Final = Struct(">qiib")
_PREFIX_BYTES: Final = 27
"""From the base offset to the last offset delta: what the search for an offset reads of a batch."""
_DELTA: Final = Struct(">i")
_DELTA_AT: Final = 23
_LENGTH_MIN: Final = 14
_LENGTH_FIELD_END: Final = 12

_SCAN_BYTES: Final = 8 << 10
"""Read at once while searching for an offset: two index intervals."""
_WALK_BYTES: Final = 64 << 10
"""Read at once while looking at every header."""
COPY_BYTES_MAX: Final = 64 << 10
"""Slices up to here are read, larger ones mapped: where the two cost the same (see `read`)."""

_service = Lock()
"""Held while the worker makes a file, and while a segment leaves service: not both at once."""


def roll_jitter_ms(config: "TopicConfig") -> int:
    """A random part of `segment.jitter.ms`, so that many partitions do not roll at once."""
    limit = min(config.segment_jitter_ms, config.segment_ms)
    if limit <= 0:
        return 0
    from random import randrange  # noqa: PLC0415  (rarely configured, and the import is not free)

    return randrange(limit)


class Segment:
    """One segment. Owned by one PartitionLog, used by one thread; `create_files` by any."""

    __slots__ = (
        "_disk",
        "_first_timestamp",
        "_is_gone",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_size_bytes",
        "_time_index",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "log_path",
        "roll_jitter_ms",
        "tail_offset",
        "tail_position",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        roll_jitter_ms: int = 0,
    ) -> None:
        """Touches no file. `created_ms`: when segments without timestamps began to age."""
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.log_path = f"{directory}/{names.segment_file(base_offset, names.LOG)}"
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.bytes_since_index_entry = 0
        self._is_gone = False
        # Where the last write began: consumers that keep up ask for just that.
        self.tail_offset = _NO_TAIL
        self.tail_position = 0
        self._size_bytes = _UNKNOWN
        self._first_timestamp = _UNKNOWN
        self._max_timestamp = _UNKNOWN
        self._offset_of_max_timestamp = base_offset
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None

    def begin_empty(self) -> None:
        """Begin as a new, empty segment; no file is touched."""
        self._size_bytes = 0
        self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP

    @property
    def paths(self) -> list[str]:
        """What a segment with a record has; made by the worker, or by who writes first."""
        return [self.log_path, self.path(names.OFFSET_INDEX), self.path(names.TIME_INDEX)]

    def create_files(self) -> None:
        """Make the files that are absent, on any thread. Raises OSError.

        Not where the segment has left service: under its names, or in a directory that was made
        again, an empty `.log` would be taken for a segment of the log by the next start.
        """
        for path in self.paths:
            with _service:
                if self._is_gone:
                    return
                self._disk.files.create(path)

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{names.segment_file(self.base_offset, suffix)}"

    # --- what the segment holds -------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        """Size of the acknowledged part of `.log`. Raises OSError."""
        if self._size_bytes < 0:
            self._size_bytes = self._disk.files.size_at(self.log_path)
        return self._size_bytes

    @property
    def is_surveyed(self) -> bool:
        """Are size and largest timestamp known without a look into the files?"""
        return self._size_bytes >= 0 and self._max_timestamp != _UNKNOWN

    def note_survey(self, size_bytes: int, max_timestamp: int, offset: int) -> None:
        """What a worker read of a closed segment; -1: it did not. What is known stays."""
        if self._size_bytes < 0:
            self._size_bytes = size_bytes
        if self._max_timestamp == _UNKNOWN and (max_timestamp >= 0 or self._size_bytes == 0):
            self._max_timestamp, self._offset_of_max_timestamp = max_timestamp, offset

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._offset_index, self._time_index = self._open_indexes()
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._offset_index, self._time_index = self._open_indexes()
        return self._time_index

    def _open_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes; made again from `.log` where one is missing or cannot be right."""
        if self._size_bytes == 0:
            offset_index, time_index = self._unchecked_indexes()
            offset_index.cut(0)
            time_index.cut(0)
            return offset_index, time_index
        if self.open_sound_indexes():
            return self.offset_index, self.time_index
        offset_index, time_index = self._unchecked_indexes()
        _log.warning("the indexes of %s are missing or damaged and made again", self.log_path)
        rebuild(self.base_offset, self.headers(), offset_index, time_index)
        return offset_index, time_index

    def _unchecked_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        return (
            OffsetIndex(self._disk, self.path(names.OFFSET_INDEX), self.base_offset),
            TimeIndex(self._disk, self.path(names.TIME_INDEX), self.base_offset),
        )

    def open_sound_indexes(self) -> bool:
        """Open both indexes if they are there and can be right; else nothing changes."""
        offset_index, time_index = self._unchecked_indexes()
        try:
            offset_index.check(self.size_bytes)
            time_index.check()
        except (CorruptionError, FileNotFoundError):
            return False
        self._offset_index, self._time_index = offset_index, time_index
        if self._has_sound_times(time_index):
            return True
        self._offset_index = self._time_index = None
        return False

    def _has_sound_times(self, time_index: TimeIndex) -> bool:
        """The last entry names an offset that is there; no entry at all: no record has a time.

        (Every closed segment with a timestamp has an entry, `close` adds it.)
        """
        if time_index.entry_count:
            return self.find_batch(time_index.last_entry()[1]) is not None
        first = next(self.headers(), None)
        return first is None or first[1].max_timestamp < 0

    @property
    def txn_index(self) -> TxnIndex:
        return TxnIndex(self._disk, self.path(names.TXN_INDEX))

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp in the segment, ms; -1 where no record has one. Raises OSError."""
        if self._max_timestamp == _UNKNOWN:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the batch that holds `max_timestamp`."""
        _ = self.max_timestamp
        return self._offset_of_max_timestamp

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch, ms: the segment's age counts from it. -1: none."""
        if self._first_timestamp == _UNKNOWN:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first[1].max_timestamp
        return self._first_timestamp

    @property
    def modified_ms(self) -> int:
        """When `.log` was last written, ms. Raises OSError."""
        try:
            return self._disk.files.modified_ms(self.log_path)
        except FileNotFoundError:
            return self.created_ms  # a new segment, and the worker has not made the file yet

    @property
    def max_offset(self) -> int:
        """The largest offset that the index's four bytes can say."""
        return self.base_offset + RELATIVE_OFFSET_MAX

    def index_room(self, index_bytes_max: int) -> int:
        """How many entries both indexes still take (the time index keeps one for the roll)."""
        return min(
            index_bytes_max // OffsetIndex.ENTRY_BYTES - self.offset_index.entry_count,
            index_bytes_max // TimeIndex.ENTRY_BYTES - 1 - self.time_index.entry_count,
        )

    def age_ms(self, now_ms: int, timestamp: int) -> int:
        """What `segment.ms` is compared with: by the records' clock, or by ours where they have
        none.
        """
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    # --- append ---------------------------------------------------------------------------------

    def note_append(
        self, last_offset: int, max_timestamp: int, size_bytes: int, index_interval_bytes: int
    ) -> bool:
        """Account for `size_bytes` written at the end of `.log`: indexes, size, largest timestamp.

        `max_timestamp` belongs to the batch that ends with `last_offset`. Returns whether an index
        entry was added; entries stay in memory until `write_indexes`.
        """
        position = self._size_bytes
        if position == 0:
            self._first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        self._size_bytes = position + size_bytes
        if self.bytes_since_index_entry <= index_interval_bytes:
            self.bytes_since_index_entry += size_bytes
            return False
        self.offset_index.append(last_offset, position)
        self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
        self.bytes_since_index_entry = size_bytes
        return True

    def write_indexes(self) -> None:
        """Write index entries that are in memory only. Raises OSError; nothing is lost then."""
        if self._offset_index is not None:
            self._offset_index.write()
        if self._time_index is not None:
            self._time_index.write()

    @property
    def unwritten_entry_count(self) -> int:
        return self._offset_index.unwritten_count if self._offset_index is not None else 0

    def become_inactive(self) -> None:
        """Finish the indexes: the largest timestamp gets an entry (T6). Raises OSError."""
        self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.release()
        self.time_index.release()

    def close(self) -> None:
        """Finish the indexes as at a roll, where this run touched them. Raises OSError."""
        if self._max_timestamp not in (_UNKNOWN, NO_TIMESTAMP):
            self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
        if self._offset_index is not None:
            self._offset_index.release()
        if self._time_index is not None:
            self._time_index.release()
        self._disk.handles.forget(self.log_path)

    # --- read -----------------------------------------------------------------------------------

    def find_batch(
        self, offset: int, from_position: int | None = None
    ) -> tuple[int, int, int] | None:
        """The first batch whose last offset is ≥ `offset`: (position, size in bytes, last offset).

        None where every record is below `offset`. `from_position` (the start of a batch at or
        before it) replaces the look into the index. Raises CorruptionError, OSError.
        """
        size = self.size_bytes
        if from_position is not None:
            position = from_position
        elif offset >= self.tail_offset:
            position = self.tail_position
        else:
            position = self.offset_index.lookup(offset)[1]
        pread = self._disk.files.pread
        chunk, chunk_at = b"", position
        while position < size:
            at = position - chunk_at
            if at + _PREFIX_BYTES > len(chunk):
                handle = self._disk.handles.get(self.log_path)
                chunk, chunk_at, at = pread(handle, _SCAN_BYTES, position), position, 0
                if len(chunk) < (_PREFIX_BYTES if chunk[16:17] == b"\2" else _PREFIX.size):
                    raise CorruptionError(f"{self.log_path}: ends inside the batch at {position}")
            last_offset, length, _, magic = _PREFIX.unpack_from(chunk, at)
            if length < _LENGTH_MIN:
                raise CorruptionError(
                    f"{self.log_path}: length {length} in the batch at {position}"
                )
            if magic == 2:
                last_offset += _DELTA.unpack_from(chunk, at + _DELTA_AT)[0]
            if last_offset >= offset:
                return position, length + _LENGTH_FIELD_END, last_offset
            position += length + _LENGTH_FIELD_END
        return None

    def read(self, position: int, size: int) -> memoryview:
        """`size` bytes of `.log` from `position`, read-only; they must exist. Raises OSError.

        Up to 64 KiB are copied, more is mapped: a map costs some 15 µs where its window is new and
        page faults when the kernel sends it, a copy of 64 KiB about 6 µs and no memory that stays.
        """
        handle = self._disk.handles.get(self.log_path)
        if size <= COPY_BYTES_MAX:
            return memoryview(self._disk.files.pread(handle, size, position))
        return self._disk.windows.slice(self.log_path, handle, position, size, self.size_bytes)

    def headers(
        self, position: int = 0, end: int | None = None
    ) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every batch from `position` (the start of one) to `end`.

        Looks at headers only; a batch that reaches beyond the end is not given. Raises
        CorruptionError for a header no format has, OSError.
        """
        size = self.size_bytes if end is None else end
        pread = self._disk.files.pread
        chunk, chunk_at, wanted = b"", position, _WALK_BYTES
        while position + _PREFIX.size <= size:
            at = position - chunk_at
            if at + HEADER_BYTES > len(chunk):
                handle = self._disk.handles.get(self.log_path)
                chunk, chunk_at, at = pread(handle, wanted, position), position, 0
            header = read_header(chunk, at)
            if position + header.size_bytes > size:
                return
            yield position, header
            position += header.size_bytes
            # Between large batches only the headers are read.
            wanted = _WALK_BYTES if header.size_bytes < _SCAN_BYTES else HEADER_BYTES

    def read_next_offset(self) -> int:
        """One beyond the last offset in the file, the base offset where it is empty. Raises
        OSError.
        """
        next_offset = self.base_offset
        for _, header in self.headers(self.offset_index.last_entry()[1]):
            next_offset = header.last_offset + 1
        return next_offset

    # --- change ---------------------------------------------------------------------------------

    def cut(self, position: int) -> None:
        """Cut `.log` at `position`, where a batch ends; not the indexes. Raises OSError.

        No mapped slice beyond `position` may be in use: whoever touched it afterwards would end the
        process (SIGBUS). What is cut was never readable (a failed append, recovery) or belongs to a
        replica nobody reads from.
        """
        self._disk.windows.forget(self.log_path)
        self.tail_offset = _NO_TAIL
        self._disk.files.truncate(self._disk.handles.get(self.log_path, create=True), position)
        self._size_bytes = position

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove every batch that holds `offset` or more. Raises OSError, CorruptionError."""
        found = self.find_batch(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if found is not None:
            self.cut(found[0])
        if self.size_bytes == 0:
            self.created_ms = now_ms
            self._first_timestamp = NO_TIMESTAMP
        self.bytes_since_index_entry = 0
        self.read_max_timestamp()

    def read_max_timestamp(self) -> None:
        """Find the largest timestamp from the time index and what lies behind its last entry."""
        best, best_offset = self.time_index.last_entry()
        start = self.offset_index.lookup(best_offset)[1]
        for _, header in self.headers(start):
            if header.max_timestamp > best:
                best, best_offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._offset_of_max_timestamp = best, best_offset

    def reset_indexes(self, offset: int) -> None:
        """Cut the indexes to the entries below `offset` (all go at the base offset), to be filled
        again.

        Raises OSError.
        """
        offset_index, time_index = self._offset_index, self._time_index
        if offset_index is None or time_index is None or offset <= self.base_offset:
            offset_index, time_index = self._unchecked_indexes()
            offset_index.cut(0)
            time_index.cut(0)
        else:
            offset_index.truncate_to(offset)
            time_index.truncate_to(offset)
        self._offset_index, self._time_index = offset_index, time_index
        self._max_timestamp, self._offset_of_max_timestamp = time_index.last_entry()
        self._first_timestamp = _UNKNOWN
        self.bytes_since_index_entry = 0

    def create_indexes(self) -> None:
        """Make the index files where they are absent. Raises OSError."""
        self.offset_index.create()
        self.time_index.create()

    def assume_size(self, size_bytes: int) -> None:
        """Start counting from `size_bytes`: recovery walks the file and notes each batch again."""
        self._size_bytes = size_bytes

    def release(self) -> None:
        """Leave service, let go of handles and windows: the files are about to be renamed or
        removed.
        """
        with _service:
            self._is_gone = True
        for suffix in names.SEGMENT_SUFFIXES:
            self._disk.handles.forget(self.path(suffix))
        self._disk.windows.forget(self.log_path)

    def mark_deleted(self) -> list[str]:
        """Rename the files to `….deleted`; the new paths are returned. Raises OSError."""
        self.release()
        marked = []
        for suffix in names.SEGMENT_SUFFIXES:
            path = self.path(suffix)
            try:
                self._disk.files.replace(path, path + names.DELETED)
            except FileNotFoundError:
                continue  # a transaction index is rarely there
            marked.append(path + names.DELETED)
        return marked
