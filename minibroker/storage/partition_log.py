"""The log of one partition, whole: truncation, log start, close and deletion stand here.

    ReadableLog    Fetch, ListOffsets: offsets to positions to slices
    DurableLog     fsync: what is on the disk, the recovery point
    WritableLog    Produce: validate, number, stage, write, roll
    PartitionLog   truncation, log start, close, deletion

Made by `recovery.load_log`, owned by the log manager.

Source: Kafka UnifiedLog, LocalLog.
"""

import logging
from collections.abc import Callable, Sequence

from minibroker.error_codes import ErrorCode
from minibroker.errors import CorruptionError, HalfChangedError, KafkaError
from minibroker.storage import producer_files, retention, segment_files
from minibroker.storage.segment import Segment
from minibroker.storage.tasks import (
    CreateTask,
    FlushTask,
    RemoveDirectoryTask,
    SyncDirectoryTask,
)
from minibroker.storage.writable_log import AppendInfo, WritableLog

__all__ = ["AppendInfo", "PartitionLog"]

_log = logging.getLogger(__name__)


class PartitionLog(WritableLog):
    """One partition's log."""

    __slots__ = ()

    def begin_leader_epoch(self, epoch: int) -> None:
        """This broker leads from now on, in `epoch`, which begins at the log's end.

        Told even when nothing is appended: a reader may ask where the epoch began. The checkpoint
        follows on the worker, that of an empty log with its first record: until then it says
        nothing that is not told again at the next start. Source: Kafka Partition.makeLeader.
        """
        if epoch > self.epochs.latest_epoch:
            self.epochs.assign(epoch, self.log_end_offset)
            if self.is_empty:
                self._forget_room()
            else:
                self.store_epochs()

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
            self._take_out([one for one in self.segments if one.base_offset > offset])
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
            self._take_out(list(self.segments))
        except OSError as error:
            raise self._failed("truncate", error) from error
        fresh = self._new_segment(offset)
        fresh.begin_empty()
        self._disk.run_later(CreateTask(fresh))
        self.segments.add(fresh)
        self._active = fresh
        self.is_preallocated = False
        self.preallocate()
        self._names_changed += 1
        self.log_start_offset = offset
        self._ended_at(offset)

    # --- segments that go, or are replaced --------------------------------------------------------

    def remove_segments(self, segments: Sequence[Segment]) -> None:
        """Take closed segments out of service, their producer snapshots too: renamed now, removed
        after `file.delete.delay.ms`. The active one is none of them. Raises StorageError.
        """
        assert self._active not in segments, f"{self.name}: the active segment stays"
        try:
            self._take_out(segments, with_snapshots=True)
        except OSError as error:
            raise self._failed("remove segments of", error) from error

    def replace_segments(self, cleaned: Sequence[int], old: Sequence[Segment]) -> bool:
        """Put finished `….cleaned` files in the place of the closed segments `old`.

        `cleaned`: base offsets of the files, which are synced; the first is that of the first old
        segment. Readers see the new ones when this returns, the old files go after
        `file.delete.delay.ms`. False, and nothing but the `.cleaned` files goes, where one of the
        old segments is not in service any more. Raises StorageError; everything is as it was then.
        Raises HalfChangedError where it is not, and a start has to complete it.
        """
        assert self._active not in old, f"{self.name}: the active segment is not compacted"
        in_service = set(map(id, self.segments))
        disk, directory = self._disk, self.directory
        fresh = [self._new_segment(base_offset) for base_offset in cleaned]
        try:
            if not all(id(segment) in in_service for segment in old):
                segment_files.remove_cleaned(disk, directory, cleaned)
                return False
            try:
                segment_files.cleaned_to_swap(disk.files, directory, cleaned)
            except OSError:
                segment_files.remove_cleaned(disk, directory, cleaned)
                raise
        except OSError as error:
            raise self._failed("replace segments of", error) from error
        try:
            replaced = [one for one in old if one.base_offset in cleaned]
            merged = [one for one in old if one.base_offset not in cleaned]
            paths = segment_files.mark_deleted(disk, directory, replaced, with_snapshots=False)
            paths += segment_files.mark_deleted(disk, directory, merged)
            segment_files.swap_to_service(disk.files, directory, cleaned)
        except OSError as error:
            raise HalfChangedError(
                f"segments of {self.name} in {directory} are replaced in part: {error}",
                log_directory=self.log_directory,
            ) from error
        self.segments.replace(old, fresh)
        disk.run_later(SyncDirectoryTask(self))
        segment_files.remove_later(disk, paths, self.config.file_delete_delay_ms)
        return True

    def _take_out(self, segments: Sequence[Segment], *, with_snapshots: bool = False) -> None:
        """Out of the list, renamed to `….deleted`, removed after the delay. Raises OSError."""
        paths: list[str] = []
        try:
            for segment in segments:
                paths += segment_files.mark_deleted(
                    self._disk, self.directory, [segment], with_snapshots=with_snapshots
                )
                self.segments.remove(segment.base_offset)
        finally:
            self._names_changed += 1
            segment_files.remove_later(self._disk, paths, self.config.file_delete_delay_ms)

    def _ended_at(self, offset: int) -> None:
        """The log ends at `offset` now: producers, epochs and recovery point follow."""
        self.log_end_offset = self._next_offset = self._opened_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.truncation_count += 1
        if self.clean_offset is not None:
            self.clean_offset = min(self.clean_offset, offset)
        self._names_changed += 1
        self._forget_room()
        if self.epochs.truncate_from_end(offset):
            self.store_epochs()
        try:
            files = self._disk.files
            with producer_files.changing:
                offsets = producer_files.snapshot_offsets(files, self.directory)
                beyond = [one for one in offsets if one > offset]
                producer_files.remove_snapshots(files, self.directory, beyond)
        except OSError as error:
            raise self._failed("remove producer snapshots of", error) from error
        self._snapshot_offset = max((one for one in offsets if one <= offset), default=0)
        self._producers = None

    # --- retention ------------------------------------------------------------------------------

    def advance_log_start(self, offset: int, high_watermark: int | None = None) -> None:
        """Records below `offset` are gone for readers; their segments go with the next
        `delete_old_segments`. Nothing happens where the log starts there or behind it already.

        Raises KafkaError(OFFSET_OUT_OF_RANGE) beyond the high watermark (None: the log's end),
        StorageError. Source: Kafka UnifiedLog.maybeIncrementLogStartOffset.
        """
        self.write_staged()
        limit = self.log_end_offset if high_watermark is None else high_watermark
        if offset > limit:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.name} is beyond its high watermark {limit}",
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.recovery_point = max(self.recovery_point, offset)
            if self.epochs.truncate_from_start(offset):
                self.store_epochs()

    def delete_old_segments(
        self, high_watermark: int, now_ms: int, *, limit: int = retention.SEGMENTS_AT_ONCE
    ) -> int:
        """Take what retention does not keep out of service, `limit` segments at most; how many.

        Call it again until it answers 0. Files are renamed at once, removed on the worker after
        `file.delete.delay.ms`. Raises StorageError.
        """
        self.write_staged()
        try:
            segments = list(self.segments)
            count, reason = retention.expired(
                segments,
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=high_watermark,
                now_ms=now_ms,
            )
        except (OSError, CorruptionError) as error:
            raise self._failed("look for old segments of", error) from error
        if count == 0:
            return 0
        gone = segments[: min(count, limit)]
        if len(gone) == len(segments):
            self.roll()
        higher = self.segments.higher(gone[-1].base_offset)
        assert higher is not None
        self.advance_log_start(higher.base_offset, high_watermark)
        _log.info(
            "%s: %d segments up to %s go, %s", self.name, len(gone), gone[-1].log_path, reason
        )
        self.remove_segments(gone)
        return len(gone)

    def may_expire(self) -> bool:
        """Is there anything that retention could take, now or later? Raises StorageError."""
        try:
            return retention.may_expire(self.segments, self.config, self.log_start_offset)
        except OSError as error:
            raise self._failed("look for old segments of", error) from error

    def close(self) -> None:
        """Write and sync everything, as a clean stop does. An untouched log costs nothing.

        Raises StorageError.
        """
        task = self.closing_task()
        if task is not None:
            task()
            task.apply()

    def closing_task(self) -> FlushTask | None:
        """Write everything as a clean stop does; what remains to be synced, on any thread, None:
        nothing. Raises StorageError.
        """
        self.write_staged()
        try:
            has_new_entries = self.write_state()
        except OSError as error:
            raise self._failed("close", error) from error
        if (
            has_new_entries
            or self.log_end_offset > self.recovery_point
            or self.epochs_content is not None
            or self._snapshots_unsynced
        ):
            return self.flush_task(rolled=self._active if has_new_entries else None)
        return None

    def write_state(self) -> bool:
        """Write what is in memory only, but for epochs, which are synced as they are written:
        producers, index entries. Return whether the indexes got entries, which are not synced
        then. Raises OSError.
        """
        if self.log_end_offset > self.recovery_point or self._producers is not None:
            self._write_snapshot(self.log_end_offset)
        if self.is_preallocated:
            self.trim()
            self._disk.files.sync_path(self._active.log_path)
        return self._active.close()

    def abandon(self) -> None:
        """Nothing is read or written any more; what was staged is lost, files stay as they are."""
        for entry in self._staged_entries:
            entry.is_lost = True
        self._forget_staged()
        with producer_files.changing:
            self.is_deleted = True
        for segment in self.segments:
            segment.release()

    def mark_deleted(self, directory: str) -> Callable[[], None]:
        """Rename the directory to `directory`; the returned task removes it, on any thread.

        Raises StorageError. The log is of no use afterwards.
        """
        self.abandon()
        # Before the rename: a worker that finds no directory any more sees why.
        old, self.directory = self.directory, directory
        try:
            self._disk.files.replace(old, directory)
        except OSError as error:
            self.directory = old
            raise self._failed("delete", error) from error
        return RemoveDirectoryTask(self._disk.files, directory)

    def take_back(self, directory: str) -> None:
        """After `mark_deleted`, whether that could rename or not: in service in `directory`, where
        it was. Raises StorageError.
        """
        try:
            if self.directory != directory:
                self._disk.files.replace(self.directory, directory)
        except OSError as error:
            raise self._failed("take back", error) from error
        self.directory = directory
        self.is_deleted = False
