"""Work some time after an append: checkpoints, retention, compaction, silent producers, syncs.

No timer runs in an idle broker: `note_change`, called at every commit, arms what is not armed.
Producers and logs from the disk may expire without a commit: `begin` arms what looks at it after a
start, and `note_producers` the look at producers that a log has read. They are looked at on the
loop (their state belongs to it), in slices over the logs whose state is loaded; checkpoints are
written by the workers. Each kind of work has a class of its own:

`RetentionCheck` looks at the logs every `log.retention.check.interval.ms`, a few at a time. A
worker reads what is needed of files that nobody has opened yet (`log_reads.survey`), while the
check goes on with the other logs; the decision and the renames, short and bounded, are made on the
loop, to which the logs belong; bytes are removed by the worker. Between two steps the loop serves
clients (KAFKA-4614). A check waits for no disk: a log whose files are still being read when its
check ends is decided when they have been read, and until then later checks leave its directory out.
So a disk that hangs stops the retention of its own logs only. The timer runs only while something
is there that could expire: a broker without records, or whose topics keep everything, has none.
Compacted logs are the cleaner's, their deletion too (it calls `storage.retention` itself): one of
the two looks at a log, as in Kafka.

`CompactionCheck` loads the cleaner (`storage.compaction`) when the first compacted log has
something to look at: most brokers on a desk have none.

`FlushSchedule` looks at `flush.ms` every `log.flush.scheduler.interval.ms`, which by default is
never: without that setting `flush.ms` does nothing, in Kafka neither.

`SyncSchedules` sync the logs a few seconds after an append, or when a log has grown by 64 MB. After
a kill a start has to check everything behind the recovery point. Kafka moves the recovery point at
a roll, which is up to 1 GiB later. Here a sync moves it every `minibroker.log.sync.interval.ms`, so
a start checks a few seconds' worth. A power cut can take no more than that either. With 0 nothing
is synced by itself, as in Kafka.

    a log's first append since its last sync ─► it waits ─► the interval is over: a round begins
    round: for each log  sync on the worker ─► apply on the loop
           then          checkpoint on the worker ─► superseded snapshots go

Each log directory has rounds of its own, one log at a time: a disk that syncs hundreds of logs
serves others in between, and one that hangs holds up nobody else's. A log that has grown by
`SYNC_BYTES` is next at once. Answers do not wait for any of this (`append_queue.Flusher` is for
those that do).

Source: Kafka LogManager (cleanupLogs, flushDirtyLogs, checkpointLogRecoveryOffsets,
checkpointLogStartOffsets), LogCleaner.doWork, ProducerStateManager (removeExpiredProducers). None
for the syncs: Kafka leaves them to the operating system.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.slices import run_in_slices
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias, TypedDict, Unpack

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.storage.compaction.cleaner import LogCleaner
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.log_reads import SegmentSurvey
    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.broker.storage.segment import Segment
    from minibroker.broker.storage.tasks import RemoveSnapshotTask, SyncTask
    from minibroker.broker.timers import Timer, Timers
    from minibroker.broker.worker import Runner, Runners
    from minibroker.clock import Clock
    from minibroker.kafka.errors import MinibrokerError
    from minibroker.kafka.ids import TopicPartition

    class CheckParts(TypedDict):
        """The parts of a broker that a check needs."""

        logs: LogManager
        dynamic: DynamicConfig
        clock: Clock
        timers: Timers
        on_error: Callable[[StorageError], None]
        """Gets what a disk refused."""

    _Cold: TypeAlias = tuple[PartitionLog, list[Segment], int]
    """A log whose files have to be read before the decision: segments, `retention.ms`."""


logger = logging.getLogger(__name__)

LOGS_A_STEP: Final = 64
"""Logs in one step: a few hundred µs if no segment is due."""
LOGS_A_CHECKPOINT: Final = 256
"""A round of more logs writes a checkpoint after so many: the first ones do not wait for the last.
"""
NEVER_MS: Final = 1 << 53
"""An interval beyond this (some 285,000 years) is none."""


class LogCheck:
    """The base of the periodic looks at the logs, a few logs at a time. Belongs to the loop; no
    timer of it fires after `Timers.close`.
    """

    __slots__ = (
        "_clock",
        "_dynamic",
        "_has_checked",
        "_is_needed_again",
        "_logs",
        "_on_error",
        "_remaining_logs",
        "_timer",
        "_timers",
    )

    def __init__(self, **parts: Unpack[CheckParts]) -> None:
        self._logs = parts["logs"]
        self._dynamic = parts["dynamic"]
        self._clock = parts["clock"]
        self._timers = parts["timers"]
        self._on_error = parts["on_error"]
        self._timer: Timer | None = None
        self._remaining_logs: deque[TopicPartition] | None = None
        """Logs that the running check has not come to; None: no check runs."""
        self._has_checked = False
        """Was there a check since the start?"""
        self._is_needed_again = False
        """Will there be something to do after the running check?"""

    def close(self) -> None:
        """Look at nothing any more: the logs are about to be closed."""
        self._remaining_logs = None
        if self._timer is not None:
            self._timer.cancel()


class RetentionCheck(LogCheck):
    """The check of the logs' retention. Belongs to the loop's thread."""

    __slots__ = ("_busy", "_is_closed", "_surveys")

    def __init__(self, **parts: Unpack[CheckParts]) -> None:
        super().__init__(**parts)
        self._surveys: Counter[str] = Counter()
        """Log directory → reads that its worker has not ended."""
        self._busy: frozenset[str] = frozenset()
        """Directories with reads of an earlier check: the running one leaves them out."""
        self._is_closed = False

    def note_change(self) -> None:
        """Note that something was appended or configured, or a log starts later: there may be
        work.
        """
        if self._timer is None and self._remaining_logs is None:
            broker = self._dynamic.broker
            if self._has_checked:
                delay_ms = broker.log_retention_check_interval_ms
            else:
                delay_ms = broker.integer("log.initial.task.delay.ms")
            self._timer = self._timers.after(delay_ms, self._begin)
        elif self._remaining_logs is not None:
            self._is_needed_again = True

    @property
    def is_armed(self) -> bool:
        """Return whether there will be a check, or one is running."""
        return self._timer is not None or self._remaining_logs is not None

    def _begin(self) -> None:
        self._timer = None
        self._has_checked = True
        self._is_needed_again = False
        self._busy = frozenset(self._surveys)
        self._remaining_logs = deque(self._logs.logs)
        self._step()

    def close(self) -> None:
        """Use nothing more that workers read: the logs are about to be closed."""
        super().close()
        self._is_closed = True

    def _step(self) -> None:
        """Look at the next few logs. Those whose files have to be read first are decided later."""
        remaining_logs = self._remaining_logs
        if remaining_logs is None:
            return
        if not remaining_logs:
            self._end()
            return
        from minibroker.broker.storage import retention  # noqa: PLC0415  see `LogManager`

        warm: list[PartitionLog] = []
        cold: dict[str, list[_Cold]] = defaultdict(list)
        for _ in range(min(LOGS_A_STEP, len(remaining_logs))):
            log = self._logs.logs.get(remaining_logs.popleft())
            if log is None or log.config.compact:
                continue
            if log.log_directory in self._busy:
                self._is_needed_again = True
                continue
            segments = retention.unsurveyed(list(log.segments), log.config)
            if segments:
                cold[log.log_directory].append((log, segments, log.config.retention_ms))
            else:
                warm.append(log)
        for path, logs in cold.items():
            self._survey(path, logs)
        self._delete(warm)
        self._timers.after(0, self._step)

    def _end(self) -> None:
        """End the check. Logs that workers still read are judged when the workers are done."""
        self._remaining_logs = None
        if self._is_needed_again:
            self.note_change()

    def _survey(self, path: str, cold: list[_Cold]) -> None:
        """Have the worker of this directory read what is not known, then decide."""
        from minibroker.broker.storage.log_reads import survey  # noqa: PLC0415  see `LogManager`

        disk = self._logs.disk.of(path)
        now_ms = self._clock.now_ms()
        surveys: list[SegmentSurvey] = []
        failures: list[tuple[PartitionLog, Exception]] = []

        def read() -> None:
            for log, segments, retention_ms in cold:
                try:
                    surveys.extend(survey(disk.files, segments, now_ms - retention_ms))
                except Exception as error:  # the other logs are looked at all the same
                    failures.append((log, error))

        self._surveys[path] += 1
        logs = [log for log, _, _ in cold]
        disk.worker.run_reported(read, partial(self._surveyed, path, logs, surveys, failures))

    def _surveyed(
        self,
        path: str,
        logs: list[PartitionLog],
        surveys: list[SegmentSurvey],
        failures: list[tuple[PartitionLog, Exception]],
        _error: MinibrokerError | OSError | None,
    ) -> None:
        """Decide about logs whose files were read, but for those that could not be."""
        self._surveys[path] -= 1
        self._surveys += Counter()  # forgets those at zero
        if self._is_closed:
            return
        if self._remaining_logs is None:
            self._remaining_logs = deque()
        for log, error in failures:
            logs.remove(log)
            self._is_needed_again = True
            logger.error("retention cannot read %s: %s", log.name, error)
            if isinstance(error, OSError):
                self._on_error(log.place.failed("read", error))
        for result in surveys:
            result.segment.note_survey(result.size_bytes, result.max_timestamp, result.offset)
        self._delete(logs)
        self._timers.after(0, self._step)

    def _delete(self, logs: list[PartitionLog]) -> None:
        remaining_logs = self._remaining_logs
        if remaining_logs is None:
            return
        from minibroker.broker.storage import retention  # noqa: PLC0415  see `LogManager`

        now_ms = self._clock.now_ms()
        for log in logs:
            if self._logs.logs.get(log.name) is not log:
                continue  # deleted, or its directory failed, while files were read
            try:
                if retention.delete_old_segments(log, self._logs.high_watermark_of(log), now_ms):
                    remaining_logs.append(log.name)  # there may be more than one step takes
                elif not self._is_needed_again:
                    self._is_needed_again = retention.may_expire(log)
            except StorageError as error:
                logger.error("%s", error)
                self._on_error(error)
            except Exception:  # a bug of ours costs this log, until the next check
                logger.exception("retention of %s failed", log.name)
                self._is_needed_again = True


class CompactionCheck(LogCheck):
    """Belongs to the loop's thread; ends with `close`."""

    cleaner: LogCleaner | None = None
    """None while no log was compacted."""

    def note_change(self) -> None:
        """Note that something was appended or configured: there may be work."""
        if self._timer is None:
            broker = self._dynamic.broker
            delay_ms = broker.log_cleaner_backoff_ms
            if broker.log_cleaner_idle_ms:
                delay_ms = min(delay_ms, broker.log_cleaner_idle_ms)
            self._timer = self._timers.after(delay_ms, self._look)

    def _look(self) -> None:
        self._timer = None
        if self.cleaner is None:
            if not any(log.config.compact for log in self._logs.logs.values()):
                return
            self.cleaner = self._make_cleaner()
        self.cleaner.look()

    def _make_cleaner(self) -> LogCleaner:
        # Not before it is needed: see the docstring.
        from minibroker.broker.storage.compaction.cleaner import LogCleaner  # noqa: PLC0415
        from minibroker.broker.storage.compaction.cleaner_settings import (  # noqa: PLC0415
            cleaner_settings,
        )

        return LogCleaner(
            self._logs,
            clock=self._clock,
            settings=lambda: cleaner_settings(self._dynamic.broker),
            run_after=self._timers.after,
            call_soon=asyncio.get_running_loop().call_soon_threadsafe,
            run_in_slices=run_in_slices,
            on_failure=self._on_error,
        )

    def close(self) -> None:
        """End a round that runs; the logs are about to be closed."""
        super().close()
        if self.cleaner is not None:
            self.cleaner.close()


