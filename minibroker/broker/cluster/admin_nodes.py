"""Nodes by which others ask the controller for something: old tools, and brokers with a bad disk.

    /admin/preferred_replica_election     kafka-preferred-replica-election, before Kafka 3.0
    /admin/reassign_partitions            kafka-reassign-partitions --zookeeper, before Kafka 3.0
    /log_dir_event_notification/…         a broker whose log directory failed

The controller deletes a node when it has done what the node says. Of a reassignment it takes out
each partition whose move is over.

Source: Kafka KafkaController (processReplicaLeaderElection, processZkPartitionReassignment,
maybeRemoveFromZkReassignment, processLogDirEventNotification).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    decode_log_dir_event,
    decode_preferred_election,
    decode_reassignment,
    encode_reassignment,
)
from minibroker.broker.cluster.tree import Delete, NoNode, Set
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.controller import Controller
    from minibroker.broker.cluster.deletions import Deletions
    from minibroker.broker.cluster.partition_states import PartitionStates
    from minibroker.broker.cluster.reassignment import Reassignments
    from minibroker.kafka.ids import TopicPartition


class AdminNodes:
    """Acts in the controller's name. Call it under the cluster's lock, while being controller.

    All methods raise KafkaError(NOT_CONTROLLER), CoordinationError.
    """

    def __init__(
        self,
        context: ClusterContext,
        controller: Controller,
        states: PartitionStates,
        *,
        reassignments: Callable[[], Reassignments],
        deletions: Deletions,
    ) -> None:
        # Constant after construction.
        self._context = context
        self._controller = controller
        self._states = states
        self._reassignments = reassignments
        self._deletions = deletions
        self.ask_replicas: Callable[[int], None] = _ask_nobody
        """Has a broker say which of its replicas are in failed log directories; set before the
        start (`replication.outboxes`)."""
        # Changed under the cluster's lock, and by an election.
        self._reassignment_czxid: int | None = None
        """The czxid of the reassignment whose moves were begun."""
        self.has_moves = False
        """True while the reassignment's node has moves that are not over."""

    def begin_term(self) -> None:
        """Forget what an earlier controller, or this one before, did: everything is done again."""
        self._reassignment_czxid = None

    async def elect_preferred(self) -> None:
        """Give the listed partitions their preferred leader, where it may lead."""
        path = paths.PREFERRED_ELECTION
        try:
            data, _ = await self._context.tree.get(path)
        except NoNode:
            return
        by_topic: dict[str, list[int]] = {}
        try:
            for name in decode_preferred_election(path, data):
                by_topic.setdefault(name.topic, []).append(name.partition)
        except CoordinationError as error:
            self._context.log.warning("%s", error)
        for topic_name, indexes in by_topic.items():
            topic = self._context.updater.image.topics.get(topic_name)
            if topic is None or self._deletions.is_queued(topic_name):
                self._context.log.info("no leader is elected for topic %s: it is gone", topic_name)
                continue
            existing_indexes = [index for index in indexes if 0 <= index < len(topic.partitions)]
            await self._controller.elect_preferred(topic, existing_indexes)
        await self._delete(path)

    async def reassign(self) -> None:
        """Begin the listed moves, those that were not begun; take out those that are over."""
        path = paths.REASSIGN_PARTITIONS
        try:
            data, stat = await self._context.tree.get(path)
        except NoNode:
            self.has_moves = False
            return
        try:
            targets = decode_reassignment(path, data)
        except CoordinationError as error:  # as Kafka: the node stays
            if self._reassignment_czxid != stat.czxid:
                self._context.log.warning("%s", error)
            self._reassignment_czxid = stat.czxid
            return
        if self._reassignment_czxid != stat.czxid:
            for name, target in targets.items():
                await self._begin_move(name, target)
            self._reassignment_czxid = stat.czxid
        open_targets = {
            name: target
            for name, target in targets.items()
            if self._reassignments().is_under_way(name, target)
        }
        self.has_moves = bool(open_targets)
        if not open_targets:
            await self._delete(path)
        elif open_targets != targets:
            with suppress(NoNode):
                await self._states.multi([Set(path, encode_reassignment(open_targets))])

    async def _begin_move(self, name: TopicPartition, target: list[int]) -> None:
        try:
            await self._reassignments().begin(name, target)
        except KafkaError as error:
            if error.code == ErrorCode.NOT_CONTROLLER:
                raise
            self._context.log.warning("%s-%d is not moved: %s", *name, error.detail)

    async def hear_log_dir_events(self) -> None:
        """Ask the brokers that tell of a failed log directory for their replicas."""
        tree = self._context.tree
        nodes = [
            f"{paths.LOG_DIR_EVENTS}/{name}" for name in await tree.children(paths.LOG_DIR_EVENTS)
        ]
        brokers = set()
        for path, value in zip(nodes, await tree.get_many(nodes), strict=True):
            try:
                if value is not None:
                    brokers.add(decode_log_dir_event(path, value[0]))
            except CoordinationError as error:
                self._context.log.warning("%s", error)
        for broker_id in sorted(brokers - {self._context.broker_id}):
            self._context.log.info("a log directory of broker %d failed", broker_id)
            self.ask_replicas(broker_id)
        for path in nodes:
            await self._delete(path)

    async def _delete(self, path: str) -> None:
        with suppress(NoNode):
            await self._states.multi([Delete(path)])


def _ask_nobody(_broker_id: int) -> None:
    """Do nothing: there are no other brokers."""
