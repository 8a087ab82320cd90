"""The controller: gives every partition a leader.

`next_state`, `preferred_state` and `unclean_state` are the pure rules; `partition_states` writes
the states that they return.

Source: Kafka's PartitionStateMachine, Election, ReplicaStateMachine (removeReplicasFromIsr).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    RECOVERING,
    PartitionState,
    TopicAssignment,
    encode_topic,
)
from minibroker.broker.cluster.image import NO_LEADER, TopicImage
from minibroker.broker.cluster.tree import NoNode, Set
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_BROKER_EPOCH, ZERO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
    )

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.partition_states import PartitionStates, Rule

    AllowsUnclean = Callable[[str], bool]
    """Returns the `unclean.leader.election.enable` of a topic."""

_DASH: Final = 62
"""The number of `-` among the digits of base64 for URLs; a digit has six bits."""
_NOT_NEEDED: Final = "Leader election not needed for topic partition."


def new_topic_id() -> TopicId:
    """Return a random UUID (version 4), 16 bytes. As with Kafka's Uuid, its text never starts with
    `-`.
    """
    raw = bytearray(os.urandom(16))
    while raw[0] >> 2 == _DASH:
        raw[0] = os.urandom(1)[0]
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return TopicId(bytes(raw))


def next_state(
    partition: PartitionImage,
    controller_epoch: int,
    *,
    allows_unclean: bool = False,
    stopping_brokers: Collection[int] = (),
    marks_recovery: bool = True,
) -> PartitionState | None:
    """Return the state this partition must get with the replicas that are online; None: as it is.

    A new partition has all of them in sync. Later a replica that goes leaves the ISR, unless it is
    the last one in it: then there is no leader, and the ISR stays so that it may lead again. With
    `allows_unclean` a replica that is not in sync leads instead. `stopping_brokers` are online, but
    are not elected. `marks_recovery`: see `unclean_state`.
    """
    online = partition.online
    eligible = _eligible(partition, stopping_brokers)
    if partition.partition_epoch < 0:
        return PartitionState(eligible[0], 0, eligible, controller_epoch) if eligible else None
    leader, isr = partition.leader, partition.isr
    # The last of the ISR stays in it, so that it may lead again.
    online_isr = [broker_id for broker_id in isr if broker_id in online] or isr[-1:]
    if leader not in online or leader not in online_isr:
        if allows_unclean and eligible:
            return unclean_state(
                partition, controller_epoch, stopping_brokers, marks_recovery=marks_recovery
            )
        leader = next((broker_id for broker_id in eligible if broker_id in isr), NO_LEADER)
    if leader == partition.leader and len(online_isr) == len(isr):
        return None
    return changed_state(partition, leader, online_isr, controller_epoch)


def _eligible(partition: PartitionImage, stopping_brokers: Collection[int]) -> list[int]:
    """Return the replicas that may be elected: online, and their brokers do not stop.

    Source: Kafka's ControllerContext.isReplicaOnline without brokers that shut down.
    """
    return [broker_id for broker_id in partition.online if broker_id not in stopping_brokers]


def shutdown_state(
    partition: PartitionImage,
    broker_id: int,
    controller_epoch: int,
    stopping_brokers: Collection[int],
) -> PartitionState | None:
    """Return the state that a partition gets because a broker of it stops soon; None: as it is.

    `stopping_brokers` has that broker too. It leaves the ISR, and another replica in sync leads.
    Where there is no other the state stays. The only replica of a partition keeps its state.
    """
    if len(partition.replicas) == 1 or partition.partition_epoch < 0:
        return None
    leader, isr = partition.leader, partition.isr
    if leader == broker_id:
        eligible = _eligible(partition, stopping_brokers)
        leader = next((replica for replica in eligible if replica in isr), NO_LEADER)
        if leader == NO_LEADER:
            return None
        isr = [replica for replica in isr if replica not in stopping_brokers]
    elif broker_id in isr and len(isr) > 1:
        isr = [replica for replica in isr if replica != broker_id]
    else:
        return None
    return changed_state(partition, leader, isr, controller_epoch)


def changed_state(
    partition: PartitionImage, leader: int, isr: list[int], controller_epoch: int
) -> PartitionState:
    """Return the state of the next leader epoch. A leader that is recovering still is."""
    recovery = partition.leader_recovery_state
    return PartitionState(leader, partition.leader_epoch + 1, isr, controller_epoch, recovery)


def preferred_state(
    partition: PartitionImage, controller_epoch: int, stopping_brokers: Collection[int] = ()
) -> PartitionState:
    """Return the state with the first replica as leader. Raises KafkaError: not needed, or not in
    sync.
    """
    replica = partition.replicas[0]
    if partition.leader == replica:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    if not may_lead(partition, replica, stopping_brokers):
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader, broker {replica}, is not alive or not in sync",
        )
    return changed_state(partition, replica, partition.isr, controller_epoch)


def may_lead(partition: PartitionImage, broker_id: int, stopping_brokers: Collection[int]) -> bool:
    """Return whether a replica may be elected, and is in sync."""
    return broker_id in _eligible(partition, stopping_brokers) and broker_id in partition.isr


def unclean_state(
    partition: PartitionImage,
    controller_epoch: int,
    stopping_brokers: Collection[int] = (),
    *,
    marks_recovery: bool = True,
) -> PartitionState:
    """Return the state with any online replica as leader, one that is in sync if there is one.

    Otherwise it is the first one, and it is recovering: records that only others have are lost.
    Without `marks_recovery` the state does not say so: older brokers could not read it.
    Raises KafkaError when there is a leader, or no replica is online.
    """
    eligible = _eligible(partition, stopping_brokers)
    if partition.leader in partition.online:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    if not eligible:
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"none of the replicas {partition.replicas} is alive",
        )
    for broker_id in eligible:
        if broker_id in partition.isr:
            isr = [replica for replica in partition.isr if replica in partition.online]
            return changed_state(partition, broker_id, isr, controller_epoch)
    epoch = partition.leader_epoch + 1
    recovery = RECOVERING if marks_recovery else 0
    return PartitionState(eligible[0], epoch, eligible[:1], controller_epoch, recovery)


class Controller:
    """Writes in the controller's name. Call it under the cluster's lock, while being controller.

    `marks_recovery`: states say that a leader was elected uncleanly.
    """

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        states: PartitionStates,
        *,
        allows_unclean: AllowsUnclean | None = None,
        marks_recovery: bool = True,
    ) -> None:
        self._context = context
        self._election = election
        self._states = states
        self.allows_unclean = allows_unclean or _never
        """Constant after construction."""
        self._marks_recovery = marks_recovery
        # Changed under the cluster's lock, and when this broker is elected or deposed.
        self._stopping_epochs: dict[int, int] = {}
        """Broker that shuts down → epoch of the registration that it will end."""
        election.listeners.append(lambda _is_controller: self._stopping_epochs.clear())

    @property
    def stopping_brokers(self) -> set[int]:
        """Return the brokers that shut down; they are still registered."""
        brokers = self._context.updater.image.brokers
        return {
            broker_id
            for broker_id, epoch in self._stopping_epochs.items()
            if broker_id in brokers and brokers[broker_id].epoch == epoch
        }

    async def settle(self, names: Iterable[str] | None = None) -> None:
        """Give the partitions of these topics (None: all) the state they must have."""
        image = self._context.updater.image
        for name in list(image.topics if names is None else names):
            topic = image.topics.get(name)
            if topic is None:
                continue
            try:
                await self._settle_topic(topic)
            except NoNode:
                if await self._context.tree.exists(paths.topic(name)) is not None:
                    raise
                # Another controller deleted it. The image drops it with the next look at the
                # topics, which must not wait for this one.
                self._context.log.info("topic %s is deleted", name)

    async def _settle_topic(self, topic: TopicImage) -> None:
        if topic.topic_id == ZERO_TOPIC_ID:
            topic = await self._give_topic_id(topic)
        await self._elect(topic)

    async def settle_new(self, topic: TopicImage) -> None:
        """Like `settle`, for a topic (or more partitions of one) that is not in the image yet."""
        if not await self._elect(topic):
            await self._context.updater.apply_topic(topic)

    async def _elect(self, topic: TopicImage) -> bool:
        """Write and apply the states that must change; return whether there was one."""
        return await self._states.change(topic, self.rule_of(topic.name))

    def rule_of(self, name: str) -> Rule:
        """Return `next_state` with the values of this topic."""
        allows_unclean = self.allows_unclean(name)
        stopping_brokers = self.stopping_brokers
        return lambda partition: next_state(
            partition,
            self._election.epoch,
            allows_unclean=allows_unclean,
            stopping_brokers=stopping_brokers,
            marks_recovery=self._marks_recovery,
        )

    async def elect_leader(self, name: str, index: int, *, unclean: bool) -> None:
        """Give one partition its preferred leader, or (unclean) any at all.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED,
        PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE, NOT_CONTROLLER.
        """
        image = self._context.updater.image
        topic = image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        stopping_brokers = self.stopping_brokers

        def rule(partition: PartitionImage) -> PartitionState:
            epoch = self._election.epoch
            if unclean:
                return unclean_state(
                    partition, epoch, stopping_brokers, marks_recovery=self._marks_recovery
                )
            return preferred_state(partition, epoch, stopping_brokers)

        await self._states.change(topic, rule, [index])

    async def elect_preferred(self, topic: TopicImage, indexes: Iterable[int]) -> bool:
        """Give these partitions their preferred leader where it may lead; return whether one
        changed.
        """
        stopping_brokers = self.stopping_brokers

        def rule(partition: PartitionImage) -> PartitionState | None:
            replica = partition.replicas[0]
            if partition.leader == replica or not may_lead(partition, replica, stopping_brokers):
                return None
            return preferred_state(partition, self._election.epoch, stopping_brokers)

        return await self._states.change(topic, rule, indexes)

    async def shut_down(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Prepare for the stop of a broker; return the partitions that it still leads.

        Others lead what it led, and it leaves the ISR of what it follows. Until it is registered
        anew it is not elected. Raises KafkaError: STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE,
        NOT_CONTROLLER; UNKNOWN_SERVER_ERROR for an epoch of a broker that is not registered.

        Source: Kafka KafkaController.doControlledShutdown.
        """
        self._election.guard()
        image = self._context.updater.image
        broker = image.brokers.get(broker_id)
        if broker is None:
            if broker_epoch != NO_BROKER_EPOCH:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            detail = f"Broker id {broker_id} does not exist."
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, detail)
        if broker_epoch != NO_BROKER_EPOCH and broker_epoch < broker.epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                "Received controlled shutdown request from an old broker epoch"
                f" {broker_epoch} for broker {broker_id}. Current broker epoch is {broker.epoch}.",
            )
        self._context.log.info("broker %d shuts down", broker_id)
        self._stopping_epochs[broker_id] = broker.epoch
        stopping_brokers = self.stopping_brokers
        turn = TimeSlice()
        remaining_partitions = []
        for topic in list(image.topics.values()):
            await self._states.change(
                topic,
                lambda partition: shutdown_state(
                    partition, broker_id, self._election.epoch, stopping_brokers
                ),
                [n for n, state in enumerate(topic.partitions) if broker_id in state.replicas],
            )
            topic_image = image.topics.get(topic.name)
            remaining_partitions += [
                TopicPartition(topic.name, index)
                for index, partition in enumerate(topic_image.partitions if topic_image else ())
                if partition.leader == broker_id and len(partition.replicas) > 1
            ]
            if turn.is_over:
                await turn.pause()
        return remaining_partitions

    async def move_leader(self, name: str, index: int, broker_id: int) -> None:
        """Give one partition this leader, whichever is preferred.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, ELIGIBLE_LEADERS_NOT_AVAILABLE,
        NOT_CONTROLLER.
        """
        topic = self._context.updater.image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")

        def rule(partition: PartitionImage) -> PartitionState | None:
            if partition.leader == broker_id:
                return None
            if not may_lead(partition, broker_id, self.stopping_brokers):
                raise KafkaError(
                    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                    f"broker {broker_id} cannot lead {name}-{index}: replicas "
                    f"{partition.replicas}, in sync {partition.isr}, offline {partition.offline}",
                )
            return changed_state(partition, broker_id, partition.isr, self._election.epoch)

        await self._states.change(topic, rule, [index])

    async def _give_topic_id(self, topic: TopicImage) -> TopicImage:
        """Give an id to a topic that a tool or an old broker made without one; return the topic
        with it.
        """
        topic_id = new_topic_id()
        assignment = assignment_of(topic)
        data = encode_topic(
            topic_id,
            [assignment.replicas[index] for index in range(len(topic.partitions))],
            assignment.adding,
            assignment.removing,
        )
        await self._states.multi([Set(paths.topic(topic.name), data)])
        with_id = TopicImage(topic.name, topic_id, topic.partitions)
        await self._context.updater.apply_topic(with_id)
        return with_id


def assignment_of(topic: TopicImage) -> TopicAssignment:
    """Return what the topic's node says, rebuilt from the image."""
    partitions = dict(enumerate(topic.partitions))
    replicas = {index: partition.replicas for index, partition in partitions.items()}
    adding = {
        index: partition.adding for index, partition in partitions.items() if partition.adding
    }
    removing = {
        index: partition.removing for index, partition in partitions.items() if partition.removing
    }
    topic_id = None if topic.topic_id == ZERO_TOPIC_ID else topic.topic_id
    return TopicAssignment(topic_id, replicas, adding, removing)


def _never(_topic: str) -> bool:
    """Allow no unclean election: there are no topic configurations."""
    return False
