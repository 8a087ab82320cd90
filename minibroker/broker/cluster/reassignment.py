"""Moves of partitions to other brokers, as AlterPartitionReassignments asks the controller.

A partition that moves has its old replicas and its new ones; `adding` and `removing` say
which are which, in the topic's node and in the image. When all new ones are in sync the move is
done: they alone remain, and one of them leads.

    target replicas     the client's list; None: back to what it was
    replicas            target, then the old ones that are not in it
    adding, removing    target without the old; the old without target

A new target takes the replicas away that the move before added. Where they alone are in sync, it is
refused: nobody else has all committed records.

Source: Kafka KafkaController (processApiPartitionReassignment, onPartitionReassignment),
ReplicaAssignment.reassignTo; KIP-455. Kafka 4 PartitionReassignmentRevert for what is refused.
Differs from Kafka 3.9, which takes the only replica in sync away, and its log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import PartitionState, encode_topic
from minibroker.broker.cluster.controller import assignment_of
from minibroker.broker.cluster.image import NO_LEADER, PartitionImage, TopicImage
from minibroker.broker.cluster.partition_states import state_operations, with_states
from minibroker.broker.cluster.tree import Set
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.controller import Controller
    from minibroker.broker.cluster.deletions import Deletions
    from minibroker.broker.cluster.partition_states import PartitionStates


class ReplicaAssignment(NamedTuple):
    """Replicas of one partition, and those of them that come and go."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def target(self) -> list[int]:
        """Return the replicas that remain at the end of the move."""
        return [broker_id for broker_id in self.replicas if broker_id not in self.removing]

    @property
    def origin(self) -> list[int]:
        """Return the replicas before the move."""
        return [broker_id for broker_id in self.replicas if broker_id not in self.adding]

    @property
    def is_under_way(self) -> bool:
        return bool(self.adding or self.removing)

    def move_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """Return the assignment on its way to `target`."""
        origin = self.origin
        replicas = list(dict.fromkeys((*target, *origin)))
        adding = [broker_id for broker_id in replicas if broker_id not in origin]
        removing = [broker_id for broker_id in origin if broker_id not in target]
        return ReplicaAssignment(replicas, adding, removing)


def current_assignment(partition: PartitionImage) -> ReplicaAssignment:
    """Return the assignment of a partition of the image."""
    return ReplicaAssignment(partition.replicas, partition.adding, partition.removing)


