"""The one writer of partition states: /brokers/topics/<topic>/partitions/<n>/state.

Stands between the controller's rules and the tree. Every write checks the controller epoch, so that
a deposed controller writes nothing. It also checks the version of the state that the rule looked
at, so that no write is lost. Where another process was faster, the state is read and decided
again.

Source: Kafka's PartitionStateMachine (doElectLeaderForPartitions), KafkaZkClient.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.announcements import announcement_of
from minibroker.broker.cluster.codecs import (
    PartitionState,
    decode_state,
    encode_isr_change,
    encode_state,
)
from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.cluster.tree import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
)
from minibroker.broker.cluster.updates import STATES_PER_STEP, replace_partition
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import may_be_same_topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.tree import Operation
    from minibroker.kafka.ids import TopicPartition

    Rule = Callable[[PartitionImage], PartitionState | None]
    """Returns the state that a partition must get, None to leave it as it is."""

STATES_PER_WRITE: Final = 50
"""Partition states in one transaction of ZooKeeper, where a round trip takes most of the time."""
WRITE_ATTEMPTS_MAX: Final = 10
"""The most times that a write is tried, because another process wrote the same states."""

T = TypeVar("T")


class PartitionStates:
    """Writes in the controller's name. Call it under the cluster's lock, while being controller."""

    def __init__(self, context: ClusterContext, election: Election) -> None:
        self._context = context
        self._election = election

    async def multi(self, operations: list[Operation]) -> list[str | int]:
        """Call `tree.multi` in the controller's name. Raises KafkaError: NOT_CONTROLLER."""
        guard = self._election.guard()
        try:
            return (await self._context.tree.multi(guard + operations))[len(guard) :]
        except BadVersion as error:
            if error.path != paths.CONTROLLER_EPOCH:
                raise
            self._election.lose()
            raise KafkaError(ErrorCode.NOT_CONTROLLER) from error

    async def change(
        self, topic: TopicImage, rule: Rule, indexes: Iterable[int] | None = None
    ) -> bool:
        """Give these partitions (None: all) the states of the rule; return whether one is new.

        They are written and applied to the image a few at a time. The image has the topic with the
        first of them: it may be new, or have new partitions. An exception of the rule ends the
        change.
        """
        new_states = []
        turn = TimeSlice()
        last_partition, is_changed = None, False
        for index in range(len(topic.partitions)) if indexes is None else indexes:
            partition = topic.partitions[index]
            if partition is not last_partition:  # neighbours may share an image
                is_changed = rule(partition) is not None
                last_partition = partition
            if is_changed:
                new_states.append(index)
            if turn.is_over:
                await turn.pause()
        if any(topic.partitions[index].partition_epoch < 0 for index in new_states):
            with suppress(NodeExists):  # partitions are added to a known topic
                await self.multi([Create(paths.partitions(topic.name))])
        await self._write_in_steps(topic, rule, new_states)
        return bool(new_states)

    async def _write_in_steps(self, topic: TopicImage, rule: Rule, indexes: list[int]) -> None:
        updater = self._context.updater
        write_size = STATES_PER_WRITE if self._context.tree.is_shared else STATES_PER_STEP
        is_begun = False
        turn = TimeSlice()
        try:
            for part in _parts_of(indexes, write_size):
                topic, states = await self._write(topic, rule, part)
                if not is_begun and len(indexes) > STATES_PER_STEP:
                    is_begun = True
                    updater.begin_steps()
                for step in _parts_of(list(states), STATES_PER_STEP):
                    topic = with_states(topic, {index: states[index] for index in step})
                    updater.apply_states(topic, step)
                    if turn.is_over:
                        await turn.pause()
        finally:
            if is_begun:
                updater.end_steps()

    async def _write(
        self, topic: TopicImage, rule: Rule, indexes: list[int]
    ) -> tuple[TopicImage, dict[int, PartitionState]]:
        """Write these partitions' states; return the topic that they were decided on, and them."""

        async def write(topic: TopicImage) -> tuple[TopicImage, dict[int, PartitionState]]:
            states = {
                index: state
                for index in indexes
                if (state := rule(topic.partitions[index])) is not None
            }
            if states:
                await self.multi(state_operations(topic, states))
            return topic, states

        return await self.retry(topic, indexes, write)

    async def change_isr(
        self,
        name: TopicPartition,
        isr: list[int],
        *,
        leader_epoch: int,
        partition_epoch: int,
        topic_id: bytes,
    ) -> bool:
        """Do `Leadership.change_isr`: the leader writes, whoever is controller.

        A controller of Kafka is notified by the same write: one that was not would tell nobody.
        """
        topic = self._context.updater.image.topics.get(name.topic)
        if topic is None or name.partition >= len(topic.partitions):
            return False
        if not may_be_same_topic(topic.topic_id, topic_id):
            return False
        partition = topic.partitions[name.partition]
        if partition.partition_epoch < 0:
            return False  # the state is gone: no version would be compared
        if (partition.leader_epoch, partition.partition_epoch) != (leader_epoch, partition_epoch):
            return False
        state = PartitionState(partition.leader, leader_epoch, isr, partition.controller_epoch)
        path = paths.partition_state(name.topic, name.partition)
        operations: list[Operation] = [Set(path, encode_state(state), partition_epoch)]
        if not self._controller_watches_states():
            change = encode_isr_change([name])
            operations += announcement_of(self._context.tree, paths.ISR_CHANGE, change)
        try:
            await self._context.tree.multi(operations)
        except (BadVersion, NoNode) as error:
            if error.path == paths.ISR_CHANGES:
                raise
            await self.read_again(topic, [name.partition])
            return False
        new_topic = with_states(topic, {name.partition: state})
        self._context.updater.apply_states(new_topic, [name.partition])
        return True

    def _controller_watches_states(self) -> bool:
        """Return whether the controller sees a state without a notification, which only a
        controller of Kafka reads and deletes.
        """
        image = self._context.updater.image
        controller = image.brokers.get(image.controller_id)
        return controller is not None and controller.is_minibroker

    async def retry(
        self,
        topic: TopicImage,
        indexes: Collection[int],
        write: Callable[[TopicImage], Awaitable[T]],
    ) -> T:
        """Call `write`, and return what it returns.

        Where another process wrote one of these partitions' states, read them again and call it
        with the topic as it is now. Raises CoordinationError when that happens WRITE_ATTEMPTS_MAX
        times.
        """
        for _ in range(WRITE_ATTEMPTS_MAX):
            try:
                return await write(topic)
            except (BadVersion, NodeExists, NoNode):
                topic = await self.read_again(topic, indexes)
        raise CoordinationError(
            f"the partition states of topic {topic.name} changed during each of "
            f"{WRITE_ATTEMPTS_MAX} writes: check which other process writes to the metadata tree"
        )

    async def read_again(self, topic: TopicImage, indexes: Collection[int]) -> TopicImage:
        """Return the topic with these partitions' states as the tree has them; apply it."""
        state_paths = [paths.partition_state(topic.name, index) for index in indexes]
        nodes = await self._context.tree.get_many(state_paths)
        partitions = list(topic.partitions)
        for index, path, value in zip(indexes, state_paths, nodes, strict=True):
            if value is None:
                # Kafka makes the parent before the state, so a crash may leave it without one.
                if self._election.is_controller:
                    with suppress(NoNode, NotEmpty):
                        await self.multi([Delete(paths.partition(topic.name, index))])
                partitions[index] = replace_partition(partitions[index], partition_epoch=-1)
            else:
                partitions[index] = replace_partition(
                    partitions[index],
                    state=decode_state(path, value[0]),
                    partition_epoch=value[1].version,
                )
        fresh = TopicImage(topic.name, topic.topic_id, partitions)
        self._context.updater.apply_states(fresh, indexes)
        return fresh


def state_operations(topic: TopicImage, states: Mapping[int, PartitionState]) -> list[Operation]:
    """Return the writes of these states, each provided that it is the next of the topic's."""
    operations: list[Operation] = []
    for index, state in states.items():
        path = paths.partition_state(topic.name, index)
        version = topic.partitions[index].partition_epoch
        if version < 0:
            operations += [
                Create(paths.partition(topic.name, index)),
                Create(path, encode_state(state)),
            ]
        else:
            operations.append(Set(path, encode_state(state), version))
    return operations


def with_states(topic: TopicImage, states: Mapping[int, PartitionState]) -> TopicImage:
    """Return the topic with these states, each of which is the next version of its node."""
    partitions = list(topic.partitions)
    for index, state in states.items():
        partitions[index] = replace_partition(
            partitions[index], state=state, partition_epoch=partitions[index].partition_epoch + 1
        )
    return TopicImage(topic.name, topic.topic_id, partitions)


def _parts_of(indexes: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(indexes), size):
        yield indexes[start : start + size]
