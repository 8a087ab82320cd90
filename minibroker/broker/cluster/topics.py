"""Topics: the checks and the writes behind CreateTopics, DeleteTopics and CreatePartitions.

The checks come in Kafka's order with its codes and texts (AdminZkClient, ZkAdminManager). When this
broker is the controller, a topic and the state of its partitions are written in one transaction;
else only the topic is written. The controller watches the tree and does the rest.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.assignment import assign_replicas
from minibroker.broker.cluster.codecs import encode_config, encode_large_topic, encode_topic
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.creation_limits import (
    check_added_partitions,
    check_new_partitions,
    check_records,
    records_of_topic,
)
from minibroker.broker.cluster.image import NO_LEADER, TopicImage
from minibroker.broker.cluster.partition_states import state_operations, with_states
from minibroker.broker.cluster.tree import Create, NodeExists, Set
from minibroker.broker.cluster.updates import STATES_PER_STEP
from minibroker.broker.slices import collect
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, MinibrokerError
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from minibroker.broker.cluster.codecs import PartitionState
    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.controller import Controller
    from minibroker.broker.cluster.deletions import Deletions
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.internal_topics import NewTopic
    from minibroker.broker.cluster.partition_states import PartitionStates
    from minibroker.broker.cluster.tree import Operation

    Write = Callable[[list[Operation]], Awaitable[list[str | int]]]

NAME_LENGTH_MAX: Final = 249
"""Leaves room for `-<partition>` and a deletion suffix in a 255 byte directory name."""
LEADERS_S: Final = 30.0
"""Longest wait for the leaders of new partitions, in seconds, where another broker gives them."""
_LEGAL_NAME: Final = r"[a-zA-Z0-9._-]+"


def check_topic_name(name: str) -> None:
    """Raise KafkaError INVALID_TOPIC_EXCEPTION for a name that Kafka refuses (its class Topic)."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not re.fullmatch(_LEGAL_NAME, name):
        reason = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_assignment(assignment: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the replicas of each partition of a new topic, as a list. Raises
    INVALID_REPLICA_ASSIGNMENT.
    """
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

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        controller: Controller,
        deletions: Deletions,
        states: PartitionStates,
    ) -> None:
        self._context = context
        self._election = election
        self._controller = controller
        self._deletions = deletions
        self._states = states

    # Creating

    def plan(
        self,
        name: str,
        partition_count: int,
        replication_factor: int,
        assignment: Mapping[int, Sequence[int]] | None,
    ) -> list[list[int]]:
        """Do all checks of a creation that need no configs; return the replicas of each partition.

        An assignment may name brokers that are not there, as with Kafka 3.9. A broker that stands
        alone refuses them, as Kafka 4 does: no other one can come.

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
            return replicas
        check_topic_name(name)
        self._check_collision(name)
        replicas = check_assignment(assignment)
        named_ids = {broker_id for broker_ids in replicas for broker_id in broker_ids}
        unknown = named_ids - image.brokers.keys()
        if self._context.tree.is_shared:  # a broker that is not there may come
            unknown = {broker_id for broker_id in unknown if broker_id < 0}
        if unknown:
            unknown_text = ", ".join(map(str, sorted(unknown)))
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unknown broker(s) in replica assignment: {unknown_text}.",
            )
        return replicas

    def _racks(self) -> dict[int, str | None]:
        brokers = self._context.updater.image.brokers
        return {broker_id: broker.rack for broker_id, broker in brokers.items()}

    def _check_collision(self, name: str) -> None:
        """Refuse a name that differs from another topic's in `.` and `_` only: their metrics would
        share a name.
        """
        other_name = self._context.updater.colliding_with(name)
        if other_name:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topics: {', '.join(other_name)}",
            )

    async def create(
        self,
        name: str,
        replicas: list[list[int]],
        configs: Mapping[str, str],
        timeout_s: float | None,
    ) -> TopicImage:
        """Write a planned topic, and wait for its leaders; None: do not wait.

        Raises KafkaError: TOPIC_ALREADY_EXISTS, REQUEST_TIMED_OUT, POLICY_VIOLATION.
        """
        async with self._context.lock:
            topic = await self._create(name, replicas, configs)
            if self._election.is_controller and not _has_states(topic):
                await self._controller.settle([name])
        if timeout_s is not None:
            await self.wait_for_leaders(name, timeout_s)
        return self._context.updater.image.topics.get(name, topic)

    async def create_many(self, new_topics: Mapping[str, NewTopic]) -> dict[str, MinibrokerError]:
        """Write these topics, all at once, without waiting for their leaders.

        No two names may collide. Returns why a topic is not created, for those that are not.
        """

        async def create(name: str, new: NewTopic) -> None:
            replicas = self.plan(name, new.partition_count, new.replication_factor, None)
            await self._create(name, replicas, new.configs)

        errors: dict[str, MinibrokerError] = {}
        async with self._context.lock:
            outcomes = await asyncio.gather(
                *(create(name, new) for name, new in new_topics.items()), return_exceptions=True
            )
            for name, outcome in zip(new_topics, outcomes, strict=True):
                if isinstance(outcome, MinibrokerError):
                    errors[name] = outcome
                elif outcome is not None:
                    raise outcome
            if self._election.is_controller:
                await self._controller.settle(name for name in new_topics if name not in errors)
        return errors

    async def _create(
        self, name: str, replicas: list[list[int]], configs: Mapping[str, str]
    ) -> TopicImage:
        """Write a topic and apply it. Call it under the cluster's lock.

        Raises KafkaError: TOPIC_ALREADY_EXISTS, REQUEST_TIMED_OUT, POLICY_VIOLATION.
        """
        check_records(records_of_topic(len(replicas), configs))
        tree = self._context.tree
        if name in self._context.updater.image.topics:
            raise _exists(name)
        self._check_collision(name)  # another request may have been faster
        if tree.is_shared and await tree.exists(paths.delete_topic(name)):
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
            )
        topic = await self._write_new_topic(name, replicas, configs)
        await self._context.updater.apply_topic(topic)
        return topic

    async def _write_new_topic(
        self, name: str, replicas: list[list[int]], configs: Mapping[str, str]
    ) -> TopicImage:
        """Write the topic and its config; return its image.

        The controller writes the states of a small topic's partitions in the same transaction. Of a
        larger topic no partition has one yet. Raises KafkaError TOPIC_ALREADY_EXISTS.
        """
        updater = self._context.updater
        new_partitions = updater.new_partitions(replicas)
        write = self._writer()
        topic_id = new_topic_id()
        if len(replicas) <= STATES_PER_STEP:
            topic = TopicImage(name, topic_id, list(new_partitions))
            data = encode_topic(topic_id, replicas)
        else:
            topic = TopicImage(name, topic_id, await collect(new_partitions))
            data = await encode_large_topic(topic_id, replicas)
        states = self._first_states(topic)
        operations: list[Operation] = [
            Create(paths.config("topics", name), encode_config(configs)),
            Create(paths.topic(name), data),
        ]
        if states:
            operations += [Create(paths.partitions(name)), *state_operations(topic, states)]
        await self._write_creation(name, operations, write)
        updater.apply_config("topics", name, dict(configs))  # none: a left-over config goes
        return with_states(topic, states) if states else topic

    def _first_states(self, topic: TopicImage) -> dict[int, PartitionState]:
        """Return the states that the controller writes together with a small topic."""
        if not self._election.is_controller or len(topic.partitions) > STATES_PER_STEP:
            return {}
        rule = self._controller.rule_of(topic.name)
        states = [rule(partition) for partition in topic.partitions]
        return {index: state for index, state in enumerate(states) if state is not None}

    async def _write_creation(self, name: str, operations: list[Operation], write: Write) -> None:
        try:
            await write(operations)
        except NodeExists as error:
            config = operations[0]
            if error.path != config.path or not isinstance(config, Create):
                raise _exists(name) from error
            # A config without its topic: a creation that broke off, or a tool's early setting.
            operations[0] = Set(config.path, config.data)
            await self._write_creation(name, operations, write)

    def _writer(self) -> Write:
        """Return the function that writes a transaction, in the controller's name if this is it
        now.

        If the broker is deposed before the write, that raises KafkaError NOT_CONTROLLER.
        """
        if self._election.is_controller:
            return self._states.multi
        return self._context.tree.multi

    # Growing

    def plan_partitions(
        self, name: str, total: int, assignment: Sequence[Sequence[int]] | None
    ) -> list[list[int]]:
        """Do all checks of CreatePartitions; return the replicas of each new partition.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
        POLICY_VIOLATION, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
        REASSIGNMENT_IN_PROGRESS, and those of `assign_replicas`.
        """
        if self._deletions.is_queued(name):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        topic = self._context.updater.image.topics.get(name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        old_count = len(topic.partitions)
        check_added_partitions(total - old_count)
        if any(partition.adding or partition.removing for partition in topic.partitions):
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
            start = next((place for place, broker in enumerate(brokers) if broker >= first[0]), 0)
            new = assign_replicas(
                racks, total - old_count, len(first), start_index=start, first_partition=old_count
            )
        return new

    async def add_partitions(
        self,
        name: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None = None,
    ) -> TopicImage:
        """Grow a topic to `total` partitions; `assignment` has one entry per new partition.

        Raises KafkaError: those of `plan_partitions`, REQUEST_TIMED_OUT, and NOT_CONTROLLER where
        this broker is deposed while it waits.
        """
        write = self._writer()
        async with self._context.lock:
            new = self.plan_partitions(name, total, assignment)
            topic = self._context.updater.image.topics[name]
            replicas = [*(partition.replicas for partition in topic.partitions), *new]
            data = await encode_large_topic(topic.topic_id, replicas)
            await write([Set(paths.topic(name), data)])
            new_partitions = await collect(self._context.updater.new_partitions(new))
            new_topic = TopicImage(name, topic.topic_id, topic.partitions + new_partitions)
            if self._election.is_controller:
                # Leaders first: listeners hear of a few new partitions once, complete.
                await self._controller.settle_new(new_topic)
            else:
                await self._context.updater.apply_topic(new_topic)
        if not self._election.is_controller:
            await self.wait_for_leaders(name, LEADERS_S)
        return self._context.updater.image.topics.get(name, new_topic)

    # Deleting

    async def delete(self, name: str, timeout_s: float, topic_id: bytes = ZERO_TOPIC_ID) -> None:
        """Delete a topic. Return when it is gone, or goes on only when a broker comes back.

        `topic_id`: of the topic that is meant, zero for any. Another one may have its name by now.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, REQUEST_TIMED_OUT, and NOT_CONTROLLER where
        this broker is deposed while it waits; StorageError, CoordinationError as `Deletion.wait`.
        """
        deletion = None
        write = self._writer()
        async with self._context.lock:
            topic = self._context.updater.image.topics.get(name)
            if topic is None or topic_id not in (ZERO_TOPIC_ID, topic.topic_id):
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"Topic `{name}` to delete does not exist",
                )
            with suppress(NodeExists):
                await write([Create(paths.delete_topic(name))])
            if self._election.is_controller:
                deletion = await self._deletions.begin(name)
        if deletion is not None:
            await deletion.wait(timeout_s)
        else:
            await self._wait(name, lambda topic: topic is None, timeout_s)

    async def wait_for_leaders(self, name: str, timeout_s: float) -> None:
        """Wait until each partition of a topic has a leader. Raises KafkaError REQUEST_TIMED_OUT.

        Source: Kafka DelayedCreatePartitions.
        """

        await self._wait(name, _has_leaders, timeout_s)

    def have_leaders(self, name: str) -> bool:
        """Return whether each partition of a topic has a leader."""
        return _has_leaders(self._context.updater.image.topics.get(name))

    async def _wait(
        self, name: str, holds: Callable[[TopicImage | None], bool], timeout_s: float
    ) -> None:
        """Wait until the controller, or another broker, has done its part."""
        try:
            await self._context.updater.wait_for_topic(name, holds, timeout_s)
        except TimeoutError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from error


