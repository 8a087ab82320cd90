"""The queue of appends: every record passes it, in the order of its log.

A partition stages an append here together with the answer that claims it. `commit`, once per socket
read and before the answers leave, has the logs write, fails the answers whose entry says that it is
not written, and lets readers see the rest: at once, or behind the fsync that `flush.messages` ask
for.

Kafka's append calls fsync before it returns once `flush.messages` records are not on the disk; the
producer's answer leaves after that. Here the append is written, `commit` asks `Flusher` for the
fsync off the loop, and the connection holds the answers of that read until it is done
(`server/transport`). A partition has one fsync at a time; a commit meanwhile shares the next one. A
disk that refuses makes those answers KAFKA_STORAGE_ERROR and takes the log directory offline, as in
Kafka, a full disk too (`SyncError`): readers do not see what it was for.

Source: Kafka UnifiedLog.append (unflushedMessages).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import FullLeaderError, MinibrokerError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.partition import Failable, Partition
    from minibroker.broker.storage.partition_log import AppendInfo
    from minibroker.broker.storage.tasks import FlushTask
    from minibroker.broker.worker import Runners


logger = logging.getLogger(__name__)


class Flushing:
    """The fsyncs that some answers wait for; `future` is done when all of them are."""

    __slots__ = ("_open_count", "future", "is_failed")

    def __init__(self) -> None:
        self._open_count = 0
        self.is_failed = False
        """The disk refused one of them: an answer that claims what it was for says so already."""
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        """Count one more to wait for."""
        self._open_count += 1

    def end(self) -> None:
        """Count one of them as done, well or not."""
        self._open_count -= 1
        if self._open_count == 0 and not self.future.done():
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

    __slots__ = ("_next", "_running", "_workers")

    def __init__(self, workers: Runners) -> None:
        """`workers` run the fsyncs."""
        self._workers = workers
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
        sync_round = self._running[partition] = self._next.pop(partition)
        try:
            task = sync_round.task = partition.log.durability.flush_task()
        except StorageError as error:
            self._ended(partition, error)
        else:
            worker = self._workers.of(partition.log.log_directory)
            worker.run_then(task, partial(self._ended, partition))

    def _ended(self, partition: Partition, error: MinibrokerError | OSError | None) -> None:
        ended = self._running.pop(partition)
        if isinstance(error, StorageError):
            partition.appends.log_failed(partition, error)
        elif error is not None:
            logger.error("partition %s: %s", partition, error)
        elif ended.task is not None:
            ended.task.apply()
            place = partition.log.place
            is_same_log = ended.task.place is place and ended.task.is_current
            if not (is_same_log or place.is_deleted):
                self._repeat(partition, ended)
                return
        # Without an error it may have been passed by: the directory failed, or the topic is gone.
        is_refused = error is not None or partition.log.place.is_deleted
        if is_refused:
            for answer in ended.answers:
                fail_answer(answer)
            partition.wake()  # a coordinator has to hear of what it waits for
        elif ended.task is not None:
            partition.advance_high_watermark(ended.task.end)
        if partition in self._next:
            self._start(partition)
        for flushing in ended.waiting:
            flushing.is_failed = flushing.is_failed or is_refused
            flushing.end()

    def _repeat(self, partition: Partition, ended: _SyncRound) -> None:
        """Sync a partition again that moved to another log directory meanwhile, or was cut: what it
        has there now may be other records.
        """
        joined = self._next.setdefault(partition, _SyncRound())
        joined.answers[:0] = ended.answers
        joined.waiting[:0] = ended.waiting
        self._start(partition)


def fail_answer(answer: Failable) -> None:
    """Turn an answer into Kafka's answer for a disk that refuses.

    An answer may tell a coordinator; a bug there is logged, and other answers do not suffer.
    """
    try:
        answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    except Exception:
        logger.exception("cannot tell that an append was not written")
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1


class AppendQueue:
    """Staged appends of all partitions; belongs to the loop's thread."""

    __slots__ = ("_on_change", "_on_failed", "flusher", "flushing", "staged")

    def __init__(
        self,
        workers: Runners,
        *,
        on_change: Callable[[], None],
        on_failed: Callable[[str, StorageError], None],
    ) -> None:
        """`workers` run the fsyncs. `on_change` is called after commits, `on_failed` for what a
        disk refuses, with the name of what was refused.
        """
        self._on_change = on_change
        self._on_failed = on_failed
        self.staged: list[tuple[Partition, Failable, AppendInfo]] = []
        """Appends that `commit` completes: partition, claiming answer, the log's entry."""
        self.flusher = Flusher(workers)
        self.flushing: Flushing | None = None
        """The fsyncs that answers which have not left wait for."""

    def commit(self) -> None:
        """Write what was staged since the last call, one `writev` per partition.

        A disk that refuses turns the answers that claimed the append into KAFKA_STORAGE_ERROR; the
        log has cut itself back, so nothing torn stays. Where `flushing` is set afterwards, the
        sender of the answers takes it and waits for it first.
        """
        staged = self.staged
        if not staged:
            return
        self.staged = []
        for partition, answer, entry in staged:
            try:
                partition.log.write_staged()
            except StorageError as error:
                self.log_failed(partition, error)
            except Exception:  # a bug of ours costs this partition, the others are written
                logger.exception("cannot write to %s", partition)
            if not entry.is_written:
                fail_answer(answer)
        self._on_change()
        # Readers are woken after all writes: they may read several partitions that were staged.
        unsynced: dict[Partition, list[Failable]] | None = None
        for partition, answer, _ in staged:
            log = partition.log
            end_offset = log.log_end_offset
            if end_offset == log.high_watermark:
                continue
            if partition.replicas is not None:
                partition.tell_readers()
            if end_offset - log.durability.recovery_point < log.config.flush_messages:
                partition.advance_high_watermark(end_offset)
            else:
                unsynced = unsynced or {}
                unsynced.setdefault(partition, []).append(answer)
        if unsynced is not None:
            self._flush(unsynced)

    def commit_told(self) -> None:
        """Write what was staged since the last `commit`, like `commit`; no connection waits for it.

        For appends whose entries are told when they are visible (journals, markers): the answers
        that depend on them wait for that.
        """
        flushing, self.flushing = self.flushing, None
        self.commit()
        self.flushing = flushing

    def _flush(self, unsynced: dict[Partition, list[Failable]]) -> None:
        """Have these answers, and readers, wait for fsync: `flush.messages` are reached."""
        flushing = self.flushing
        if flushing is None or flushing.future.done():
            flushing = Flushing()
        flushing.begin()
        for partition, answers in unsynced.items():
            self.flusher.flush(partition, answers, flushing)
        flushing.end()
        self.flushing = flushing

    def when_synced(self, then: Callable[[bool], None]) -> None:
        """Call `then` when the fsyncs are done that the answers of this read wait for; mostly at
        once.

        For answers of other connections that follow from this commit. `then` is told whether it is
        on the disk.
        """
        flushing = self.flushing
        if flushing is None:
            then(True)
        elif flushing.future.done():
            then(not flushing.is_failed)
        else:
            flushing.future.add_done_callback(lambda _future: then(not flushing.is_failed))

    def log_failed(self, partition: Partition, error: StorageError) -> None:
        """Report what the disk refused. The next append tries again, as room may come back, unless
        the whole directory goes offline.
        """
        if error.is_full and partition.has_other_in_sync:
            error = FullLeaderError(
                str(error), log_directory=error.log_directory, cause=error.__cause__
            )
        self._on_failed(f"partition {partition}", error)
