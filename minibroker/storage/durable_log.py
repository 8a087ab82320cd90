"""The part of a partition's log that knows what is on the disk: names, epochs, recovery point.

Stands between `ReadableLog` and `WritableLog`. An append is in the page cache when it is answered;
an fsync on a worker makes it durable later. The log gives out a task for that. The task changes
nothing in the log: the worker runs it, then the loop calls its `apply`, which moves the recovery
point. Where the log was truncated, deleted or moved meanwhile, `apply` drops the result.

Everything below `recovery_point` is durable. After a crash `recovery` trusts it.

Source: Kafka UnifiedLog.flush, LocalLog.markFlushed.
"""

from typing import TYPE_CHECKING, Final

from minibroker.clock import Clock
from minibroker.ids import TopicPartition
from minibroker.storage import names, producer_files
from minibroker.storage.disk import Disk
from minibroker.storage.epochs import LeaderEpochs
from minibroker.storage.files import Files
from minibroker.storage.readable_log import ReadableLog
from minibroker.storage.segment import Segment
from minibroker.storage.segments import Segments
from minibroker.storage.sync_task import SyncTask
from minibroker.storage.tasks import EpochsTask, FlushTask

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

SYNC_BYTES: Final = 64 << 20
"""A log with so many new bytes is synced at once. An fsync of as many takes some 25 ms, the CRCs of
a start 10 ms."""


class DurableLog(ReadableLog):
    """A log as the disk has it. All fields belong to the loop, except where they say otherwise."""

    __slots__ = (
        "_names_changed",
        "_snapshot_offset",
        "_snapshots_unsynced",
        "_sync_above",
        "epochs_content",
        "has_new_directory",
        "last_flush_ms",
        "names_synced",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        name: TopicPartition,
        directory: str,
        *,
        config: "TopicConfig",
        segments: Segments,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        snapshot_offset: int,
        has_new_names: bool,
    ) -> None:
        """`snapshot_offset`: of the newest producer snapshot, 0: none. `has_new_names`: names in
        the directory may not be durable yet.
        """
        super().__init__(
            disk,
            clock,
            name,
            directory,
            config=config,
            segments=segments,
            epochs=epochs,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=recovery_point,
        )
        self._snapshot_offset = snapshot_offset
        self._snapshots_unsynced: tuple[int, ...] = ()
        self._sync_above = 0
        """Appends that reach beyond this position of the active `.log` ask for a sync: the first
        one after a sync, then every `SYNC_BYTES`."""
        # Names in the directory: how often they changed, and up to which change they are durable.
        self._names_changed = int(has_new_names)
        self.names_synced = 0
        self.has_new_directory = has_new_names
        """May the directory's own name not be durable yet?"""
        self.epochs_content: bytes | None = None
        """Content that `leader-epoch-checkpoint` has to get, None if the file has it already. An
        `EpochsTask` takes it on a worker."""
        self.last_flush_ms = clock.now_ms()
        """When the recovery point moved last, at first when the log was opened."""

    @property
    def files(self) -> Files:
        return self._disk.files

    @property
    def epochs_path(self) -> str:
        return f"{self.directory}/{names.LEADER_EPOCHS}"

    def store_epochs(self) -> None:
        """Have the checkpoint written by the worker; `flush_task` and `close` make sure of it.

        Until then a start finds the epochs in batches that are not synced yet.
        """
        self.epochs_content = self.epochs.to_text().encode("ascii")
        self._disk.run_later(EpochsTask(self))

    def _write_snapshot(self, offset: int) -> None:
        """Write a producer snapshot for `offset`, the log's end, if it is newer than the last.

        The next flush syncs it. Raises OSError.
        """
        if offset > self._snapshot_offset:
            files = self._disk.files
            producer_files.write_snapshot(files, self.directory, offset, self.producer_state)
            self._snapshot_offset = offset
            self._snapshots_unsynced += (offset,)

    def note_snapshot(self, offset: int) -> str | None:
        """Remember a snapshot that was written for `offset`. Return the path of the one before it,
        if it is not the snapshot of a segment.
        """
        old = self._snapshot_offset
        if offset <= old:
            return None  # a roll wrote a newer one meanwhile
        self._snapshot_offset = offset
        segment = self.segments.floor(old)
        is_needed = segment is not None and segment.base_offset == old
        return None if old == 0 or is_needed else producer_files.snapshot_path(self.directory, old)

    # --- flush ----------------------------------------------------------------------------------

    def flush_task(self, up_to: int | None = None, rolled: Segment | None = None) -> FlushTask:
        """Return a task that makes everything below `up_to` (default: the log's end) durable.

        A worker runs it, then its `apply` moves the recovery point. `rolled`: a segment whose
        indexes were just finished; it is synced even if its records are durable already. The task
        raises StorageError; so does this call, when entries of the index cannot be written.
        """
        self.write_staged()
        end = self.log_end_offset if up_to is None else up_to
        names_changed = self._names_changed
        dirty: list[Segment] = []
        # What a deleted log has in memory would go to its namesake.
        has_unsynced = end > self.recovery_point or names_changed > self.names_synced
        if (has_unsynced or rolled is not None) and not self.is_deleted:
            reached = self.segments.since(min(self.recovery_point, end))
            dirty = [one for one in reached if one.base_offset < end or one is self._active]
            if rolled is not None and rolled not in dirty:
                dirty.append(rolled)
        try:
            for segment in dirty:
                segment.write_indexes()
        except OSError as error:
            raise self._failed("write the index of", error) from error
        paths = [segment.path(suffix) for segment in dirty for suffix in names.SEGMENT_SUFFIXES]
        late, self._snapshots_unsynced = self._snapshots_unsynced, ()
        paths += [producer_files.snapshot_path(self.directory, offset) for offset in late]
        return FlushTask(self, paths, end, names_changed)

    def flush_later(self, up_to: int | None = None, rolled: Segment | None = None) -> None:
        """Have the worker do `flush_task`. Raises StorageError."""
        task = self.flush_task(up_to, rolled)
        self._disk.run_then(task, task.apply)

    def flush(self) -> None:
        """Make everything appended durable before this returns. Raises StorageError."""
        task = self.flush_task()
        task()
        task.apply()

    def sync_task(self) -> SyncTask | None:
        """Return a task that makes everything durable, with a producer snapshot for the log's end.
        None: there is nothing to sync.

        A worker runs it, the loop applies it. Raises StorageError; so does the task.
        """
        self._sync_above = 0
        self.write_staged()
        is_new = self.log_end_offset > self._snapshot_offset
        if self.is_deleted or not (is_new or self.log_end_offset > self.recovery_point):
            return None
        producers = dict(self.producer_state.producers) if is_new else None
        return SyncTask(self, self.flush_task(), producers)

    def _ask_for_sync(self, position: int) -> None:
        """Ask for a sync: the active `.log` has grown to `position`."""
        has_grown_much = self._sync_above > 0
        self._sync_above = position + SYNC_BYTES
        self._disk.on_unsynced(self, has_grown_much)

    def note_flushed(self, offset: int) -> None:
        """Move the recovery point: everything below `offset` is durable. On the loop."""
        reached = min(offset, self.log_end_offset)
        if reached > self.recovery_point:
            self.last_flush_ms = self._clock.now_ms()
            self.recovery_point = reached
