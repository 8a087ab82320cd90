"""The offset index and the time index of one segment: two files that are filled and cut together.

`Segment` opens them when somebody looks for an offset or a time, and keeps them beside its `.log`.

Source: Kafka LogSegment; FORMAT.md sections 3 and 4.
"""

from collections.abc import Iterable

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.index_rebuild import rebuild
from minibroker.broker.storage.offset_index import OffsetIndex
from minibroker.broker.storage.time_index import TimeIndex
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import BatchHeader


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
        rebuild(self._base_offset, headers, self.offset, self.time)

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