def check_target(
    target: Sequence[int], assignment: ReplicaAssignment, alive: Collection[int]
) -> None:
    """Raises KafkaError INVALID_REPLICA_ASSIGNMENT for replicas that cannot be had."""
    adding = assignment.move_to(target).adding
    if not target:
        reason = "Empty replica list specified in partition reassignment."
    elif len(set(target)) != len(target):
        reason = f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    elif min(target) < 0:
        reason = f"Invalid broker id in replica list: {list(target)}"
    elif not set(adding) <= set(alive):
        reason = (
            f"Replica assignment has brokers that are not alive. Replica list: {adding},"
            f" live broker list: {sorted(alive)}"
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def check_keeps_in_sync(
    name: TopicPartition, isr: Sequence[int], assignment: ReplicaAssignment
) -> None:
    """Raises KafkaError INVALID_REPLICA_ASSIGNMENT where no replica in sync would remain."""
    if isr and not set(isr) & set(assignment.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to change the replicas of {name.topic}:{name.partition} to"
            f" {assignment.replicas}, because only {isr} are in sync: it would require an unclean"
            " leader election.",
        )


def no_such_partition() -> KafkaError:
    """Return the error of a partition that the image does not have."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def state_of(
    partition: PartitionImage, replicas: Sequence[int], controller_epoch: int
) -> PartitionState:
    """Return the state of a partition that has these replicas from now on.

    Others leave the ISR. The last of the ISR stays in it where none of it remains: then there is no
    leader.

    Kafka writes a state for the new assignment, and one more for each replica that leaves the ISR.
    Here it is one write with the last leader epoch. A leader must not count a replica that is gone:
    it would commit without it, and acks=all would have fewer copies than it says.
    """
    isr = [broker_id for broker_id in partition.isr if broker_id in replicas] or partition.isr[-1:]
    eligible = [replica for replica in replicas if replica in partition.online and replica in isr]
    leader = partition.leader
    if leader not in eligible:
        leader = eligible[0] if eligible else NO_LEADER
    return PartitionState(
        leader,
        partition.leader_epoch + 1 + len(partition.isr) - len(isr),
        isr,
        controller_epoch,
        partition.leader_recovery_state,
    )


class Reassignments:
    """Writes assignments in the controller's name."""

    def __init__(
        self,
        context: ClusterContext,
        states: PartitionStates,
        deletions: Deletions,
        controller: Controller,
    ) -> None:
        # Constant after construction.
        self._context = context
        self._states = states
        self._deletions = deletions
        self._controller = controller

    async def alter(
        self,
        name: str,
        index: int,
        target: Sequence[int] | None,
        *,
        may_change_count: bool = True,
        is_kafka_4: bool = False,
    ) -> None:
        """Move one partition to the brokers of `target`; None takes a move back.

        With `is_kafka_4` as Kafka 4's controller does it: a partition that does not exist is
        refused first, and a move to where it is does nothing. That of 3.9 begins a leader epoch.

        Raises KafkaError: INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
        NO_REASSIGNMENT_IN_PROGRESS, UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER.
        """
        async with self._context.lock:
            image = self._context.updater.image
            topic, assignment = self._find(name, index)
            if topic is None and is_kafka_4:
                raise no_such_partition()
            if target is None:
                if not assignment.is_under_way:
                    words = None if is_kafka_4 else "No partition reassignment is in progress."
                    raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, words)
                target = assignment.origin
            else:
                check_target(target, assignment, image.brokers)
            if topic is None or self._deletions.is_queued(name):
                raise no_such_partition()
            if not may_change_count and len(target) != len(assignment.origin):
                raise KafkaError(
                    ErrorCode.INVALID_REPLICATION_FACTOR,
                    f"The replication factor is changed from {len(assignment.origin)} to"
                    f" {len(target)}",
                )
            new_assignment = assignment.move_to(target)
            if is_kafka_4 and new_assignment == assignment:
                return
            await self._states.retry(
                topic, [index], lambda topic: self._write(topic, index, new_assignment)
            )

    async def begin(self, name: TopicPartition, target: Sequence[int]) -> None:
        """Move a partition as an old tool asks for it: dead brokers are waited for. Call it as the
        controller, under the cluster's lock.

        Raises KafkaError: INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER.
        """
        topic, assignment = self._find(name.topic, name.partition)
        if topic is None or self._deletions.is_queued(name.topic):
            raise no_such_partition()
        check_target(target, assignment, target)
        new_assignment = assignment.move_to(target)
        await self._states.retry(
            topic,
            [name.partition],
            lambda topic: self._write(topic, name.partition, new_assignment),
        )

    def is_under_way(self, name: TopicPartition, target: Sequence[int]) -> bool:
        """Return whether a partition moves to these brokers."""
        _, assignment = self._find(name.topic, name.partition)
        return assignment.is_under_way and assignment.target == list(target)

    def _find(self, name: str, index: int) -> tuple[TopicImage | None, ReplicaAssignment]:
        """Return topic and assignment of a partition; None, and an empty one, where there is no
        such partition. The topic may be one that is being deleted.
        """
        topic = self._context.updater.image.topics.get(name) or self._deletions.topic(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None, ReplicaAssignment([], [], [])
        return topic, current_assignment(topic.partitions[index])

    async def finish(self, name: str) -> None:
        """Finish the moves of a topic whose new replicas are in sync. Call it as the controller,
        under the cluster's lock.

        Raises KafkaError(NOT_CONTROLLER), CoordinationError.
        """
        topic = self._context.updater.image.topics.get(name)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            assignment = current_assignment(partition)
            if assignment.is_under_way and set(assignment.target) <= set(partition.isr):
                await self._finish(name, index)

    async def _finish(self, name: str, index: int) -> None:
        async def write(topic: TopicImage) -> None:
            await self._write(topic, index, current_assignment(topic.partitions[index]))

        await self._states.retry(self._context.updater.image.topics[name], [index], write)

    async def _write(
        self, topic: TopicImage, index: int, new_assignment: ReplicaAssignment
    ) -> None:
        """Write the topic's node and the partition's state as one, then apply both. Where all that
        were in sync are gone, one that is not leads, if the topic allows that.

        Raises KafkaError INVALID_REPLICA_ASSIGNMENT where no replica in sync would remain.
        """
        updater = self._context.updater
        partition = topic.partitions[index]
        if not self._controller.allows_unclean(topic.name):
            check_keeps_in_sync(TopicPartition(topic.name, index), partition.isr, new_assignment)
        epoch = updater.image.controller_epoch
        if set(new_assignment.target) <= set(partition.isr):
            new_assignment = ReplicaAssignment(new_assignment.target, [], [])
        state = state_of(partition, new_assignment.replicas, epoch)
        new_topic = self._with_assignment(topic, index, new_assignment)
        whole = assignment_of(new_topic)
        node = encode_topic(
            whole.topic_id, list(whole.replicas.values()), whole.adding, whole.removing
        )
        await self._states.multi(
            [Set(paths.topic(topic.name), node), *state_operations(topic, {index: state})]
        )
        updater.apply_states(with_states(new_topic, {index: state}), [index])
        if state.leader == NO_LEADER:
            await self._controller.settle([topic.name])

    def _with_assignment(
        self, topic: TopicImage, index: int, new_assignment: ReplicaAssignment
    ) -> TopicImage:
        """Return the topic with other replicas of one partition; the state stays as it is."""
        updater = self._context.updater
        old = topic.partitions[index]
        replicas = updater.share(new_assignment.replicas)
        partitions = list(topic.partitions)
        partitions[index] = PartitionImage(
            leader=old.leader,
            leader_epoch=old.leader_epoch,
            replicas=replicas,
            isr=old.isr,
            adding=updater.share(new_assignment.adding),
            removing=updater.share(new_assignment.removing),
            offline=updater.offline_of(topic.name, index, replicas),
            controller_epoch=old.controller_epoch,
            partition_epoch=old.partition_epoch,
            leader_recovery_state=old.leader_recovery_state,
        )
        return TopicImage(topic.name, topic.topic_id, partitions)
