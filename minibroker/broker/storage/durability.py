"""The durable part of a log: the recovery point, and the work that moves it.

An append is in the page cache when it is answered; an fsync on a worker makes it durable later.
`flush_task` gives out a task for that, `sync_task` one that shortens the next start as well. A task
changes nothing here: the worker runs it, then the loop calls its `apply`, which moves the recovery
point.

Everything below `recovery_point` is durable. After a crash `recovery` trusts it.

Source: Kafka UnifiedLog.flush, LocalLog.markFlushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from minibroker.broker.storage import names
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.producer_state import ProducersAt
from minibroker.broker.storage.producers import LogProducers
from minibroker.broker.storage.segment import Segment, Segments
from minibroker.broker.storage.tasks import FlushTask, SyncTask
from minibroker.clock import Clock

if TYPE_CHECKING:
    from minibroker.kafka.errors import MinibrokerError

SYNC_BYTES: int = 64 << 20
"""A log with so many new bytes is synced at once. An fsync of as many takes some 25 ms, the CRCs of
a start 10 ms."""


class WrittenLog(Protocol):
    """The log as its durable part sees it. On the loop."""

    @property
    def log_end_offset(self) -> int:
        """Return the offset behind the last written record."""

    def write_staged(self) -> None:
        """Write everything staged. Raises StorageError."""


class Durability:
    """The durable part of one log. All fields belong to the loop."""

    __slots__ = (
        "_clock",
        "_disk",
        "_log",
        "_place",
        "_producers",
        "_segments",
        "_sync_above",
        "last_flush_ms",
        "recovery_point",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        place: PartitionDirectory,
        log: WrittenLog,
        *,
        segments: Segments,
        producers: LogProducers,
        recovery_point: int,
    ) -> None:
        """`place`, `segments` and `producers` are those of `log`, which is not asked here."""
        self._disk = disk  # constant after construction, as the next five
        self._clock = clock
        self._place = place
        self._segments = segments
        self._producers = producers
        self._log = log
        self.recovery_point = recovery_point
        self.last_flush_ms = clock.now_ms()
        """When the recovery point moved last, at first when the log was opened."""
        self._sync_above = 0
        # Appends that reach beyond this position of the active `.log` ask for a sync: the first
        # one after a sync, then every `SYNC_BYTES`.

    def flush_task(
        self,
        up_to: int | None = None,
        rolled: Segment | None = None,
        *,
        snapshot: Mapping[int, ProducersAt] | None = None,
    ) -> FlushTask:
        """Return a task that makes everything below `up_to` (default: the log's end) durable.

        A worker runs it, then its `apply` moves the recovery point. `rolled`: a segment whose
        indexes were just finished; it is synced even if its records are durable already.
        `snapshot`: producers by offset, written with those of rolls. The task raises StorageError;
        so does this call, when what is staged or entries of an index cannot be written.
        """
        self._log.write_staged()
        end = self._log.log_end_offset if up_to is None else up_to
        dirty = self._dirty_segments(end, rolled)
        try:
            for segment in dirty:
                segment.write_indexes()
        except OSError as error:
            raise self._place.failed("write the index of", error) from error
        return FlushTask(
            self._place,
            [segment.path(suffix) for segment in dirty for suffix in names.SEGMENT_SUFFIXES],
            end,
            names_changed=self._place.names_changed,
            snapshots={**self._producers.unsynced, **(snapshot or {})},
            on_synced=self._note_synced,
        )

    def _dirty_segments(self, end: int, rolled: Segment | None) -> list[Segment]:
        """Return the segments with something below `end` that is not durable, and `rolled`."""
        place = self._place
        has_unsynced = end > self.recovery_point or place.names_changed > place.names_synced
        # What a deleted log has in memory would go to its namesake.
        if place.is_deleted or not (has_unsynced or rolled is not None):
            return []
        active = self._segments.last
        segments = self._segments.since(min(self.recovery_point, end))
        dirty = [segment for segment in segments if segment.base_offset < end or segment is active]
        if rolled is not None and rolled not in dirty:
            dirty.append(rolled)
        return dirty

    def flush_later(self, up_to: int | None = None, rolled: Segment | None = None) -> None:
        """Have the worker do `flush_task`. Raises StorageError."""
        task = self.flush_task(up_to, rolled)

        def done(error: MinibrokerError | OSError | None) -> None:
            if error is None:
                task.apply()

        self._disk.worker.run_reported(task, done)

    def sync_task(self) -> SyncTask | None:
        """Return a task that makes everything durable, with a producer snapshot for the log's end.
        None: there is nothing to sync. The next append asks for another sync.

        A worker runs it, the loop applies it. Raises StorageError; so does the task.
        """
        self._sync_above = 0
        self._log.write_staged()
        end, producers = self._log.log_end_offset, self._producers
        is_new = end > producers.snapshot_offset
        if self._place.is_deleted or not (is_new or end > self.recovery_point):
            return None
        if not is_new:
            return SyncTask(self.flush_task(), None)
        flush = self.flush_task(snapshot={end: producers.at_end()})
        return SyncTask(flush, producers.note_snapshot)

    def _note_synced(self, offset: int, snapshots: Mapping[int, ProducersAt]) -> None:
        """Note, on the loop, that a flush made everything below `offset` durable and wrote these
        snapshots. A roll may leave a gap in front of `offset`, which is no part of the log yet.
        """
        self._producers.note_synced(snapshots)
        durable = min(offset, self._log.log_end_offset)
        if durable > self.recovery_point:
            self.recovery_point = durable
            self.last_flush_ms = self._clock.now_ms()

    def note_roll(self) -> None:
        """Note that positions count from the start of a new `.log` now."""
        self._sync_above = min(self._sync_above, SYNC_BYTES)

    def wants_sync(self, position: int) -> bool:
        """Return whether a sync is to be asked for, as the active `.log` has grown to `position`
        (bytes).
        """
        return position > self._sync_above

    def ask_for_sync(self, position: int) -> bool:
        """Note that a sync is asked for at `position`. Return whether `SYNC_BYTES` came since the
        last one was.
        """
        has_grown_much = self._sync_above > 0
        self._sync_above = position + SYNC_BYTES
        return has_grown_much
