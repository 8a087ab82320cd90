"""When logs are synced: a few seconds after an append, or when a log has grown by 64 MB.

After a kill a start has to check everything behind the recovery point. Kafka moves the recovery
point at a roll, which is up to 1 GiB later. Here a sync moves it every
`minibroker.log.sync.interval.ms`, so a start checks a few seconds' worth. A power cut can take no
more than that either. With 0 nothing is synced by itself, as in Kafka.

    a log's first append since its last sync ─► it waits ─► the interval is over: a round begins
    round: for each log  sync on the worker ─► apply on the loop
           then          checkpoint on the worker ─► superseded snapshots go

Each log directory has rounds of its own, one log at a time: a disk that syncs hundreds of logs
serves others in between, and one that hangs holds up nobody else's. A log that has grown by
`SYNC_BYTES` is next at once. Answers do not wait for any of this (`flushing` is for those that do).
An idle broker does nothing, because only appends arm the timer.

Source: none, Kafka leaves this to the operating system.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.storage.tasks import RemoveTask
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.flushing import RunThen
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog
    from minibroker.broker.storage.tasks import SyncTask
    from minibroker.broker.timers import Timer, Timers
    from minibroker.kafka.errors import MinibrokerError

logger = logging.getLogger(__name__)

LOGS_A_CHECKPOINT: Final = 256
"""A round of more logs writes a checkpoint after so many: the first ones do not wait for the last.
"""


class SyncSchedules:
    """Those of all log directories: a disk that hangs holds up its own logs only."""

    __slots__ = ("_schedules",)

    def __init__(
        self,
        *,
        interval_ms: int,
        logs: LogManager,
        timers: Timers,
        run_then_of: Callable[[str], RunThen],
        on_error: Callable[[StorageError], None],
    ) -> None:
        """Take the arguments of `SyncSchedule`; `run_then_of`: log directory → its worker."""
        self._schedules = {
            directory.path: SyncSchedule(
                interval_ms=interval_ms,
                logs=logs,
                timers=timers,
                run_then=run_then_of(directory.path),
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
        "_run_then",
        "_superseded",
        "_synced_logs",
        "_timer",
        "_timers",
        "_waiting",
    )

    def __init__(
        self,
        *,
        interval_ms: int,
        logs: LogManager,
        timers: Timers,
        run_then: RunThen,
        on_error: Callable[[StorageError], None],
    ) -> None:
        """`interval_ms`: 0 for never. `run_then`: gets a task for a worker, and a function that is
        told on the loop how it ended. `on_error` is told what a disk refused.
        """
        self._interval_ms = interval_ms
        self._logs = logs
        self._timers = timers
        self._run_then = run_then
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
        self._superseded: list[str] = []
        """Paths of snapshots that nobody needs after the next checkpoint."""
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
            self._run_then(task, partial(self._synced, log, task))
            return
        if self._synced_logs:
            self._is_busy = True
            synced, self._synced_logs = self._synced_logs, []
            superseded, self._superseded = self._superseded, []
            self._run_then(partial(self._checkpoint, synced, superseded), self._checkpointed)
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

    def _checkpoint(self, synced: list[tuple[PartitionLog, int]], superseded: list[str]) -> None:
        """Write the recovery points, on the worker. Raises StorageError."""
        self._logs.checkpoint_synced(synced)
        RemoveTask(self._logs.disk.files, superseded)()

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
