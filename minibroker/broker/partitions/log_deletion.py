"""The logs of a deleted topic, or of a replica that was moved away, on their way out.

Each log is taken out of service and its directory renamed. Then the workers make the new names
durable. The files go after a delay. A topic may have 10,000 partitions, so each of these steps has
a bound: the loop takes a few logs at a time, and so do the workers.

Source: Kafka ReplicaManager.stopReplicas, LogManager.asyncDelete.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.partitions.role import OfflineReason, go_offline
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.partitions.flushing import RunThen
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.kafka.errors import MinibrokerError
    from minibroker.kafka.ids import TopicPartition

    Task = Callable[[], None]

REMOVED_AT_ONCE: Final = 100
"""Logs whose files go in one task of a worker, by one timer: 100 timers for 10,000 logs."""


class LogDeletion:
    """The deletion of this broker's logs of one topic. Belongs to the loop."""

    __slots__ = (
        "_delay_ms",
        "_evidence",
        "_indexes",
        "_left",
        "_logs",
        "_on_failed",
        "_partitions",
        "_tasks",
        "_topic",
        "_topic_id",
        "failure",
        "listeners",
    )

    def __init__(
        self,
        topic: TopicImage,
        partitions: Mapping[int, Partition],
        indexes: Sequence[int],
        evidence: DeletionEvidence,
        *,
        logs: LogManager,
        delay_ms: int,
        on_failed: Callable[[str, StorageError], None],
    ) -> None:
        """`partitions`: those of the topic, which nobody finds any more. `indexes`: whose logs go.
        `delay_ms`: how long the files stay. `on_failed` is told of everything that a disk refuses,
        with the subject.
        """
        # Constant after construction.
        self._topic = topic.name  # not the image, which a worker's last task would keep
        self._topic_id = topic.topic_id
        self._indexes = indexes
        self._partitions = partitions
        self._evidence = evidence
        self._logs = logs
        self._delay_ms = delay_ms
        self._on_failed = on_failed
        # Changed by the steps.
        self._left: dict[str, list[TopicPartition]] = {}
        """Log directory → the logs that have left it."""
        self._tasks: dict[str, list[Task]] = {}
        """Log directory → tasks that remove files, not handed over yet."""
        self.failure: StorageError | None = None
        """An error of a disk that refused, None while there was none."""
        self.listeners: list[Callable[[], None]] = []
        """Called when it is durable which logs have left."""

    def steps(self) -> Iterator[None]:
        """Take one log out of service with each step. Nothing may be staged for these logs."""
        for index in self._indexes:
            partition = self._partitions.get(index)
            if partition is not None:
                # An answer of its leader may be on its way: nothing is written to files that go.
                give_up(partition, OfflineReason.DELETED)
            self._take_out(index)
            yield
        for path in list(self._tasks):
            self._remove_later(path)

    def _take_out(self, index: int) -> None:
        """Rename the log's directory if there is a log, and have its files removed later."""
        try:
            log = self._logs.get(self._topic, index)
            if log is None or log.place.is_of_other_topic(self._topic_id):
                return
            task = self._logs.delete(self._topic, index, self._evidence)
        except StorageError as error:
            self._note_failure(f"partition {self._topic}-{index}", error)
            return
        if task is None:
            return
        path = log.log_directory
        self._left.setdefault(path, []).append(log.name)
        tasks = self._tasks.setdefault(path, [])
        tasks.append(task)
        if len(tasks) == REMOVED_AT_ONCE:
            self._remove_later(path)

    def _remove_later(self, path: str) -> None:
        self._logs.disk.of(path).run_after(self._delay_ms, partial(_run_all, self._tasks.pop(path)))

    def settle(self, run_then_of: Callable[[str], RunThen], done: Callable[[], None]) -> None:
        """Have the workers make it durable which logs have left which log directory; call `done`
        after the last one. `failure` is set where a disk refused.
        """
        unsettled = len(self._left)

        def end(error: MinibrokerError | OSError | None) -> None:
            nonlocal unsettled
            if error is not None:
                if not isinstance(error, StorageError):
                    error = StorageError(str(error))
                self._note_failure(f"names of deleted logs of topic {self._topic}", error)
            unsettled -= 1
            if unsettled == 0:
                done()

        for path, gone in self._left.items():
            run_then_of(path)(partial(self._logs.settle_deletion, path, gone), end)
        if not self._left:
            done()

    def _note_failure(self, subject: str, error: StorageError) -> None:
        self.failure = self.failure or error
        self._on_failed(subject, error)


def give_up(partition: Partition, reason: OfflineReason) -> None:
    """Serve a partition no more that nobody finds any more: those who wait hear that there is no
    such partition.
    """
    partition.wake()
    if partition.replicas is not None:
        partition.replicas.refuse_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition.take_role(go_offline(partition.role, reason))


def _run_all(tasks: list[Task]) -> None:
    for task in tasks:
        task()
