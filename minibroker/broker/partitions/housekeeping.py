"""Work some time after an append: checkpoints, retention, compaction, silent producers, fsync.

No timer runs in an idle broker: `note_change`, called at every commit, arms what is not armed. What
comes from the disk may expire without a commit: `begin` arms what looks at it after a start, and
`note_producers` the look at producers that a log has read. They are looked at on the loop (their
state belongs to it), in slices over the logs whose state is loaded; checkpoints are written by the
workers; retention, compaction, `flush.ms` and syncs have modules of their own.

Source: Kafka LogManager (checkpointLogRecoveryOffsets, checkpointLogStartOffsets),
ProducerStateManager (removeExpiredProducers).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.partitions.compaction import CompactionCheck
from minibroker.broker.partitions.flushing import FlushSchedule
from minibroker.broker.partitions.retention import RetentionCheck
from minibroker.broker.partitions.syncing import SyncSchedules
from minibroker.broker.slices import run_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.partitions.flushing import RunThen
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.timers import Timer, Timers
    from minibroker.clock import Clock
    from minibroker.kafka.errors import StorageError

logger = logging.getLogger(__name__)


class Housekeeping:
    """Belongs to the loop's thread; ends with its timers."""

    __slots__ = (
        "_checkpoint_timer",
        "_clock",
        "_dynamic",
        "_expiry_timer",
        "_logs",
        "_timers",
        "compaction",
        "flushes",
        "retention",
        "syncs",
    )

    def __init__(
        self,
        *,
        logs: LogManager,
        dynamic: DynamicConfig,
        clock: Clock,
        timers: Timers,
        run_then_of: Callable[[str], RunThen],
        on_storage_error: Callable[[StorageError], None],
    ) -> None:
        """`run_then_of`: log directory → what takes blocking work for its worker, and tells the
        loop how it ended; `on_storage_error` hears what a disk refused on the loop.
        """
        self._logs = logs
        self._dynamic = dynamic
        self._clock = clock
        self._timers = timers
        self._checkpoint_timer: Timer | None = None
        self._expiry_timer: Timer | None = None
        self.retention = RetentionCheck(
            logs=logs,
            dynamic=dynamic,
            clock=clock,
            timers=timers,
            on_error=on_storage_error,
        )
        self.flushes = FlushSchedule(
            logs=logs,
            dynamic=dynamic,
            clock=clock,
            timers=timers,
            on_error=on_storage_error,
        )
        self.compaction = CompactionCheck(
            logs=logs, dynamic=dynamic, clock=clock, timers=timers, on_error=on_storage_error
        )
        self.syncs = SyncSchedules(
            interval_ms=dynamic.broker.log_sync_interval_ms,
            logs=logs,
            timers=timers,
            run_then_of=run_then_of,
            on_error=on_storage_error,
        )
        """Logs ask it themselves: `LogManager.on_unsynced`."""

    def begin(self) -> None:
        """Look at what an earlier run left, which may be too old by now, or dirty: the logs are
        loaded.
        """
        if self._logs.logs:
            self.retention.note_change()
            self.flushes.note_change()
            self.compaction.note_change()
            self.note_producers()

    def close(self) -> None:
        """Stop: the logs are about to be closed."""
        self.retention.close()
        self.compaction.close()
        self.syncs.close()

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """Do nothing: topics get inherited values by `on_topic_config`, intervals are read when
        armed.
        """

    def on_topic_config(self, topic: str | None) -> None:
        """Limits may be lower now: the next check is due."""
        if self._logs.logs:
            self.retention.note_change()
            self.compaction.note_change()

    def note_change(self) -> None:
        """Note that something was appended, or a log starts later than before: checkpoints,
        retention, compaction, flushes and a look at producers are due.
        """
        self.retention.note_change()
        self.flushes.note_change()
        self.compaction.note_change()
        if self._checkpoint_timer is None:
            broker = self._dynamic.broker
            # The files are written together, as often as the one asked for more often.
            interval_ms = min(
                broker.log_flush_offset_checkpoint_interval_ms,
                broker.log_flush_start_offset_checkpoint_interval_ms,
            )
            self._checkpoint_timer = self._timers.after(interval_ms, self._checkpoint)
        self.note_producers()

    def note_producers(self) -> None:
        """Note that a log may have producers in memory: a look at them is due."""
        if self._expiry_timer is None:
            interval_ms = self._dynamic.broker.producer_id_expiration_check_interval_ms
            self._expiry_timer = self._timers.after(interval_ms, self._remove_expired_producers)

    def _checkpoint(self) -> None:
        self._checkpoint_timer = None
        self._logs.checkpoint_later()

    def _remove_expired_producers(self) -> None:
        self._expiry_timer = None
        run_in_slices(self._expiry_steps())

    def _expiry_steps(self) -> Iterator[None]:
        """Apply `producer.id.expiration.ms`; check again later if any producer stays."""
        left = 0
        try:
            for left_in_log in self._logs.remove_expired_producers(
                self._clock.now_ms(), self._dynamic.broker.producer_id_expiration_ms
            ):
                left += left_in_log
                yield
        except Exception:  # a bug of ours: the next look tries again
            logger.exception("silent producers are not forgotten")
            left = 1
        if left:
            self.note_producers()
