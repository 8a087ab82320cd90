"""One segment of a log, whole: what appends to it, cuts it and takes it out of service.

On the way of a Produce request: `partition_log` stages batches and writes them to the active
segment's `.log` in one call, then tells the segment what was written (`note_append`), which keeps
the indexes and the largest timestamp. `ReadableSegment` is the other half.

In a crash the file may lose, or keep a torn part of, what was appended after the last fsync;
`recovery` cuts it there.

Source: Kafka LogSegment; FORMAT.md sections 2 to 4.
"""

from threading import Lock
from typing import TYPE_CHECKING, Final

from minibroker.storage import names
from minibroker.storage.disk import Disk
from minibroker.storage.offset_index import OffsetIndex
from minibroker.storage.readable_segment import NO_TAIL, UNKNOWN, ReadableSegment
from minibroker.storage.time_index import NO_TIMESTAMP, TimeIndex

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

RELATIVE_OFFSET_MAX: Final = 2**31 - 1

_service = Lock()
"""Held while the worker makes a file, and while a segment leaves service: not both at once."""


def roll_jitter_ms(config: "TopicConfig") -> int:
    """A random part of `segment.jitter.ms`, so that many partitions do not roll at once."""
    limit = min(config.segment_jitter_ms, config.segment_ms)
    if limit <= 0:
        return 0
    from random import randrange  # noqa: PLC0415  (rarely configured, and the import is not free)

    return randrange(limit)


class Segment(ReadableSegment):
    """One segment. Owned by one PartitionLog, used by one thread; `create_files` by any."""

    __slots__ = ("_is_gone", "bytes_since_index_entry", "roll_jitter_ms")

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
        super().__init__(disk, directory, base_offset, created_ms=created_ms)
        self.roll_jitter_ms = roll_jitter_ms
        self.bytes_since_index_entry = 0
        self._is_gone = False

    def begin_empty(self) -> None:
        """Begin as a new, empty segment; no file is touched."""
        self._size_bytes = 0
        self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP

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

    # --- append ---------------------------------------------------------------------------------

    def prepare_append(self) -> None:
        """Read what `note_append` goes by, where it is not in memory; then that touches no file.

        Raises OSError, CorruptionError.
        """
        self.offset_index.read_last_key()
        self.time_index.read_last_key()
        _ = self.max_timestamp

    def note_append(
        self, last_offset: int, max_timestamp: int, size_bytes: int, index_interval_bytes: int
    ) -> bool:
        """Account for `size_bytes` written at the end of `.log`: indexes, size, largest timestamp.

        `max_timestamp` belongs to the batch that ends with `last_offset`. Returns whether an index
        entry was added; entries stay in memory until `write_indexes`. Cannot fail after
        `prepare_append`.
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

    def close(self) -> bool:
        """Finish the indexes as at a roll, where this run touched them. Return whether that wrote
        entries, which are not synced then. Raises OSError.
        """
        if self._max_timestamp not in (UNKNOWN, NO_TIMESTAMP):
            self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
        has_written = False
        for index in (self._offset_index, self._time_index):
            if index is not None:
                has_written |= index.unwritten_count > 0
                index.release()
        self._disk.handles.forget(self.log_path)
        return has_written

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

    # --- change ---------------------------------------------------------------------------------

    def cut(self, position: int) -> None:
        """Cut `.log` at `position`, where a batch ends; not the indexes. Raises OSError.

        No mapped slice beyond `position` may be in use: whoever touched it afterwards would end the
        process (SIGBUS). What is cut was never readable (a failed append, recovery) or belongs to a
        replica nobody reads from.
        """
        self._disk.windows.forget(self.log_path)
        self.tail_offset = NO_TAIL
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
        self._first_timestamp = UNKNOWN
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
        """Rename the files to `….deleted`; the new paths are returned. Raises OSError; the files
        have their names then, if the disk lets them.
        """
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
                for renamed in marked:
                    files.replace(renamed, renamed.removesuffix(names.DELETED))
                raise
            marked.append(path + names.DELETED)
        return marked
