"""Topics: the checks and the writes behind CreateTopics, DeleteTopics and CreatePartitions.

The checks come in Kafka's order with its codes and texts (AdminZkClient, ZkAdminManager). When this
broker is the controller, a topic and the state of its partitions are written in one transaction;
else only the topic is written and the controller, which watches, does the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from minibroker.cluster import paths
from minibroker.cluster.assignment import assign_replicas, check_one_replica
from minibroker.cluster.codecs import (
    PartitionState,
    TopicAssignment,
    encode_config,
    encode_large_topic,
    encode_state,
)
from minibroker.cluster.controller import (
    STATES_PER_STEP,
    Controller,
    first_state,
    new_topic_id,
)
from minibroker.cluster.creation_limits import (
    check_added_partitions,
    check_new_partitions,
    check_records,
    records_of_topic,
)
from minibroker.cluster.image import TopicImage
from minibroker.cluster.tree import Create, NodeExists, Set, ensure_node
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.slices import collect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.cluster.context import ClusterContext
    from minibroker.cluster.election import Election
    from minibroker.cluster.tree import Operation

NAME_LENGTH_MAX: Final = 249
"""Leaves room for `-<partition>` and a deletion suffix in a 255 byte directory name."""
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION for a name that Kafka refuses (its class Topic)."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not _LEGAL_NAME.fullmatch(name):
        reason = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_assignment(assignment: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Partition index → replicas of a new topic, as a list. Raises INVALID_REPLICA_ASSIGNMENT."""
    reason = None
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        reason = "All partitions should have the same number of replicas"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        reason = f"Duplicate replica assignment found: {_as_scala_map(assignment)}"
    elif sorted(assignment) != list(range(len(assignment))):
        reason = "partitions should be a consecutive 0-based integer sequence"
    elif not assignment[0]:
        reason = "A partition needs at least one replica"
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    return [list(assignment[index]) for index in range(len(assignment))]


def _as_scala_map(assignment: Mapping[int, Sequence[int]]) -> str:
    entries = (
        f"{index} -> ArrayBuffer({', '.join(map(str, replicas))})"
        for index, replicas in assignment.items()
    )
    return f"Map({', '.join(entries)})"


