"""The new segment that compaction writes: `….log.cleaned` with its indexes, built from nothing.

Nobody else knows of these files before `segment_files` renames them; a crash leaves `.cleaned`
files, which the next start removes. Everything is synced when `finish` returns. Own handles, so any
thread may use one.

Source: Kafka LocalLog.createNewCleanedSegment, LogSegment.append; FORMAT.md sections 3 and 4.
Differs from Kafka, which adds at most one index entry per buffer it writes: here the index of a
compacted segment is as dense as that of any other.
"""

from __future__ import annotations

from typing import Final

from minibroker.broker.storage import names
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Buffer, Files
from minibroker.broker.storage.indexes import IndexFile, IndexRule, OffsetIndex, TimeIndex
from minibroker.broker.storage.segment import RELATIVE_OFFSET_MAX
from minibroker.broker.storage.txn_index import AbortedTransaction, encode_entry
from minibroker.kafka.errors import CorruptionError

SYNC_BYTES: Final = 8 << 20
"""Synced as it grows: a whole segment at once would hold up everybody who writes to the disk."""


class SegmentWriter:
    """One segment on its way. Every method raises OSError."""

    __slots__ = (
        "_base_offset",
        "_directory",
        "_disk",
        "_files",
        "_index_interval_bytes",
        "_log",
        "_offset_index",
        "_pending",
        "_rule",
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
        self._size_bytes = self._written_bytes = self._synced_bytes = 0
        self._pending: list[Buffer] = []
        self._remove_files()
        self._rule = IndexRule(base_offset)
        self._disk = Disk(files)
        self._offset_index = OffsetIndex(self._disk, self._path(names.OFFSET_INDEX), base_offset)
        self._time_index = TimeIndex(self._disk, self._path(names.TIME_INDEX), base_offset)
        self._log = files.open(self._path(names.LOG), create=True)

    @property
    def size_bytes(self) -> int:
        """Return the bytes that were added, written or not."""
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
        size = len(batch)
        if self._rule.note(last_offset, max_timestamp, size, self._index_interval_bytes):
            self._rule.add_entry(
                self._offset_index, self._time_index, last_offset, self._size_bytes
            )
        self._size_bytes += size
        self._pending.append(batch)

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
        self._rule.finish(self._time_index)
        try:
            self._write_index(self._offset_index)
            self._write_index(self._time_index)
        finally:
            self._disk.close()
        if aborted:
            self._write_file(names.TXN_INDEX, b"".join(map(encode_entry, aborted)))
        self._files.set_modified_ms(self._path(names.LOG), modified_ms)

    def _write_index(self, index: IndexFile) -> None:
        index.create()
        index.write()
        self._files.sync(self._disk.handles.get(index.path))

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
        self._disk.close()
        self._remove_files()

    def _close(self) -> None:
        if self._log >= 0:
            self._files.close(self._log)
            self._log = -1
