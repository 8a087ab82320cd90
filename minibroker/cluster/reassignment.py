"""Moving a partition to other brokers: what AlterPartitionReassignments asks of the controller.

A partition under way has the replicas it had and those it shall have; `adding` and `removing` say
which are which, in the topic's node and in the image. When all it shall have are in sync it is
done: they alone remain, and one of them leads.

    target replicas     the client's list; None: back to what it was
    replicas            target, then the old ones that are not in it
    adding, removing    target without the old; the old without target

Source: Kafka KafkaController (processApiPartitionReassignment, onPartitionReassignment),
ReplicaAssignment.reassignTo; KIP-455.
Differs from Kafka: done or not is looked at when the client asks. Replicas join when followers
fetch; while none do here, a move to another broker stays under way until it is taken back, and no
partition gets a second replica (`check_one_replica`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.cluster import paths
from minibroker.cluster.assignment import check_one_replica
from minibroker.cluster.codecs import PartitionState, encode_state, encode_topic
from minibroker.cluster.controller import assignment_of
from minibroker.cluster.image import NO_LEADER
from minibroker.cluster.tree import Set
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from minibroker.cluster.context import ClusterContext
    from minibroker.cluster.controller import Controller
    from minibroker.cluster.image import PartitionImage, TopicImage


class Assignment(NamedTuple):
    """Replicas of one partition, and those of them that come and go."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def target(self) -> list[int]:
        """What remains when it is done."""
        return [one for one in self.replicas if one not in self.removing]

    @property
    def origin(self) -> list[int]:
        """What it was before."""
        return [one for one in self.replicas if one not in self.adding]

    @property
    def is_under_way(self) -> bool:
        return bool(self.adding or self.removing)

    def move_to(self, target: Sequence[int]) -> Assignment:
        """The assignment on its way to `target`."""
        origin = self.origin
        replicas = list(dict.fromkeys((*target, *origin)))
        adding = [one for one in replicas if one not in origin]
        return Assignment(replicas, adding, [one for one in origin if one not in target])


def current_assignment(partition: PartitionImage) -> Assignment:
    """The assignment of a partition of the image."""
    return Assignment(partition.replicas, partition.adding, partition.removing)


def check_target(target: Sequence[int], assignment: Assignment, alive: Collection[int]) -> None:
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


def no_such_partition() -> KafkaError:
    """Return the error of a partition that the image does not have."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def state_of(
    partition: PartitionImage, target: Sequence[int], alive: Collection[int], controller_epoch: int
) -> PartitionState:
    """The state of a partition whose replicas are `target` from now on; all of them in sync."""
    isr = [one for one in partition.isr if one in target]
    leader = partition.leader
    if leader not in target or leader not in alive:
        leader = next((one for one in target if one in alive and one in isr), NO_LEADER)
    return PartitionState(leader, partition.leader_epoch + 1, isr, controller_epoch)


class Reassignments:
    """Writes assignments in the controller's name."""

    def __init__(self, context: ClusterContext, controller: Controller) -> None:
        self._context = context
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
            topic = image.topics.get(name)
            partition = None
            assignment = Assignment([], [], [])
            if topic is not None and 0 <= index < len(topic.partitions):
                partition = topic.partitions[index]
                assignment = current_assignment(partition)
            elif is_kafka_4:
                raise no_such_partition()
            if target is None:
                if not assignment.is_under_way:
                    words = None if is_kafka_4 else "No partition reassignment is in progress."
                    raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, words)
                target = assignment.origin
            else:
                check_target(target, assignment, image.brokers)
            if topic is None or partition is None:
                raise no_such_partition()
            if not may_change_count and len(target) != len(assignment.origin):
                raise KafkaError(
                    ErrorCode.INVALID_REPLICATION_FACTOR,
                    f"The replication factor is changed from {len(assignment.origin)} to"
                    f" {len(target)}",
                )
            moving = assignment.move_to(target)
            if is_kafka_4 and moving == assignment:
                return
            if moving.adding:
                check_one_replica([target])
            await self._write(topic, index, moving)

    async def _write(self, topic: TopicImage, index: int, moving: Assignment) -> None:
        """Write the topic's node and the partition's state as one, then apply both."""
        updater = self._context.updater
        partition = topic.partitions[index]
        alive, epoch = updater.image.brokers, updater.image.controller_epoch
        if set(moving.target) <= set(partition.isr):
            state = state_of(partition, moving.target, alive, epoch)
            moving = Assignment(moving.target, [], [])
        else:
            state = PartitionState(
                partition.leader, partition.leader_epoch + 1, partition.isr, epoch
            )
        whole = assignment_of(topic)
        whole.replicas[index] = moving.replicas
        for places, ids in ((whole.adding, moving.adding), (whole.removing, moving.removing)):
            places.pop(index, None)
            if ids:
                places[index] = ids
        states = [
            (
                PartitionState(one.leader, one.leader_epoch, one.isr, one.controller_epoch),
                one.partition_epoch,
            )
            for one in topic.partitions
        ]
        replicas = [whole.replicas[place] for place in range(len(states))]
        node = encode_topic(whole.topic_id, replicas, whole.adding, whole.removing)
        path = paths.partition_state(topic.name, index)
        version = partition.partition_epoch
        await self._controller.multi(
            [Set(paths.topic(topic.name), node), Set(path, encode_state(state), version)]
        )
        states[index] = (state, version + 1)
        updater.apply_topic(updater.build_topic(topic.name, whole, list(states)))