def _has_leaders(topic: TopicImage | None) -> bool:
    return topic is not None and all(
        partition.leader != NO_LEADER for partition in topic.partitions
    )


def _has_states(topic: TopicImage) -> bool:
    """Return whether the state of each partition is in the tree."""
    return all(partition.partition_epoch >= 0 for partition in topic.partitions)


def _exists(name: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _check_new_partitions(
    assignment: Sequence[Sequence[int]],
    brokers: list[int],
    old_count: int,
    new_count: int,
    replication_factor: int,
) -> list[list[int]]:
    """Check the replicas that the client gives for partitions to be added; return them."""
    unknown = {replica for replicas in assignment for replica in replicas if replica not in brokers}
    reason = None
    if unknown:
        unknown_text = ", ".join(map(str, sorted(unknown)))
        reason = f"Unknown broker(s) in replica assignment: {unknown_text}."
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
            unknown_text = ", ".join(map(str, replicas))
            reason = (
                f"Duplicate brokers not allowed in replica assignment: {unknown_text} "
                f"for partition id {index}."
            )
    odd = [
        (index, len(replicas))
        for index, replicas in enumerate(assignment, old_count)
        if len(replicas) != replication_factor
    ]
    if reason is None and odd:
        indexes = ", ".join(str(index) for index, _ in odd)
        counts = ", ".join(str(count) for _, count in odd)
        reason = (
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{replication_factor} while partitions [{indexes}] have replication factors "
            f"[{counts}], respectively."
        )
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    return [list(replicas) for replicas in assignment]