class FlushSchedule(LogCheck):
    """`flush.ms`: syncs what was appended that long ago."""

    __slots__ = ()

    def note_change(self) -> None:
        """Look at the logs when the interval is over, if there is one: something was appended."""
        if self._timer is None:
            interval_ms = self._dynamic.broker.log_flush_scheduler_interval_ms
            if interval_ms < NEVER_MS:
                self._timer = self._timers.after(interval_ms, self._begin)

    def _begin(self) -> None:
        self._remaining_logs = deque(self._logs.logs)
        self._step()

    def _step(self) -> None:
        """Look at the next few logs; once more later while any has something that is not synced."""
        remaining_logs = self._remaining_logs
        if remaining_logs is None:
            return
        now_ms = self._clock.now_ms()
        for _ in range(min(LOGS_A_STEP, len(remaining_logs))):
            log = self._logs.logs.get(remaining_logs.popleft())
            if log is None or log.log_end_offset == log.recovery_point:
                continue
            if now_ms - log.durability.last_flush_ms < log.config.flush_ms:
                self._is_needed_again = True
                continue
            try:
                log.durability.flush_later()
            except StorageError as error:
                logger.error("%s", error)
                self._on_error(error)
            except Exception:  # a bug of ours costs this log, until the next look
                logger.exception("%s is not synced", log.name)
                self._is_needed_again = True
        if remaining_logs:
            self._timer = self._timers.after(0, self._step)
            return
        self._timer = self._remaining_logs = None
        if self._is_needed_again:
            self._is_needed_again = False
            self.note_change()


