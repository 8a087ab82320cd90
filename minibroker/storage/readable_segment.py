"""The reading half of a segment: `<base offset>.log` with its offset, time and transaction index.

On the way of a Fetch: `find_batch` turns an offset into a position, `read` into a slice of bytes,
mapped or read. Lookups by time and retention ask for timestamps and sizes. `Segment` adds what
writes.

Nothing is opened before it is needed: a segment of an idle partition is this object and no more.
Sizes and positions are bytes of `.log`; `size_bytes` counts acknowledged bytes only.

Source: Kafka LogSegment; FORMAT.md sections 2 to 4.
"""

import logging
from collections.abc import Iterator
from struct import Struct
from typing import Final

from minibroker.errors import CorruptionError
from minibroker.records.batch import HEADER_BYTES, BatchHeader, read_header
from minibroker.storage import names
from minibroker.storage.disk import Disk
from minibroker.storage.index_rebuild import rebuild
from minibroker.storage.offset_index import OffsetIndex
from minibroker.storage.time_index import NO_TIMESTAMP, TimeIndex
from minibroker.storage.txn_index import TxnIndex

_log = logging.getLogger(__name__)

UNKNOWN: Final = -2
"""A timestamp or size not looked up yet; no file has it."""

NO_TAIL: Final = 1 << 63
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


class ReadableSegment:
    """A segment as a reader sees it. Used by one thread."""

    __slots__ = (
        "_disk",
        "_first_timestamp",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_size_bytes",
        "_time_index",
        "base_offset",
        "created_ms",
        "directory",
        "log_path",
        "tail_offset",
        "tail_position",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, *, created_ms: int) -> None:
        """Touches no file. `created_ms`: when segments without timestamps began to age."""
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.log_path = f"{directory}/{names.segment_file(base_offset, names.LOG)}"
        self.created_ms = created_ms
        # Where the last write began: consumers that keep up ask for just that.
        self.tail_offset = NO_TAIL
        self.tail_position = 0
        self._size_bytes = UNKNOWN
        self._first_timestamp = UNKNOWN
        self._max_timestamp = UNKNOWN
        self._offset_of_max_timestamp = base_offset
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None

    @property
    def paths(self) -> list[str]:
        """What a segment with a record has; made by the worker, or by who writes first."""
        return [self.log_path, self.path(names.OFFSET_INDEX), self.path(names.TIME_INDEX)]

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
        return self._size_bytes >= 0 and self._max_timestamp != UNKNOWN

    def note_survey(self, size_bytes: int, max_timestamp: int, offset: int) -> None:
        """What a worker read of a closed segment; -1: it did not. What is known stays."""
        if self._size_bytes < 0:
            self._size_bytes = size_bytes
        if self._max_timestamp == UNKNOWN and (max_timestamp >= 0 or self._size_bytes == 0):
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
        if self._max_timestamp == UNKNOWN:
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
        if self._first_timestamp == UNKNOWN:
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

    def age_ms(self, now_ms: int, timestamp: int) -> int:
        """What `segment.ms` is compared with: by the records' clock, or by ours where they have
        none.
        """
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

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
