"""The queue of appends: every record passes it, in the order of its log.

A partition stages an append here together with the answer that claims it. `commit`, once per socket
read and before the answers leave, has the logs write, fails the answers whose entry says that it is
not written, and lets readers see the rest: at once, or behind the fsync that `flush.messages` ask
for (`flushing`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.partitions.flushing import Flusher, Flushing, run_now_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.partition import Failable, Partition
    from minibroker.broker.storage.partition_log import AppendInfo

logger = logging.getLogger(__name__)


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
        self, *, on_change: Callable[[], None], on_failed: Callable[[str, StorageError], None]
    ) -> None:
        """Take who is told: `on_change` of commits, `on_failed` of refusals of a disk, each with
        the name of what was refused."""
        self._on_change = on_change
        self._on_failed = on_failed
        self.staged: list[tuple[Partition, Failable, AppendInfo]] = []
        """Appends that `commit` completes: partition, claiming answer, the log's entry."""
        self.flusher = Flusher(run_now_of, fail_answer)
        """The broker puts one in its place that leaves the loop."""
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
        self._on_failed(f"partition {partition}", error)