class Topics:
    """Creates, grows and deletes topics."""

    def __init__(self, context: ClusterContext, election: Election, controller: Controller) -> None:
        self._context = context
        self._election = election
        self._controller = controller

    # Creating

    def plan(
        self,
        name: str,
        partition_count: int,
        replication_factor: int,
        assignment: Mapping[int, Sequence[int]] | None,
    ) -> list[list[int]]:
        """All checks of a creation that need no configs; the replicas of each partition.

        Raises KafkaError: TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
        INVALID_TOPIC_EXCEPTION, INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION.
        """
        image = self._context.updater.image
        if name in image.topics:
            raise _exists(name)
        check_new_partitions(len(assignment) if assignment else partition_count)
        if not assignment:
            replicas = assign_replicas(self._racks(), partition_count, replication_factor)
            check_topic_name(name)
            self._check_collision(name)
            check_one_replica(replicas)
            return replicas
        check_topic_name(name)
        self._check_collision(name)
        replicas = check_assignment(assignment)
        unknown = {one for ids in replicas for one in ids} - image.brokers.keys()
        if unknown:
            listed = ", ".join(map(str, sorted(unknown)))
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unknown broker(s) in replica assignment: {listed}.",
            )
        check_one_replica(replicas)
        return replicas

    def _racks(self) -> dict[int, str | None]:
        return {one.id: one.rack for one in self._context.updater.image.brokers.values()}

    def _check_collision(self, name: str) -> None:
        """Names that differ in `.` and `_` only would share their metrics' names."""
        colliding = self._context.updater.colliding_with(name)
        if colliding:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
            )

    async def create(
        self,
        name: str,
        replicas: list[list[int]],
        configs: Mapping[str, str],
        timeout_s: float,
    ) -> TopicImage:
        """Write a planned topic.

        Raises KafkaError: TOPIC_ALREADY_EXISTS, REQUEST_TIMED_OUT, POLICY_VIOLATION.
        """
        check_records(records_of_topic(len(replicas), configs))
        tree = self._context.tree
        async with self._context.lock:
            if name in self._context.updater.image.topics:
                raise _exists(name)
            if tree.is_shared and await tree.exists(paths.delete_topic(name)):
                raise KafkaError(
                    ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
                )
            topic = await self._write_new_topic(name, replicas, configs)
            self._context.updater.apply_topic(topic)
            if self._election.is_controller:
                await self._controller.settle([name])
        if not self._election.is_controller:
            await self._wait(name, timeout_s, gone=False)
        return self._context.updater.image.topics.get(name, topic)

    async def _write_new_topic(
        self, name: str, replicas: list[list[int]], configs: Mapping[str, str]
    ) -> TopicImage:
        """Write the topic and its config; return its image.

        The controller writes the states of a small topic's partitions in the same transaction. Of a
        larger topic no partition has one yet. Raises KafkaError TOPIC_ALREADY_EXISTS.
        """
        updater = self._context.updater
        topic_id = new_topic_id()
        states: list[PartitionState | None] = [None] * len(replicas)
        if self._election.is_controller and len(replicas) <= STATES_PER_STEP:
            alive, epoch = updater.image.brokers, self._election.epoch
            states = [first_state(ids, alive, epoch) for ids in replicas]
        operations: list[Operation] = [
            Create(paths.config("topics", name), encode_config(configs)),
            Create(paths.topic(name), await encode_large_topic(topic_id, replicas)),
            *_state_nodes(name, states),
        ]
        await self._write_creation(name, operations)
        if configs:
            updater.apply_config("topics", name, dict(configs))
        if any(states):
            by_index = dict(enumerate(map(updater.share, replicas)))
            assignment = TopicAssignment(topic_id, by_index, {}, {})
            return updater.build_topic(
                name, assignment, [(state, 0) if state else None for state in states]
            )
        return TopicImage(name, topic_id, await collect(updater.new_partitions(replicas)))

    async def _write_creation(self, name: str, operations: list[Operation]) -> None:
        try:
            await self._multi(operations)
        except NodeExists as error:
            config = operations[0]
            if error.path != config.path or not isinstance(config, Create):
                raise _exists(name) from error
            # A config without its topic: a creation that broke off, or a tool's early setting.
            operations[0] = Set(config.path, config.data)
            await self._write_creation(name, operations)

    async def _multi(self, operations: list[Operation]) -> None:
        """Write in the controller's name if this broker is the controller."""
        if self._election.is_controller:
            await self._controller.multi(operations)
        else:
            await self._context.tree.multi(operations)

    # Growing

    def plan_partitions(
        self, name: str, total: int, assignment: Sequence[Sequence[int]] | None
    ) -> list[list[int]]:
        """All checks of CreatePartitions; the replicas of each new partition.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, POLICY_VIOLATION,
        INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, REASSIGNMENT_IN_PROGRESS, and those
        of `assign_replicas`.
        """
        topic = self._context.updater.image.topics.get(name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        old_count = len(topic.partitions)
        check_added_partitions(total - old_count)
        if any(one.adding or one.removing for one in topic.partitions):
            raise KafkaError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        if total < old_count:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"Topic currently has {old_count} partitions, which is higher than the "
                f"requested {total}.",
            )
        if total == old_count:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"Topic already has {old_count} partitions."
            )
        racks = self._racks()
        first = topic.partitions[0].replicas
        brokers = sorted(racks)
        if assignment is not None:
            new = _check_new_partitions(
                assignment, brokers, old_count, total - old_count, len(first)
            )
        else:
            start = next((place for place, one in enumerate(brokers) if one >= first[0]), 0)
            new = assign_replicas(
                racks, total - old_count, len(first), start_index=start, first_partition=old_count
            )
        check_one_replica(new)
        return new

    async def add_partitions(
        self,
        name: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None,
        timeout_s: float,
    ) -> TopicImage:
        """Write planned partitions. Raises as `plan_partitions`, and REQUEST_TIMED_OUT."""
        async with self._context.lock:
            new = self.plan_partitions(name, total, assignment)
            topic = self._context.updater.image.topics[name]
            replicas = [*(partition.replicas for partition in topic.partitions), *new]
            data = await encode_large_topic(topic.topic_id, replicas)
            await self._multi([Set(paths.topic(name), data)])
            new_partitions = await collect(self._context.updater.new_partitions(new))
            added = TopicImage(name, topic.topic_id, topic.partitions + new_partitions)
            if self._election.is_controller:
                # Leaders first: listeners hear of a few new partitions once, complete.
                await self._controller.settle_new(added)
            else:
                self._context.updater.apply_topic(added)
        if not self._election.is_controller:
            await self._wait(name, timeout_s, gone=False)
        return self._context.updater.image.topics.get(name, added)

    # Deleting

    async def delete(self, name: str, timeout_s: float) -> None:
        """Delete a topic. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, REQUEST_TIMED_OUT;
        StorageError as `Controller.delete_topic`.
        """
        async with self._context.lock:
            if name not in self._context.updater.image.topics:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"Topic `{name}` to delete does not exist",
                )
            await ensure_node(self._context.tree, paths.delete_topic(name))
            if self._election.is_controller:
                await self._controller.delete_topic(name)
                return
        await self._wait(name, timeout_s, gone=True)

    async def _wait(self, name: str, timeout_s: float, *, gone: bool) -> None:
        """Until the controller, another broker, has done its part."""

        def holds(topic: TopicImage | None) -> bool:
            if gone or topic is None:
                return gone and topic is None
            return all(one.partition_epoch >= 0 for one in topic.partitions)

        try:
            await self._context.updater.wait_for_topic(name, holds, timeout_s)
        except TimeoutError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from error


