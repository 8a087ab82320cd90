"""The new segment that compaction writes: `….log.cleaned` with its indexes, built from nothing.

Nobody else knows of these files before `segment_files` renames them; a crash leaves `.cleaned`
files, which the next start removes. Everything is synced when `finish` returns. Own handles, so any
thread may use one.

Source: Kafka LocalLog.createNewCleanedSegment, LogSegment.append; FORMAT.md sections 3 and 4.
Differs from Kafka, which adds at most one index entry per buffer it writes: here the index of a
compacted segment is as dense as that of any other.
"""

from struct import Struct
from typing import Final

from minibroker.errors import CorruptionError
from minibroker.storage import names
from minibroker.storage.files import Buffer, Files
from minibroker.storage.segment import RELATIVE_OFFSET_MAX
from minibroker.storage.time_index import NO_TIMESTAMP
from minibroker.storage.txn_index import AbortedTransaction, encode_entry

SYNC_BYTES: Final = 8 << 20
"""Synced as it grows: a whole segment at once would hold up everybody who writes to the disk."""
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class SegmentWriter:
    """One segment on its way. Every method raises OSError."""

    __slots__ = (
        "_base_offset",
        "_bytes_since_entry",
        "_directory",
        "_files",
        "_index_interval_bytes",
        "_log",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max",
        "_pending",
        "_size_bytes",
        "_synced_bytes",
        "_time_index",
        "_written_bytes",
    )

    def __init__(
        self, files: Files, directory: str, base_offset: int, index_interval_bytes: int
    ) -> None:
        """Makes an empty `.log.cleaned`; what an earlier try left goes."""
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._bytes_since_entry = 0
        self._size_bytes = self._written_bytes = self._synced_bytes = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max = base_offset
        self._offset_index = bytearray()
        self._time_index = bytearray()
        self._pending: list[Buffer] = []
        self._remove_files()
        self._log = files.open(self._path(names.LOG), create=True)

    @property
    def size_bytes(self) -> int:
        """What was added, written or not."""
        return self._size_bytes

    def _path(self, suffix: str) -> str:
        name = names.segment_file(self._base_offset, suffix)
        return f"{self._directory}/{name}{names.CLEANED}"

    def _remove_files(self) -> None:
        for suffix in names.SEGMENT_SUFFIXES:
            try:
                self._files.remove(self._path(suffix))
            except FileNotFoundError:
                continue  # as it should be

    def add(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Add one batch; it is kept by reference until `write`. Raises CorruptionError where its
        offset is out of a segment's reach.
        """
        if last_offset - self._base_offset > RELATIVE_OFFSET_MAX:
            raise CorruptionError(
                f"offset {last_offset} is beyond the reach of a segment that begins at "
                f"{self._base_offset}"
            )
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max = last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            relative = last_offset - self._base_offset
            self._offset_index += _OFFSET_ENTRY.pack(relative, self._size_bytes)
            self._add_time()
            self._bytes_since_entry = 0
        size = len(batch)
        self._bytes_since_entry += size
        self._size_bytes += size
        self._pending.append(batch)

    def _add_time(self) -> None:
        """An entry for the largest timestamp, if it is larger than the last entry's."""
        index = self._time_index
        last = _TIME_ENTRY.unpack_from(index, len(index) - _TIME_ENTRY.size)[0] if index else -1
        if self._max_timestamp > last:
            relative = self._offset_of_max - self._base_offset
            index += _TIME_ENTRY.pack(self._max_timestamp, relative)

    def write(self) -> int:
        """Hand what was added to the system; how many bytes."""
        if not self._pending:
            return 0
        content = b"".join(self._pending)
        self._pending = []
        self._files.write_all(self._log, [content], self._written_bytes)
        self._written_bytes += len(content)
        if self._written_bytes - self._synced_bytes >= SYNC_BYTES:
            self._files.sync(self._log)
            self._synced_bytes = self._written_bytes
        return len(content)

    def finish(self, aborted: list[AbortedTransaction], modified_ms: int) -> None:
        """Write the rest and the indexes, sync all of it.

        `aborted`: transactions whose markers are in the segment. `modified_ms`: the time that
        `.log` shows, so that a segment does not look young because it was compacted.
        """
        self.write()
        self._files.sync(self._log)
        self._close()
        self._add_time()
        self._write_file(names.OFFSET_INDEX, bytes(self._offset_index))
        self._write_file(names.TIME_INDEX, bytes(self._time_index))
        if aborted:
            self._write_file(names.TXN_INDEX, b"".join(map(encode_entry, aborted)))
        self._files.set_modified_ms(self._path(names.LOG), modified_ms)

    def _write_file(self, suffix: str, content: bytes) -> None:
        handle = self._files.open(self._path(suffix), create=True)
        try:
            if content:
                self._files.write_all(handle, [content], 0)
            self._files.sync(handle)
        finally:
            self._files.close(handle)

    def discard(self) -> None:
        """Remove what was written: it is not wanted any more."""
        self._close()
        self._remove_files()

    def _close(self) -> None:
        if self._log >= 0:
            self._files.close(self._log)
            self._log = -1
