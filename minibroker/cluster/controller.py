"""What the controller does: gives every partition a leader, and finishes topic deletions.

`next_state` is the pure rule; `Controller` writes its results, guarded by the controller epoch.

Source: Kafka's PartitionStateMachine, ReplicaStateMachine (removeReplicasFromIsr) and
TopicDeletionManager. Differs from Kafka: an unclean election only when it is asked for; the leader
is alone in the ISR, because followers do not fetch yet.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from minibroker.cluster import paths
from minibroker.cluster.codecs import PartitionState, TopicAssignment, encode_state, encode_topic
from minibroker.cluster.image import NO_LEADER, TopicImage
from minibroker.cluster.tree import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    subtree,
)
from minibroker.cluster.updates import replace_partition
from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError, KafkaError, StorageError
from minibroker.ids import ZERO_TOPIC_ID, TopicId, topic_id_to_text
from minibroker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from minibroker.cluster.context import ClusterContext
    from minibroker.cluster.election import Election
    from minibroker.cluster.image import PartitionImage
    from minibroker.cluster.tree import Operation

    DeleteLogs = Callable[[TopicImage], Awaitable[None]]
    """Takes away this broker's logs of a topic, durably. Raises StorageError."""

DELETED_AT_ONCE: Final = 25
"""Nodes of a topic that go in one transaction: 25 times ~20 µs of the loop in the embedded home."""
DELETION_ATTEMPTS_MAX: Final = 10
"""So often a deletion looks again, because somebody else changed the topic's nodes meanwhile."""

STATES_PER_STEP: Final = 4
"""Partitions that get a leader before others may have the loop. Each makes a log on its leader, so
these take half a millisecond. An embedded tree writes on the loop too, so it writes as many."""
STATES_PER_WRITE: Final = 50
"""Partition states in one transaction of ZooKeeper, where a round trip is what takes time."""
_NOT_NEEDED: Final = "Leader election not needed for topic partition."


def new_topic_id() -> TopicId:
    """A random (version 4) UUID, 16 bytes; none whose text starts with `-`, as Kafka's Uuid."""
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        topic_id = TopicId(bytes(raw))
        if not topic_id_to_text(topic_id).startswith("-"):
            return topic_id


def first_state(
    replicas: Sequence[int], alive: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """Return the state of a new partition: the first live replica leads and is alone in sync.

    None when no replica is alive.
    """
    leader = next((broker_id for broker_id in replicas if broker_id in alive), None)
    if leader is None:
        return None
    return PartitionState(leader, 0, [leader], controller_epoch)


def next_state(
    partition: PartitionImage, alive: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """Return the state this partition must get now that `alive` replicas are there; None: as it is.

    The leader is alone in sync. No broker of this kind fetches from a leader, so a replica that
    Kafka left in the ISR falls behind with the first record and must not lead later.
    """
    if partition.partition_epoch < 0:
        return first_state(partition.replicas, alive, controller_epoch)
    epoch = partition.leader_epoch + 1
    leader = partition.leader
    if leader in alive:
        if partition.isr == [leader]:
            return None
        return PartitionState(leader, epoch, [leader], controller_epoch)
    live_isr = [one for one in partition.replicas if one in partition.isr and one in alive]
    if live_isr:
        return PartitionState(live_isr[0], epoch, live_isr[:1], controller_epoch)
    if leader == NO_LEADER:
        return None
    # Nobody in sync is alive: no leader, and the last ISR stays so that one of it may lead again.
    return PartitionState(NO_LEADER, epoch, partition.isr, controller_epoch)


def preferred_state(
    partition: PartitionImage, alive: Collection[int], controller_epoch: int
) -> PartitionState:
    """The state with the first replica as leader. Raises KafkaError: not needed, or not in sync."""
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    if preferred not in alive or preferred not in partition.isr:
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader, broker {preferred}, is not alive or not in sync",
        )
    epoch = partition.leader_epoch + 1
    return PartitionState(preferred, epoch, partition.isr, controller_epoch)


def unclean_state(
    partition: PartitionImage, alive: Collection[int], controller_epoch: int
) -> PartitionState:
    """The state with any live replica as leader, in sync or not: what only others have is lost.

    Raises KafkaError when there is a leader, or no live replica.
    """
    if partition.leader in alive:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    live = [one for one in partition.replicas if one in alive]
    if not live:
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"none of the replicas {partition.replicas} is alive",
        )
    leader = next((one for one in live if one in partition.isr), live[0])
    return PartitionState(leader, partition.leader_epoch + 1, [leader], controller_epoch)


