"""The deletions of logs that are under way on this broker, and those that a disk refused.

The partition manager gives up the partitions of a topic that is deleted, or of a replica that was
moved away. Then this module deletes their logs (`log_deletion`). A request that asked for
it waits here until that is durable.

Source: Kafka ReplicaManager.stopReplicas, LogManager.asyncDelete.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.partitions.log_deletion import LogDeletion
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.partitions.flushing import RunThen
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.log_manager import LogManager


class PendingDeletions:
    """Topic → the deletions of its logs, until they are durable. Belongs to the loop."""

    __slots__ = (
        "_dynamic",
        "_image",
        "_logs",
        "_lost_with_topic",
        "_on_failed",
        "_refused",
        "_run_then_of",
        "_settling",
        "_steps",
    )

    def __init__(
        self,
        *,
        image: Callable[[], MetadataImage],
        logs: LogManager,
        dynamic: DynamicConfig,
        run_then_of: Callable[[str], RunThen],
        on_failed: Callable[[str, StorageError], None],
    ) -> None:
        """`run_then_of`: log directory → what has its worker do what may block, and tells the loop
        how it ended. `on_failed` is told of everything that a disk refuses, with the subject.
        """
        # Constant after construction.
        self._image = image
        self._logs = logs
        self._dynamic = dynamic
        self._run_then_of = run_then_of
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

        taken = self._steps[topic] = take()
        return taken

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
        indexes: Collection[int],
        take: Callable[[int], Partition | None],
        evidence: DeletionEvidence,
    ) -> dict[int, StorageError | None]:
        """Delete the logs of these replicas. `take` gives up a partition, if there is one.

        Return, per replica, the error of a disk that refuses, or refused since the topic left the
        metadata. Their new names are durable when this returns.
        """
        topic_id = self._id_of(topic)
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
        await self.settled(topic)
        failed = next((deletion.failure for deletion in settling if deletion.failure), None)
        return {index: error or failed for index, error in errors.items()}

    def _id_of(self, topic: str) -> TopicId:
        """Return the id of a topic, which the controller may be deleting; zero, which is any, where
        nobody knows it. A log of another topic of that name stays.
        """
        image = self._image()
        known = image.topics.get(topic)
        if known is not None:
            return known.topic_id
        return image.leaving.get(topic, TopicId(ZERO_TOPIC_ID))

    def is_under_way(self, topic: str) -> bool:
        """Return whether logs of this topic go, or their new names are not durable yet."""
        return topic in self._settling

    async def settled(self, topic: str) -> None:
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

        deletion.settle(self._run_then_of, end)


def _finish(future: asyncio.Future[None]) -> None:
    """End a wait, unless the task that waits has gone."""
    if not future.done():
        future.set_result(None)
