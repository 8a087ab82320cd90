"""fsync as `flush.messages` and `flush.ms` ask for it: off the loop, and answers wait where Kafka's
would.

Kafka's append calls fsync before it returns once `flush.messages` records are not on the disk; the
producer's answer leaves after that. Here the append is written, `AppendQueue.commit` asks
`Flusher` for the fsync, and the connection holds the answers of that read until it is done
(`server/transport`). A partition has one fsync at a time; whoever asks meanwhile shares the next
one. A disk that refuses makes those answers KAFKA_STORAGE_ERROR and takes the log directory
offline, as in Kafka, a full disk too (`SyncError`): readers do not see what it was for.

`flush.ms` is looked at every `log.flush.scheduler.interval.ms`, which by default is never: without
that setting `flush.ms` does nothing, in Kafka neither.

Source: Kafka UnifiedLog.append (unflushedMessages), LogManager.flushDirtyLogs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.partitions.log_check import LogCheck
from minibroker.kafka.errors import MinibrokerError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.partition import Failable, Partition
    from minibroker.broker.storage.tasks import FlushTask

    RunThen = Callable[
        [Callable[[], None], Callable[[MinibrokerError | OSError | None], None]], None
    ]

logger = logging.getLogger(__name__)

LOGS_AT_ONCE: Final = 64
"""So many logs are looked at by `FlushSchedule` before the loop does something else."""
NEVER_MS: Final = 1 << 53
"""An interval beyond this (some 285,000 years) is none."""


def run_now(
    task: Callable[[], None], done: Callable[[MinibrokerError | OSError | None], None]
) -> None:
    """Do `task` at once, where there is no worker, and tell `done` what came of it."""
    try:
        task()
    except (MinibrokerError, OSError) as error:
        done(error)
    else:
        done(None)


def run_now_of(_path: str) -> RunThen:
    """Return what does the work of a log directory where there are no workers."""
    return run_now


class Flushing:
    """The fsyncs that some answers wait for; `future` is done when all of them are."""

    __slots__ = ("_left", "future", "is_failed")

    def __init__(self) -> None:
        self._left = 0
        self.is_failed = False
        """The disk refused one of them: an answer that claims what it was for says so already."""
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        """Count one more to wait for."""
        self._left += 1

    def end(self) -> None:
        """Count one of them as done, well or not."""
        self._left -= 1
        if self._left == 0 and not self.future.done():
            self.future.set_result(None)


class _SyncRound:
    """One fsync of one partition: the answers that claim it, and who waits for it."""

    __slots__ = ("answers", "task", "waiting")

    def __init__(self) -> None:
        self.answers: list[Failable] = []
        self.waiting: list[Flushing] = []
        self.task: FlushTask | None = None
        """The fsync, once it has begun."""


class Flusher:
    """Belongs to the loop's thread; the fsyncs do not."""

    __slots__ = ("_fail", "_next", "_run_then_of", "_running")

    def __init__(
        self, run_then_of: Callable[[str], RunThen], fail: Callable[[Failable], None]
    ) -> None:
        """`run_then_of`: log directory → what takes a task for its worker, and who is told on the
        loop how it ended. `fail` turns an answer into an error.
        """
        self._run_then_of = run_then_of
        self._fail = fail
        self._running: dict[Partition, _SyncRound] = {}
        self._next: dict[Partition, _SyncRound] = {}

    def flush(self, partition: Partition, answers: list[Failable], flushing: Flushing) -> None:
        """Have what these answers claim synced; `flushing` waits for it.

        When it is done readers see it and waiters are told.
        """
        is_running = partition in self._running
        joined = self._next.setdefault(partition, _SyncRound())
        joined.answers += answers
        joined.waiting.append(flushing)
        flushing.begin()
        if not is_running:
            self._start(partition)

    def _start(self, partition: Partition) -> None:
        begun = self._running[partition] = self._next.pop(partition)
        try:
            task = begun.task = partition.log.durability.flush_task()
        except StorageError as error:
            self._ended(partition, error)
        else:
            run_then = self._run_then_of(partition.log.log_directory)
            run_then(task, partial(self._ended, partition))

    def _ended(self, partition: Partition, error: MinibrokerError | OSError | None) -> None:
        ended = self._running.pop(partition)
        if isinstance(error, StorageError):
            partition.appends.log_failed(partition, error)
        elif error is not None:
            logger.error("partition %s: %s", partition, error)
        elif ended.task is not None:
            ended.task.apply()
            if ended.task.place is not partition.log.place:
                self._repeat(partition, ended)
                return
        # Without an error it may have been passed by: the directory failed, or the topic is gone.
        is_refused = error is not None or partition.log.place.is_deleted
        if is_refused:
            for answer in ended.answers:
                self._fail(answer)
            partition.wake()  # a coordinator has to hear of what it waits for
        elif ended.task is not None:
            partition.advance_high_watermark(ended.task.end)
        if partition in self._next:
            self._start(partition)
        for flushing in ended.waiting:
            flushing.is_failed = flushing.is_failed or is_refused
            flushing.end()

    def _repeat(self, partition: Partition, ended: _SyncRound) -> None:
        """Sync the copy of a partition that moved to another log directory meanwhile."""
        joined = self._next.setdefault(partition, _SyncRound())
        joined.answers[:0] = ended.answers
        joined.waiting[:0] = ended.waiting
        self._start(partition)


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
        self._left = deque(self._logs.logs)
        self._step()

    def _step(self) -> None:
        """Look at the next few logs; once more later while any has something that is not synced."""
        left = self._left
        if left is None:
            return
        now_ms = self._clock.now_ms()
        for _ in range(min(LOGS_AT_ONCE, len(left))):
            log = self._logs.logs.get(left.popleft())
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
        if left:
            self._timer = self._timers.after(0, self._step)
            return
        self._timer = self._left = None
        if self._is_needed_again:
            self._is_needed_again = False
            self.note_change()
