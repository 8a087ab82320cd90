"""One segment of a log: `<base offset>.log` with its offset, time and transaction index; and the
ordered segments of a log, with the floor lookup every read starts with.

On the way of a Fetch: `find_batch` turns an offset into a position, `read` into a slice of bytes,
mapped or read. Lookups by time and retention ask for timestamps and sizes.

On the way of a Produce request: `partition_log` writes the staged batches to the `.log` of the
active segment in one call, then tells the segment what was written (`note_append`). That keeps the
indexes and the largest timestamp.

No file is opened before it is needed: a segment of an idle partition is this object and no more.
Sizes and positions are bytes of `.log`; `size_bytes` counts acknowledged bytes only. In a crash the
file may lose everything that was appended after the last fsync, or keep a torn part of it;
`recovery` cuts it there.

Source: Kafka LogSegment, LogSegments; FORMAT.md sections 2 to 4.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.storage import names
from minibroker.broker.storage.batch_walks import walk_headers
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.indexes import (
    NO_TIMESTAMP,
    IndexLoad,
    IndexRule,
    OffsetIndex,
    SegmentIndexes,
    TimeIndex,
)
from minibroker.broker.storage.txn_index import AbortedTransaction, TxnIndex
from minibroker.kafka.errors import CorruptionError, HalfChangedError
from minibroker.kafka.records.batch import LENGTH_FIELD_END, BatchHeader

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig


logger = logging.getLogger(__name__)

UNKNOWN: Final = -2
"""A timestamp or size not looked up yet; no file has it."""

NO_TAIL: Final = 1 << 63
"""`tail_offset` of a segment that was not written to: no offset reaches it."""

RELATIVE_OFFSET_MAX: Final = 2**31 - 1

_PREFIX: Final = Struct(">qiib")
_PREFIX_BYTES: Final = 27
"""From the base offset to the last offset delta: what the search for an offset reads of a batch."""
_DELTA: Final = Struct(">i")
_DELTA_AT: Final = 23
_LENGTH_MIN: Final = 14

_SCAN_BYTES: Final = 8 << 10
"""Read at once while searching for an offset: two index intervals."""
_SEARCH_BYTES: Final = 32 << 10
"""Searched for an offset in the bytes of a large read."""
COPY_BYTES_MAX: Final = 64 << 10
"""Slices up to here are read, larger ones mapped: where the two cost the same (see `read`)."""


def roll_jitter_ms(config: TopicConfig) -> int:
    """Return a random part of `segment.jitter.ms`, so that many partitions do not roll at once."""
    limit = min(config.segment_jitter_ms, config.segment_ms)
    if limit <= 0:
        return 0
    from random import randrange  # noqa: PLC0415  (rarely configured, and the import is not free)

    return randrange(limit)


class Segment:
    """One segment. Its fields belong to the loop, or to the start that loads it. Paths and base
    offset are constant after construction; workers read those, and call `create_files`.
    """

    __slots__ = (
        "_damage",
        "_disk",
        "_first_timestamp",
        "_indexes",
        "_is_gone",
        "_size_bytes",
        "base_offset",
        "created_ms",
        "directory",
        "index_rule",
        "is_preallocated",
        "lacks_txn_index",
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
        """Touch no file. `created_ms`: when segments without timestamps began to age."""
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.log_path = f"{directory}/{names.segment_file(base_offset, names.LOG)}"
        self.created_ms = created_ms
        """When a segment without timestamps began to age, ms; a truncation to nothing sets it."""
        self.roll_jitter_ms = roll_jitter_ms
        """Constant: so much earlier than `segment.ms` says the log begins the next one."""
        self.is_preallocated = False
        """Is `.log` longer than what is written to it?"""
        self.tail_offset = NO_TAIL
        """Offset of the first record of the last write: consumers that keep up ask for just that.
        """
        self.tail_position = 0
        """The place in `.log` where that write begins, bytes."""
        self._size_bytes = UNKNOWN
        # Acknowledged bytes of `.log`; UNKNOWN until somebody asked.
        self._first_timestamp = UNKNOWN
        # Largest timestamp of the first batch, ms; UNKNOWN until somebody asked.
        self.index_rule = IndexRule(base_offset, UNKNOWN)
        """Its largest timestamp is UNKNOWN until `max_timestamp` was asked for."""
        self._indexes: SegmentIndexes | None = None
        # None until somebody asked.
        self._damage: CorruptionError | None = None
        # The reason why `.log` has no indexes, so that not each reader walks through it.
        self.lacks_txn_index = False
        """Is it known that there is no transaction index, so that nobody looks for its file again?
        The loop sets it."""
        self._is_gone = False
        # Set by the loop before names change, under `Disk.names_lock` where a worker may be in
        # `create_files`, which reads it.

    def begin_empty(self) -> None:
        """Begin as a new, empty segment; no file is touched."""
        self._size_bytes = 0
        self._first_timestamp = NO_TIMESTAMP
        self.index_rule = IndexRule(self.base_offset)

    def path(self, suffix: str) -> str:
        """Return the path of the file with this suffix."""
        return f"{self.directory}/{names.segment_file(self.base_offset, suffix)}"

    @property
    def paths(self) -> list[str]:
        """Return the files of a segment with a record. A worker makes them, or the first write
        does.
        """
        return [self.log_path, self.path(names.OFFSET_INDEX), self.path(names.TIME_INDEX)]

    def create_files(self) -> None:
        """Make the files that are absent, on any thread. Raises OSError.

        Not where the segment has left service: under its names, or in a directory that was made
        again, an empty `.log` would be taken for a segment of the log by the next start.
        """
        for path in self.paths:
            with self._disk.names_lock:
                if self._is_gone:
                    return
                self._disk.files.create(path)

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of `.log` are written, not preallocated. Raises OSError."""
        if self._size_bytes < 0:
            self._size_bytes = self._disk.files.size_at(self.log_path)
        return self._size_bytes

    @property
    def is_surveyed(self) -> bool:
        """Return whether size and largest timestamp are known without a look into the files."""
        return self._size_bytes >= 0 and self.index_rule.max_timestamp != UNKNOWN

    @property
    def has_size(self) -> bool:
        """Return whether the size is known without a look into the files."""
        return self._size_bytes >= 0

    def note_survey(self, size_bytes: int, max_timestamp: int, offset: int) -> None:
        """Take over what a worker read of a closed segment; -1: it did not. Known values stay."""
        if self._size_bytes < 0:
            self._size_bytes = size_bytes
        rule = self.index_rule
        if rule.max_timestamp == UNKNOWN and (max_timestamp >= 0 or self._size_bytes == 0):
            rule.max_timestamp, rule.offset_of_max_timestamp = max_timestamp, offset

    @property
    def max_timestamp(self) -> int:
        """Return the largest timestamp in ms, -1 where no record has one. Raises OSError."""
        rule = self.index_rule
        if rule.max_timestamp == UNKNOWN:
            rule.max_timestamp, rule.offset_of_max_timestamp = self.time_index.last_entry()
        return rule.max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """Return the last offset of the batch that holds `max_timestamp`."""
        _ = self.max_timestamp
        return self.index_rule.offset_of_max_timestamp

    @property
    def first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch in ms, -1: none. From there the age of
        the segment counts.
        """
        if self._first_timestamp == UNKNOWN:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first[1].max_timestamp
        return self._first_timestamp

    @property
    def modified_ms(self) -> int:
        """Return when `.log` was last written, ms. Raises OSError."""
        try:
            return self._disk.files.modified_ms(self.log_path)
        except FileNotFoundError:
            return self.created_ms  # a new segment, and the worker has not made the file yet

    def age_ms(self, now_ms: int, timestamp: int) -> int:
        """Return the age that `segment.ms` is compared with: by the records' clock, or by ours
        where they have none.
        """
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    @property
    def max_offset(self) -> int:
        """Return the largest offset that the index's four bytes can say."""
        return self.base_offset + RELATIVE_OFFSET_MAX

    @property
    def indexes(self) -> SegmentIndexes:
        """Return offset and time index; made again from `.log` where one is missing or cannot be
        right.

        Raises OSError, CorruptionError.
        """
        indexes = self._indexes
        if indexes is None:
            indexes = self._indexes = self._open_indexes()
        return indexes

    @property
    def offset_index(self) -> OffsetIndex:
        return (self._indexes or self.indexes).offset

    @property
    def time_index(self) -> TimeIndex:
        return (self._indexes or self.indexes).time

    @property
    def txn_index(self) -> TxnIndex:
        return TxnIndex(self._disk, self.path(names.TXN_INDEX))

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Write an entry of the transaction index. On the loop. Raises OSError."""
        self.lacks_txn_index = False
        self.txn_index.append(aborted)

    def replace_aborted(self, entries: Sequence[AbortedTransaction]) -> None:
        """Make `entries` all that is in the transaction index. Raises OSError."""
        self.lacks_txn_index = False
        self.txn_index.replace(entries)

    def _open_indexes(self) -> SegmentIndexes:
        if self._damage is not None:
            raise CorruptionError(str(self._damage))
        indexes = self._unchecked_indexes()
        if self._size_bytes == 0:
            indexes.clear()
        elif not self._are_sound(indexes):
            logger.warning("the indexes of %s are missing or damaged and made again", self.log_path)
            if self._disk.is_resident_only:
                raise self._disk.cold(f"the indexes of {self.log_path}", self._rebuilding())
            indexes = self._unchecked_indexes()
            try:
                indexes.rebuild(self.headers())
            except CorruptionError as error:
                self._damage = error
                raise
        return indexes

    def _rebuilding(self) -> IndexLoad:
        paths = self.log_path, self.path(names.OFFSET_INDEX), self.path(names.TIME_INDEX)
        return IndexLoad(
            self._disk,
            paths,
            self.base_offset,
            self.size_bytes,
            is_wanted=lambda: self._indexes is None and not self._is_gone,
            on_damaged=self._note_damage,
        )

    def _note_damage(self, damage: CorruptionError) -> None:
        self._damage = damage

    def _unchecked_indexes(self) -> SegmentIndexes:
        return SegmentIndexes(
            self._disk,
            self.path(names.OFFSET_INDEX),
            self.path(names.TIME_INDEX),
            self.base_offset,
        )

    def open_sound_indexes(self) -> bool:
        """Open both indexes if they are there and can be right; return whether they are."""
        indexes = self._unchecked_indexes()
        is_sound = self._are_sound(indexes)
        if is_sound:
            self._indexes = indexes
        return is_sound

    def _are_sound(self, indexes: SegmentIndexes) -> bool:
        """Return whether both files can be right, and the last time leads to a batch.

        A closed segment with a timestamp has at least one entry of the time index: `close` adds it.
        """
        if not indexes.can_be_right(self.size_bytes):
            return False
        if indexes.time.entry_count:
            offset = indexes.time.last_entry()[1]
            return self.find_batch(offset, indexes.offset.lookup(offset)[1]) is not None
        first = next(self.headers(), None)
        return first is None or first[1].max_timestamp < 0

    def peek_position(self, offset: int) -> int:
        """Return the start of a batch at or before `offset`, from the index as it is; 0 where that
        is missing or damaged. No file is changed. Raises OSError.
        """
        if self._indexes is not None:
            return self._indexes.offset.lookup(offset)[1]
        indexes = self._unchecked_indexes()
        return indexes.offset.lookup(offset)[1] if indexes.can_be_right(self.size_bytes) else 0

    def find_batch(
        self, offset: int, from_position: int | None = None
    ) -> tuple[int, int, int] | None:
        """Return the first batch whose last offset is ≥ `offset`: (position, size in bytes, last
        offset).

        None where every record is below `offset`. `from_position` (the start of a batch at or
        before it) replaces the look into the index. Raises CorruptionError, OSError.
        """
        size = self.size_bytes
        position = self._search_start(offset) if from_position is None else from_position
        chunk: bytes | bytearray = b""
        chunk_at = position
        while position < size:
            at = position - chunk_at
            if at + _PREFIX_BYTES > len(chunk):
                chunk = self._disk.pread(self.log_path, _SCAN_BYTES, position)
                chunk_at, at = position, 0
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
                return position, length + LENGTH_FIELD_END, last_offset
            position += length + LENGTH_FIELD_END
        return None

    def _search_start(self, offset: int) -> int:
        """Return the start of a batch at or before `offset`. Raises OSError."""
        if offset >= self.tail_offset:
            return self.tail_position
        return self.offset_index.lookup(offset)[1]

    def read_around(
        self, offset: int, max_bytes: int
    ) -> tuple[memoryview, int, tuple[int, int, int]] | None:
        """Do `find_batch` and `read` with one look at the file, for a read that is mapped anyway.

        Return bytes of `.log`, their position, and the batch as `find_batch` gives it. The bytes
        reach from before the batch to some `max_bytes` behind its start. None where a search beyond
        them is needed. Raises CorruptionError, OSError.
        """
        start = self._search_start(offset)
        size = min(max_bytes + _SEARCH_BYTES, self.size_bytes - start)
        if size <= COPY_BYTES_MAX:
            return None
        around = self._disk.slice(self.log_path, start, size, self.size_bytes)
        at = 0
        while at <= min(_SEARCH_BYTES, size - _PREFIX_BYTES):
            last_offset, length, _, magic = _PREFIX.unpack_from(around, at)
            if length < _LENGTH_MIN:
                return None  # `find_batch` says what is wrong
            if magic == 2:
                last_offset += _DELTA.unpack_from(around, at + _DELTA_AT)[0]
            if last_offset >= offset:
                return around, start, (start + at, length + LENGTH_FIELD_END, last_offset)
            at += length + LENGTH_FIELD_END
        return None

    def read(self, position: int, size: int) -> memoryview:
        """Return `size` bytes of `.log` from `position`, read-only; they must exist. Raises
        OSError.

        Up to 64 KiB are copied, more is mapped: a map costs some 15 µs where its window is new and
        page faults when the kernel sends it, a copy of 64 KiB about 6 µs and no memory that stays.
        """
        if size <= COPY_BYTES_MAX:
            return memoryview(self._disk.pread(self.log_path, size, position)).toreadonly()
        return self._disk.slice(self.log_path, position, size, self.size_bytes)

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of every batch from `position` (the start of one) on.

        Only headers are looked at; a batch that reaches beyond the end is not given. Raises
        CorruptionError for a header no format has, OSError.
        """
        return walk_headers(self._disk, self.log_path, position, self.size_bytes)

    def read_next_offset(self) -> int:
        """Return the offset behind the last record in the file, the base offset where it is empty.
        Raises OSError.
        """
        next_offset = self.base_offset
        for _, header in self.headers(self.offset_index.last_entry()[1]):
            next_offset = header.last_offset + 1
        return next_offset

    def prepare_append(self) -> None:
        """Read what `note_append` goes by, where it is not in memory; then that touches no file.

        Raises OSError, CorruptionError.
        """
        (self._indexes or self.indexes).read_last_keys()
        _ = self.max_timestamp

    def note_append(
        self, last_offset: int, max_timestamp: int, size_bytes: int, index_interval_bytes: int
    ) -> bool:
        """Account for `size_bytes` written at the end of `.log`: indexes, size, largest timestamp.

        `max_timestamp` belongs to the batch that ends with `last_offset`. Return whether an index
        entry was added; entries stay in memory until `write_indexes`. Cannot fail after
        `prepare_append`.
        """
        position = self._size_bytes
        if position == 0:
            self._first_timestamp = max_timestamp
        self._size_bytes = position + size_bytes
        rule = self.index_rule
        if not rule.note(last_offset, max_timestamp, size_bytes, index_interval_bytes):
            return False
        indexes = self._indexes or self.indexes
        rule.add_entry(indexes.offset, indexes.time, last_offset, position)
        return True

    def write_indexes(self) -> None:
        """Write index entries that are in memory only. Raises OSError; nothing is lost then."""
        if self._indexes is not None:
            self._indexes.write()

    @property
    def unwritten_entry_count(self) -> int:
        """Return how many entries of the offset index are in memory only."""
        return 0 if self._indexes is None else self._indexes.unwritten_count

    def index_room(self, index_bytes_max: int) -> int:
        """Return how many entries both indexes still take, of `segment.index.bytes` each."""
        return self.indexes.room(index_bytes_max)

    def preallocate(self, size_bytes: int) -> None:
        """Give `.log`, which is empty, this length on the disk; `size_bytes` stays 0. Raises
        OSError.
        """
        self._set_length(size_bytes)
        self.is_preallocated = True

    def trim(self) -> bool:
        """Cut a `.log` that was preallocated to what is written. Return whether it was one. Raises
        OSError.
        """
        is_longer = self.is_preallocated
        if is_longer:
            self.cut(self.size_bytes)
        return is_longer

    def become_inactive(self) -> None:
        """Give the files their final form: the largest timestamp gets an entry, `.log` its length.
        Raises OSError.
        """
        _ = self.max_timestamp
        self.index_rule.finish(self.time_index)
        self.indexes.release()
        self.trim()

    def close(self) -> bool:
        """Finish the indexes as at a roll, where this run touched them. Return whether that wrote
        entries, which are not synced then. Raises OSError.
        """
        if self.index_rule.max_timestamp not in (UNKNOWN, NO_TIMESTAMP):
            self.index_rule.finish(self.time_index)
        has_written = self._indexes is not None and self._indexes.release()
        self._disk.handles.forget(self.log_path)
        return has_written

    def cut(self, position: int) -> None:
        """Cut `.log` at `position`, where a batch ends; not the indexes. Raises OSError.

        Mapped slices that are in use keep their bytes: an answer with what is cut may be on its
        way to a consumer.
        """
        self._disk.windows.cut(self.log_path, position)
        self.tail_offset = NO_TAIL
        self._set_length(position)
        self._size_bytes = position
        self.is_preallocated = False

    def _set_length(self, size_bytes: int) -> None:
        self._disk.files.truncate(self._disk.handles.get(self.log_path, create=True), size_bytes)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove every batch that holds `offset` or more. Raises OSError, CorruptionError."""
        batch = self.find_batch(offset)
        self.indexes.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if batch is not None:
            self.cut(batch[0])
        if self.size_bytes == 0:
            self.created_ms = now_ms
            self._first_timestamp = NO_TIMESTAMP
        self.index_rule.bytes_since_entry = 0
        self.read_max_timestamp()

    def read_max_timestamp(self) -> None:
        """Find the largest timestamp from the time index and what lies behind its last entry.

        Raises OSError, CorruptionError.
        """
        best, best_offset = self.time_index.last_entry()
        start = self.offset_index.lookup(best_offset)[1]
        for _, header in self.headers(start):
            if header.max_timestamp > best:
                best, best_offset = header.max_timestamp, header.last_offset
        self.index_rule.max_timestamp = best
        self.index_rule.offset_of_max_timestamp = best_offset

    def reset_indexes(self, offset: int) -> None:
        """Cut the indexes to the entries below `offset` (all go at the base offset): recovery fills
        them again. Raises OSError.
        """
        if self._indexes is None or offset <= self.base_offset:
            self._indexes = self._unchecked_indexes()
            self._indexes.clear()
        else:
            self._indexes.truncate_to(offset)
        rule = self.index_rule
        rule.max_timestamp, rule.offset_of_max_timestamp = self._indexes.time.last_entry()
        rule.bytes_since_entry = 0
        self._first_timestamp = UNKNOWN

    def create_indexes(self) -> None:
        """Make the index files where they are absent. Raises OSError."""
        self.indexes.create()

    def assume_size(self, size_bytes: int) -> None:
        """Start counting from `size_bytes`: recovery walks the file and notes each batch again."""
        self._size_bytes = size_bytes

    def release(self) -> None:
        """Leave service, let go of handles and windows: the files are about to be renamed or
        removed.
        """
        self._is_gone = True
        for suffix in names.SEGMENT_SUFFIXES:
            self._disk.handles.forget(self.path(suffix))
        self._disk.windows.forget(self.log_path)

    def mark_deleted(self) -> list[str]:
        """Rename the files to `….deleted`; return the new paths. Raises OSError; the files have
        their names then. Raises HalfChangedError where the disk does not let them.
        """
        with self._disk.names_lock:
            self.release()
        files = self._disk.files
        marked: list[str] = []
        for suffix in names.SEGMENT_SUFFIXES:
            path = self.path(suffix)
            try:
                files.replace(path, path + names.DELETED)
            except FileNotFoundError:
                continue  # a transaction index is rarely there
            except OSError:
                self._take_names_back(marked)
                raise
            marked.append(path + names.DELETED)
        return marked

    def _take_names_back(self, marked: list[str]) -> None:
        """Give renamed files their names again. Raises HalfChangedError."""
        try:
            for path in marked:
                self._disk.files.replace(path, path.removesuffix(names.DELETED))
        except OSError as error:
            raise HalfChangedError(
                f"cannot put {self.log_path} back in service: {error}",
                log_directory=self.directory.rpartition("/")[0] or "/",
                cause=error,
            ) from error
        self.return_to_service()

    def return_to_service(self) -> None:
        """Be in service again, under the names that the files have."""
        self._is_gone = False


class Segments:
    """Segments by base offset, ascending. The last one is the active one.

    Belongs to the loop, which replaces both lists at once where another thread may read.
    """

    __slots__ = ("_bases", "_items")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._items: list[Segment] = []

    def add(self, segment: Segment) -> None:
        """Insert by base offset; one with the same base offset is replaced."""
        place = bisect_right(self._bases, segment.base_offset)
        if place and self._bases[place - 1] == segment.base_offset:
            self._items[place - 1] = segment
        else:
            self._bases.insert(place, segment.base_offset)
            self._items.insert(place, segment)

    def remove(self, base_offset: int) -> None:
        """Raises ValueError where there is none."""
        place = self._bases.index(base_offset)
        del self._bases[place], self._items[place]

    def replace(self, old: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Take `old` out and put `new` in at once: another thread that asks for `first` meanwhile
        sees the list as it was or as it is.
        """
        replaced_bases = {segment.base_offset for segment in old}
        items = [segment for segment in self._items if segment.base_offset not in replaced_bases]
        self._items = sorted([*items, *new], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._items]

    def floor(self, offset: int) -> Segment | None:
        """Return the segment with the greatest base offset ≤ `offset`."""
        place = bisect_right(self._bases, offset)
        return self._items[place - 1] if place else None

    def higher(self, base_offset: int) -> Segment | None:
        """Return the segment behind the one with this base offset."""
        place = bisect_right(self._bases, base_offset)
        return self._items[place] if place < len(self._items) else None

    def since(self, offset: int) -> list[Segment]:
        """Return the floor segment of `offset` and every one behind it; all where there is no
        floor.
        """
        return self._items[max(bisect_right(self._bases, offset) - 1, 0) :]

    def find_batch(self, offset: int) -> tuple[Segment, tuple[int, int, int] | None]:
        """Return the first batch that ends at `offset` or later, as `Segment.find_batch` gives it,
        and its segment; the last segment and None where compaction took every such batch.

        Raises OSError, CorruptionError.
        """
        segment = self.floor(offset) or self.first
        batch = segment.find_batch(offset)
        while batch is None:
            higher = self.higher(segment.base_offset)
            if higher is None:
                break
            segment = higher
            batch = segment.find_batch(offset)
        return segment, batch

    @property
    def first(self) -> Segment:
        return self._items[0]

    @property
    def last(self) -> Segment:
        return self._items[-1]

    def hold(self, start: int, end: int) -> bool:
        """Do the first and the last segment begin where a log from `start` to `end` can have them?
        O(1): of the others it was asked when they were last.
        """
        bases = self._bases
        return bases[0] <= start and bases[-1] <= end and (len(bases) < 2 or bases[-2] < bases[-1])

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Segment]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)