class Controller:
    """Writes in the controller's name. Call it under the cluster's lock, while being controller.

    `delete_logs` is None where there is no storage; `deletes_topics` is `delete.topic.enable`.
    """

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        *,
        delete_logs: DeleteLogs | None = None,
        deletes_topics: bool = True,
    ) -> None:
        self._context = context
        self._election = election
        self._delete_logs = delete_logs or _have_no_logs
        self._deletes_topics = deletes_topics

    async def settle(self, names: Iterable[str] | None = None) -> None:
        """Give the partitions of these topics (None: all) the state they must have."""
        image = self._context.updater.image
        for name in list(image.topics if names is None else names):
            topic = image.topics.get(name)
            if topic is not None:
                await self._settle_topic(topic)

    async def _settle_topic(self, topic: TopicImage) -> None:
        if topic.topic_id == ZERO_TOPIC_ID:
            topic = await self._give_topic_id(topic)
        await self._elect(topic)

    async def settle_new(self, topic: TopicImage) -> None:
        """As `settle`, for a topic (or more partitions of one) that is not in the image yet."""
        if not await self._elect(topic):
            self._context.updater.apply_topic(topic)

    async def _elect(self, topic: TopicImage) -> bool:
        """Write and apply the states that must change; whether there was one."""
        changes = {}
        turn = TimeSlice()
        for index, partition in enumerate(topic.partitions):
            # A replica that is not offline is online: its broker is there, and so is its disk.
            offline = self._context.updater.offline_of(topic.name, index, partition.replicas)
            online = [replica for replica in partition.replicas if replica not in offline]
            state = next_state(partition, online, self._election.epoch)
            if state is not None:
                changes[index] = state
            if turn.is_over:
                await turn.pause()
        if changes:
            await self._write_states(topic, changes)
        return bool(changes)

    async def _write_states(self, topic: TopicImage, changes: dict[int, PartitionState]) -> None:
        """Write the states and apply them to the image, a few at a time.

        The image has the topic with the first of them: it may be new, or have new partitions.
        """
        if any(topic.partitions[index].partition_epoch < 0 for index in changes):
            with suppress(NodeExists):  # partitions are added to a known topic
                await self.multi([Create(paths.partitions(topic.name))])
        updater = self._context.updater
        write_size = STATES_PER_WRITE if self._context.tree.is_shared else STATES_PER_STEP
        turn = TimeSlice()
        indexes = list(changes)
        for written in _parts_of(indexes, write_size):
            await self.multi(
                [
                    operation
                    for index in written
                    for operation in _state_operations(topic, index, changes[index])
                ]
            )
            for step in _parts_of(written, STATES_PER_STEP):
                topic = _with_states(topic, {index: changes[index] for index in step})
                updater.apply_states(topic, step)
                if turn.is_over:
                    await turn.pause()

    async def elect_leader(self, name: str, index: int, *, unclean: bool) -> None:
        """Give one partition its preferred leader, or (unclean) any at all.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED,
        PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE, NOT_CONTROLLER.
        """
        image = self._context.updater.image
        topic = image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        elect = unclean_state if unclean else preferred_state
        state = elect(topic.partitions[index], image.brokers, self._election.epoch)
        await self._write_states(topic, {index: state})

    async def multi(self, operations: list[Operation]) -> list[str | int]:
        """`tree.multi` in the controller's name. Raises KafkaError: NOT_CONTROLLER when deposed."""
        guard = self._election.guard()
        try:
            return (await self._context.tree.multi(guard + operations))[len(guard) :]
        except BadVersion as error:
            if error.path != paths.CONTROLLER_EPOCH:
                raise
            self._election.lose()
            raise KafkaError(ErrorCode.NOT_CONTROLLER) from error

    async def _give_topic_id(self, topic: TopicImage) -> TopicImage:
        """Topics that tools or old brokers made have no id; the controller gives them one."""
        topic_id = new_topic_id()
        assignment = assignment_of(topic)
        data = encode_topic(
            topic_id,
            [assignment.replicas[index] for index in range(len(topic.partitions))],
            assignment.adding,
            assignment.removing,
        )
        await self.multi([Set(paths.topic(topic.name), data)])
        with_id = TopicImage(topic.name, topic_id, topic.partitions)
        self._context.updater.apply_topic(with_id)
        return with_id

    async def finish_deletions(self) -> None:
        """Delete every topic that is marked under /admin/delete_topics.

        Where topics are not to be deleted the marks go, as with Kafka. A topic stays marked while a
        disk does not let go of its logs.
        """
        for name in await self._context.tree.children(paths.ADMIN_DELETE_TOPICS):
            if not self._deletes_topics:
                self._context.log.warning(
                    "topic %s is marked for deletion and stays: delete.topic.enable=false", name
                )
                await self.multi([Delete(paths.delete_topic(name))])
                continue
            try:
                await self.delete_topic(name)
            except StorageError as error:
                self._context.log.error("topic %s is not deleted yet: %s", name, error)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic that is marked: its logs, its nodes, config and mark, in this order.

        A crash in between leaves the mark, and the next start goes on: no log is left without a
        topic. Raises StorageError where a disk does not let go of a log: the mark stays.
        """
        # A power cut must not bring the topic back without its logs: the mark is durable first.
        await self._context.tree.flush()
        topic = self._context.updater.image.topics.get(name)
        if topic is not None:
            await self._delete_logs(topic)
        await self._delete_nodes(name)
        self._context.updater.remove_topic(name)

    async def _delete_nodes(self, name: str) -> None:
        """Delete what the tree has of a topic, children first, the mark last."""
        tree = self._context.tree
        turn = TimeSlice()
        for _ in range(DELETION_ATTEMPTS_MAX):
            found = (await subtree(tree, paths.topic(name)))[::-1]
            for path in (paths.config("topics", name), paths.delete_topic(name)):
                if await tree.exists(path):
                    found.append(path)
            try:
                for start in range(0, len(found), DELETED_AT_ONCE):
                    batch = found[start : start + DELETED_AT_ONCE]
                    await self.multi([Delete(path) for path in batch])
                    if turn.is_over:
                        await turn.pause()
            except (NoNode, NotEmpty):
                continue  # somebody else deletes it too, or wrote a state meanwhile
            return
        raise CoordinationError(f"the nodes of topic {name} change while they are deleted")


def assignment_of(topic: TopicImage) -> TopicAssignment:
    """What the topic's node says, rebuilt from the image."""
    adding = {index: one.adding for index, one in enumerate(topic.partitions) if one.adding}
    removing = {index: one.removing for index, one in enumerate(topic.partitions) if one.removing}
    replicas = {index: one.replicas for index, one in enumerate(topic.partitions)}
    topic_id = None if topic.topic_id == ZERO_TOPIC_ID else topic.topic_id
    return TopicAssignment(topic_id, replicas, adding, removing)


def _parts_of(indexes: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(indexes), size):
        yield indexes[start : start + size]


def _with_states(topic: TopicImage, states: Mapping[int, PartitionState]) -> TopicImage:
    """Return the topic with these states, each of which is the next version of its node."""
    partitions = list(topic.partitions)
    for index, state in states.items():
        partitions[index] = replace_partition(
            partitions[index], state=state, partition_epoch=partitions[index].partition_epoch + 1
        )
    return TopicImage(topic.name, topic.topic_id, partitions)


async def _have_no_logs(_topic: TopicImage) -> None:
    """Take no log away: there is no storage."""


def _state_operations(topic: TopicImage, index: int, state: PartitionState) -> list[Operation]:
    partition = topic.partitions[index]
    path = paths.partition_state(topic.name, index)
    if partition.partition_epoch < 0:
        return [Create(paths.partition(topic.name, index)), Create(path, encode_state(state))]
    return [Set(path, encode_state(state), partition.partition_epoch)]