class SyncSchedules:
    """Those of all log directories: a disk that hangs holds up its own logs only."""

    __slots__ = ("_schedules",)

    def __init__(
        self,
        *,
        interval_ms: int,
        logs: LogManager,
        timers: Timers,
        workers: Runners,
        on_error: Callable[[StorageError], None],
    ) -> None:
        """Take the arguments of `SyncSchedule`; `workers` sync and checkpoint."""
        self._schedules = {
            directory.path: SyncSchedule(
                interval_ms=interval_ms,
                logs=logs,
                timers=timers,
                worker=workers.of(directory.path),
                on_error=on_error,
            )
            for directory in logs.directories
        }

    def note(self, log: PartitionLog, has_grown_much: bool) -> None:
        """Have `log` synced with its directory's next round, or at once if it has grown much."""
        self._schedules[log.log_directory].note(log, has_grown_much)

    def close(self) -> None:
        """Begin nothing any more: the logs are about to be closed."""
        for schedule in self._schedules.values():
            schedule.close()


class SyncSchedule:
    """That of one log directory. Belongs to the loop's thread; ends with `close`."""

    __slots__ = (
        "_interval_ms",
        "_is_busy",
        "_is_closed",
        "_logs",
        "_on_error",
        "_queue",
        "_superseded",
        "_synced_logs",
        "_timer",
        "_timers",
        "_waiting",
        "_worker",
    )

    def __init__(
        self,
        *,
        interval_ms: int,
        logs: LogManager,
        timers: Timers,
        worker: Runner,
        on_error: Callable[[StorageError], None],
    ) -> None:
        """`interval_ms`: 0 for never. `worker` syncs and checkpoints. `on_error` gets what a disk
        refused.
        """
        self._interval_ms = interval_ms
        self._logs = logs
        self._timers = timers
        self._worker = worker
        self._on_error = on_error
        self._timer: Timer | None = None
        self._waiting: dict[PartitionLog, None] = {}
        """Logs that were appended to since their last sync, for the next round."""
        self._queue: deque[PartitionLog] = deque()
        """Logs that the running round has not come to."""
        self._is_busy = False
        """Is the worker asked for something that has not ended?"""
        self._synced_logs: list[tuple[PartitionLog, int]] = []
        """Logs synced since the last checkpoint, and up to which offset."""
        self._superseded: list[RemoveSnapshotTask] = []
        """Removals of snapshots that nobody needs after the next checkpoint."""
        self._is_closed = False

    def note(self, log: PartitionLog, has_grown_much: bool) -> None:
        """Have `log` synced with the next round, or at once if it has grown much."""
        if self._interval_ms == 0 or self._is_closed:
            return
        if has_grown_much:
            self._waiting.pop(log, None)
            self._queue.appendleft(log)
            if not self._is_busy:
                self._next()
            return
        self._waiting[log] = None
        if self._timer is None and not self._is_busy:
            self._timer = self._timers.after(self._interval_ms, self._begin)

    def close(self) -> None:
        """Begin nothing any more: the logs are about to be closed."""
        self._is_closed = True
        self._queue.clear()
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        """Begin a round as the interval is over, unless one is running and takes them along
        later.
        """
        self._timer = None
        self._queue.extend(self._waiting)
        self._waiting = {}
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        """Have the next log synced; after the last one, or many, the checkpoint."""
        while self._queue and len(self._synced_logs) < LOGS_A_CHECKPOINT:
            log = self._queue.popleft()
            try:
                task = log.durability.sync_task()
            except StorageError as error:
                self._refused(error)
                continue
            if task is None:
                continue
            self._is_busy = True
            self._worker.run_then(task, partial(self._synced, log, task))
            return
        if self._synced_logs:
            self._is_busy = True
            synced, self._synced_logs = self._synced_logs, []
            superseded, self._superseded = self._superseded, []
            self._worker.run_then(partial(self._checkpoint, synced, superseded), self._checkpointed)
        elif self._waiting and self._timer is None:
            self._timer = self._timers.after(self._interval_ms, self._begin)

    def _synced(
        self, log: PartitionLog, task: SyncTask, error: MinibrokerError | OSError | None
    ) -> None:
        self._is_busy = False
        if error is not None:
            self._refused(error)
        else:
            self._synced_logs.append((log, task.offset))
            superseded = task.apply()
            if superseded is not None:
                self._superseded.append(superseded)
        self._next()

    def _checkpoint(
        self, synced: list[tuple[PartitionLog, int]], superseded: list[RemoveSnapshotTask]
    ) -> None:
        """Write the recovery points, on the worker. Raises StorageError."""
        self._logs.checkpoint_synced(synced)
        for remove in superseded:
            remove()

    def _checkpointed(self, error: MinibrokerError | OSError | None) -> None:
        self._is_busy = False
        if error is not None:
            self._refused(error)
        self._next()

    def _refused(self, error: MinibrokerError | OSError) -> None:
        """Say what a disk refused; the log's next append asks for a sync again."""
        logger.error("a log is not synced: %s", error)
        if isinstance(error, StorageError):
            self._on_error(error)


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
        workers: Runners,
        on_storage_error: Callable[[StorageError], None],
    ) -> None:
        """`workers` sync the logs. `on_storage_error` gets what a disk refuses; it is called on the
        loop.
        """
        self._logs = logs
        self._dynamic = dynamic
        self._clock = clock
        self._timers = timers
        self._checkpoint_timer: Timer | None = None
        self._expiry_timer: Timer | None = None
        parts: CheckParts = {
            "logs": logs,
            "dynamic": dynamic,
            "clock": clock,
            "timers": timers,
            "on_error": on_storage_error,
        }
        self.retention = RetentionCheck(**parts)
        self.flushes = FlushSchedule(**parts)
        self.compaction = CompactionCheck(**parts)
        self.syncs = SyncSchedules(
            interval_ms=dynamic.broker.log_sync_interval_ms,
            logs=logs,
            timers=timers,
            workers=workers,
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
        if self._expiry_timer is None:
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
        producer_count = 0
        try:
            for left_in_log in self._logs.remove_expired_producers(
                self._clock.now_ms(), self._dynamic.broker.producer_id_expiration_ms
            ):
                producer_count += left_in_log
                yield
        except Exception:  # a bug of ours: the next look tries again
            logger.exception("silent producers are not forgotten")
            producer_count = 1
        if producer_count:
            self.note_producers()
