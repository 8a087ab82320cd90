"""Logs that leave service: of a deleted topic, of a replica that was moved away, without an owner.

The partition manager gives up the partitions. Then this module deletes their logs, or keeps them.

`LogDeletion`: each log is taken out of service and its directory renamed. Then the workers make the
new names durable. The files go after a delay. A topic may have 10,000 partitions, so each of these
steps has a bound: the loop takes a few logs at a time, and so do the workers. `PendingDeletions`
has the deletions that are under way on this broker, and those that a disk refused. A request that
asked for one waits here until that is durable.

`keep_ownerless`, `keep_missing`: logs that no topic of the metadata image owns. A start finds them,
or their topic has gone missing. A topic was deleted while this broker was down, or the metadata are
other ones than those that the logs were written with: ZooKeeper came back empty, say. Nobody here
knows. So nothing is deleted, moved or shortened. The logs are named, not served, and kept whole:
retention leaves them alone, though it does not know what their topics asked for. When the topic
comes back they are served again. When another topic of that name is made, `LogManager.create_log`
marks the old log as stray and keeps it. Kafka 3.9 with ZooKeeper leaves such logs where they are.
Kafka 4 marks them all as stray (LogManager.isStrayReplica): a Kafka that starts later on the right
metadata finds empty logs then.

Source: Kafka ReplicaManager.stopReplicas, LogManager.asyncDelete.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.config.topic import topic_config
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.config.topic import TopicConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.worker import Runners
    from minibroker.kafka.errors import MinibrokerError
    from minibroker.kafka.ids import TopicPartition

    Task = Callable[[], None]

logger = logging.getLogger(__name__)

REMOVED_AT_ONCE: Final = 100
"""Logs whose files go in one task of a worker, by one timer: 100 timers for 10,000 logs."""


class LogDeletion:
    """The deletion of this broker's logs of one topic. Belongs to the loop."""

    __slots__ = (
        "_delay_ms",
        "_evidence",
        "_indexes",
        "_logs",
        "_logs_by_directory",
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
        self._logs_by_directory: dict[str, list[TopicPartition]] = {}
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
                partition.give_up(is_deleted=True)
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
        self._logs_by_directory.setdefault(path, []).append(log.name)
        tasks = self._tasks.setdefault(path, [])
        tasks.append(task)
        if len(tasks) == REMOVED_AT_ONCE:
            self._remove_later(path)

    def _remove_later(self, path: str) -> None:
        self._logs.disk.of(path).run_after(self._delay_ms, partial(_run_all, self._tasks.pop(path)))

    def settle(self, workers: Runners, done: Callable[[], None]) -> None:
        """Have the workers make it durable which logs have left which log directory; call `done`
        after the last one. `failure` is set where a disk refused.
        """
        unsettled = len(self._logs_by_directory)

        def end(error: MinibrokerError | OSError | None) -> None:
            nonlocal unsettled
            if error is not None:
                if not isinstance(error, StorageError):
                    error = StorageError(str(error), cause=error)
                self._note_failure(f"names of deleted logs of topic {self._topic}", error)
            unsettled -= 1
            if unsettled == 0:
                done()

        for path, deleted_logs in self._logs_by_directory.items():
            workers.of(path).run_then(partial(self._logs.settle_deletion, path, deleted_logs), end)
        if not self._logs_by_directory:
            done()

    def _note_failure(self, subject: str, error: StorageError) -> None:
        self.failure = self.failure or error
        self._on_failed(subject, error)


def _run_all(tasks: list[Task]) -> None:
    for task in tasks:
        task()


class PendingDeletions:
    """Topic → the deletions of its logs, until they are durable. Belongs to the loop."""

    __slots__ = (
        "_dynamic",
        "_image",
        "_logs",
        "_lost_with_topic",
        "_on_failed",
        "_refused",
        "_settling",
        "_steps",
        "_workers",
    )

    def __init__(
        self,
        *,
        image: Callable[[], MetadataImage],
        logs: LogManager,
        dynamic: DynamicConfig,
        workers: Runners,
        on_failed: Callable[[str, StorageError], None],
    ) -> None:
        """`workers` remove the files. `on_failed` gets what a disk refuses, with its subject."""
        # Constant after construction.
        self._image = image
        self._logs = logs
        self._dynamic = dynamic
        self._workers = workers
        self._on_failed = on_failed
        # Changed by the methods.
        self._steps: dict[str, Generator[None]] = {}
        """Topic that is gone from the metadata → the rest of the steps by which its logs leave
        service."""
        self._settling: dict[str, list[LogDeletion]] = {}
        """Topic → deletions of logs that are under way, or whose new names are not durable yet."""
        self._refused: dict[str, StorageError] = {}
        """Topic that is gone from the metadata → the error of a disk that did not let go of a log
        of it."""
        self._lost_with_topic: dict[str, set[int]] = {}
        """Topic that is gone from the metadata → its partitions in offline log directories."""

    def begin(
        self,
        topic: TopicImage,
        partitions: Mapping[int, Partition],
        evidence: DeletionEvidence,
    ) -> Generator[None]:
        """Return the steps that delete the logs of a topic, a log with each. `partitions` are those
        of the topic, which nobody finds any more. Nothing may be staged for their logs.
        """
        name = topic.name
        lost = {index for index, partition in partitions.items() if partition.is_lost}
        if lost:
            self._lost_with_topic[name] = lost
        deletion = self._new(topic, partitions, range(len(topic.partitions)), evidence)

        def take() -> Generator[None]:
            yield from deletion.steps()
            self._steps.pop(name, None)
            self._settle(name, deletion)

        steps = self._steps[name] = take()
        return steps

    def begin_keeping(self, topic: str, steps: Iterator[None]) -> Generator[None]:
        """Return these steps, by which the logs of a topic leave service and are kept. `finish`
        takes those that are left.
        """

        def take() -> Generator[None]:
            yield from steps
            self._steps.pop(topic, None)

        new_steps = self._steps[topic] = take()
        return new_steps

    def delete(
        self,
        topic: TopicImage,
        partitions: Mapping[int, Partition],
        index: int,
        evidence: DeletionEvidence,
    ) -> LogDeletion:
        """Delete one log at once; return its deletion, which is not durable yet. Nothing may be
        staged for the log.
        """
        deletion = self._new(topic, partitions, [index], evidence)
        for _ in deletion.steps():
            pass
        self._settle(topic.name, deletion)
        return deletion

    async def delete_replicas(
        self,
        topic: str,
        indexes: Iterable[int],
        take: Callable[[int], Partition | None],
        evidence: DeletionEvidence,
    ) -> dict[int, StorageError | None]:
        """Delete the logs of these replicas. `take` gives up a partition, if there is one. An index
        is asked for when its turn comes, which may be behind a pause.

        Return, per replica, the error of a disk that refuses, or refused since the topic left the
        metadata. Their new names are durable when this returns.
        """
        topic_id = self.id_of(topic)
        refused = self._refused.get(topic)
        lost = self._lost_with_topic.get(topic, ())
        errors: dict[int, StorageError | None] = {}
        turn = TimeSlice()
        for index in indexes:
            partition = take(index)
            image = TopicImage(topic, topic_id, [])
            partitions = {index: partition} if partition else {}
            deletion = self.delete(image, partitions, index, evidence)
            errors[index] = deletion.failure or refused
            if index in lost and errors[index] is None:
                errors[index] = StorageError(
                    f"the log of {topic}-{index} may be in an offline log directory"
                )
            if turn.is_over:
                await turn.pause()
        settling = list(self._settling.get(topic, ()))
        await self.wait_until_settled(topic)
        failed = next((deletion.failure for deletion in settling if deletion.failure), None)
        return {index: error or failed for index, error in errors.items()}

    def id_of(self, topic: str) -> TopicId:
        """Return the id of a topic, which the controller may be deleting; zero, which is any, where
        nobody knows it. A log of another topic of that name stays.
        """
        image = self._image()
        topic_image = image.topics.get(topic)
        if topic_image is not None:
            return topic_image.topic_id
        return image.hidden_topics.get(topic, TopicId(ZERO_TOPIC_ID))

    def is_under_way(self, topic: str) -> bool:
        """Return whether logs of this topic go, or their new names are not durable yet."""
        return topic in self._settling

    async def wait_until_settled(self, topic: str) -> None:
        """Return when no deletion of this topic's logs is under way any more."""
        loop = asyncio.get_running_loop()
        while topic in self._settling:
            future: asyncio.Future[None] = loop.create_future()
            self._settling[topic][0].listeners.append(partial(_finish, future))
            await future

    def check_refused(self, topic: str) -> None:
        """Raise the StorageError of a disk that did not let go of a log of this topic."""
        if topic in self._refused:
            raise self._refused[topic]

    def forget_errors(self, topic: str) -> None:
        """Forget the disks that refused: the topic leaves anew, or is there again."""
        self._refused.pop(topic, None)
        self._lost_with_topic.pop(topic, None)

    def finish(self, topic: str) -> None:
        """Take out of service the logs that an earlier topic of this name still has."""
        for _ in self._steps.pop(topic, ()):
            pass

    def end(self, *, are_finished: bool) -> None:
        """Finish the deletions that are under way, or drop them as a process that dies. The logs
        are about to be closed.
        """
        for topic, steps in list(self._steps.items()):
            if are_finished:
                self.finish(topic)
            else:
                steps.close()

    def _new(
        self,
        topic: TopicImage,
        partitions: Mapping[int, Partition],
        indexes: Sequence[int],
        evidence: DeletionEvidence,
    ) -> LogDeletion:
        """Return a deletion that counts as under way."""
        deletion = LogDeletion(
            topic,
            partitions,
            indexes,
            evidence,
            logs=self._logs,
            # As Kafka: the broker's delay, whatever the topic's own `file.delete.delay.ms`.
            delay_ms=self._dynamic.topic_default.file_delete_delay_ms,
            on_failed=self._on_failed,
        )
        self._settling.setdefault(topic.name, []).append(deletion)
        return deletion

    def _settle(self, topic: str, deletion: LogDeletion) -> None:
        """Make durable that logs of this topic have left."""

        def end() -> None:
            if deletion.failure is not None and topic not in self._image().topics:
                self._refused[topic] = deletion.failure
            others = self._settling[topic]
            others.remove(deletion)
            if not others:
                del self._settling[topic]
            for tell in deletion.listeners:
                tell()

        deletion.settle(self._workers, end)


def _finish(future: asyncio.Future[None]) -> None:
    """End a wait, unless the task that waits has gone."""
    if not future.done():
        future.set_result(None)


NAMED_MAX: Final = 20
"""So many of them are named in the one warning."""
_KEEP_EVERYTHING: Final = {
    "cleanup.policy": "delete",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


def keep_ownerless(
    logs: LogManager, image: MetadataImage, broker_id: int, defaults: TopicConfig
) -> None:
    """Warn of the logs that no partition of the image has on this broker, and keep them whole."""
    ownerless = [
        log
        for name, log in logs.logs.items()
        if broker_id not in _replicas_of(image, name) and name.topic not in image.hidden_topics
    ]
    if not ownerless:
        return
    config = topic_config(_KEEP_EVERYTHING, defaults)
    for log in ownerless:
        log.update_config(config, logs.rules_of(config))
    directories = [log.directory for log in ownerless[:NAMED_MAX]]
    if len(ownerless) > NAMED_MAX:
        directories.append("…")
    logger.warning(
        "no topic of this cluster owns %d of the logs; they are kept and not served: %s. If their "
        "topics were deleted, remove these directories while no broker runs. If not, the metadata "
        "are not those that the logs were written with: check zookeeper.connect and log.dirs",
        len(ownerless),
        ", ".join(directories),
    )


def keep_missing(
    logs: LogManager, partitions: Collection[Partition], defaults: TopicConfig
) -> Iterator[None]:
    """Take the partitions of a missing topic out of service, one with each step, and keep their
    logs whole. They have been given up: nobody finds them any more.
    """
    config = topic_config(_KEEP_EVERYTHING, defaults)
    for partition in partitions:
        log = logs.get(partition.topic, partition.index)
        partition.give_up(is_deleted=False)
        if log is not None:
            log.update_config(config, logs.rules_of(config))
        yield


def _replicas_of(image: MetadataImage, name: TopicPartition) -> list[int]:
    """Return the brokers that have this partition, none where the image does not know it."""
    partition = image.partition(*name)
    return [] if partition is None else partition.replicas