def _exists(name: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _state_nodes(name: str, states: list[PartitionState | None]) -> list[Operation]:
    """The nodes of all partitions that have a state, and their parent."""
    if not any(states):
        return []
    operations: list[Operation] = [Create(paths.partitions(name))]
    for index, state in enumerate(states):
        if state is not None:
            operations.append(Create(paths.partition(name, index)))
            operations.append(Create(paths.partition_state(name, index), encode_state(state)))
    return operations


def _check_new_partitions(
    assignment: Sequence[Sequence[int]],
    brokers: list[int],
    old_count: int,
    new_count: int,
    replication_factor: int,
) -> list[list[int]]:
    """The checks on replicas given by the client for partitions to be added."""
    unknown = {one for replicas in assignment for one in replicas if one not in brokers}
    reason = None
    if unknown:
        listed = ", ".join(map(str, sorted(unknown)))
        reason = f"Unknown broker(s) in replica assignment: {listed}."
    elif len(assignment) != new_count:
        reason = (
            f"Increasing the number of partitions by {new_count} but {len(assignment)} "
            "assignments provided."
        )
    for index, replicas in enumerate(assignment, old_count):
        if reason is not None:
            break
        if not replicas:
            reason = f"Cannot have replication factor of 0 for partition id {index}."
        elif len(set(replicas)) != len(replicas):
            listed = ", ".join(map(str, replicas))
            reason = (
                f"Duplicate brokers not allowed in replica assignment: {listed} "
                f"for partition id {index}."
            )
    odd = [
        (index, len(replicas))
        for index, replicas in enumerate(assignment, old_count)
        if len(replicas) != replication_factor
    ]
    if reason is None and odd:
        reason = (
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{replication_factor} while partitions [{', '.join(str(one) for one, _ in odd)}] have "
            f"replication factors [{', '.join(str(count) for _, count in odd)}], respectively."
        )
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    return [list(replicas) for replicas in assignment]
