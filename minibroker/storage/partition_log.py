"""The log of one partition, whole: truncation, log start, close and deletion stand here.

    ReadableLog    Fetch, ListOffsets: offsets to positions to slices
    WritableLog    Produce: validate, number, stage, write, roll, flush
    PartitionLog   truncation, log start, close, deletion

Made by `recovery.load_log`, owned by the log manager.

Source: Kafka UnifiedLog, LocalLog.
"""

from collections.abc import Callable

from minibroker.errors import CorruptionError
from minibroker.storage import producer_files
from minibroker.storage.segment import Segment
from minibroker.storage.tasks import CreateTask, EpochsTask, RemoveDirectoryTask, RemoveTask
from minibroker.storage.writable_log import AppendInfo, WritableLog

__all__ = ["AppendInfo", "PartitionLog"]


class PartitionLog(WritableLog):
    """One partition's log."""

    __slots__ = ()

    def begin_leader_epoch(self, epoch: int) -> None:
        """This broker leads from now on, in `epoch`, which begins at the log's end.

        Told even when nothing is appended: a reader may ask where the epoch began. The checkpoint
        follows on the worker. Source: Kafka Partition.makeLeader.
        """
        if epoch > self.epochs.latest_epoch:
            self.epochs.assign(epoch, self.log_end_offset)
            self._epochs_changed()

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on; False: there was nothing. Raises StorageError.

        The recovery point goes back, so the checkpoint has to be written next
        (`LogManager.truncate` does both).
        """
        self.write_staged()
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully(offset)
            return True
        try:
            for segment in [one for one in self.segments if one.base_offset > offset]:
                self._remove_segment(segment)
            self._active = self.segments.last
            self._active.truncate_to(offset, self._clock.now_ms())
        except (OSError, CorruptionError) as error:
            raise self._failed("truncate", error) from error
        self._ended_at(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        return True

    def truncate_fully(self, offset: int) -> None:
        """Remove everything and begin again at `offset`, empty. Raises StorageError."""
        self.write_staged()
        try:
            for segment in list(self.segments):
                self._remove_segment(segment)
        except OSError as error:
            raise self._failed("truncate", error) from error
        fresh = Segment(self._disk, self.directory, offset, created_ms=self._clock.now_ms())
        self._disk.run_later(CreateTask(self.files, fresh.begin_empty()))
        self.segments.add(fresh)
        self._active = fresh
        self._directory_changed = True
        self.log_start_offset = offset
        self._ended_at(offset)

    def _remove_segment(self, segment: Segment) -> None:
        """Rename its files now, remove them on the worker. Raises OSError."""
        paths = segment.mark_deleted()
        self.segments.remove(segment.base_offset)
        self._directory_changed = True
        self._disk.run_later(RemoveTask(self._disk.files, paths))

    def _ended_at(self, offset: int) -> None:
        """The log ends at `offset` now: producers, epochs and recovery point follow."""
        self.log_end_offset = self._next_offset = self._opened_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self._directory_changed = True
        self._forget_room()
        if self.epochs.truncate_from_end(offset):
            self._epochs_changed()
        try:
            files = self._disk.files
            offsets = producer_files.snapshot_offsets(files, self.directory)
            beyond = [one for one in offsets if one > offset]
            producer_files.remove_snapshots(files, self.directory, beyond)
        except OSError as error:
            raise self._failed("remove producer snapshots of", error) from error
        self._snapshot_offset = max((one for one in offsets if one <= offset), default=0)
        self._producers = None

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are gone for readers (DeleteRecords). Raises StorageError."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.recovery_point = max(self.recovery_point, offset)
            if self.epochs.truncate_from_start(offset):
                self._epochs_changed()

    def close(self) -> None:
        """Write and sync everything, as a clean stop does. An untouched log costs nothing.

        Raises StorageError.
        """
        self.write_staged()
        try:
            if self.log_end_offset > self.recovery_point or self._producers is not None:
                self._write_snapshot(self.log_end_offset)
            self._active.close()
            EpochsTask(self).write()
        except OSError as error:
            raise self._failed("close", error) from error
        if self.log_end_offset > self.recovery_point:
            self.flush()

    def mark_deleted(self, directory: str) -> Callable[[], None]:
        """Rename the directory to `directory`; the returned task removes it, on any thread.

        Raises StorageError. The log is of no use afterwards.
        """
        self._staged = []
        self._staged_appends = []
        self._staged_bytes = 0
        for segment in self.segments:
            segment.release()
        self.is_deleted = True
        try:
            self._disk.files.replace(self.directory, directory)
        except OSError as error:
            raise self._failed("delete", error) from error
        self.directory = directory
        return RemoveDirectoryTask(self._disk.files, directory)
