"""The requests of a controller: fenced by epochs, then applied to the image.

The controller tells the other brokers of every decision (LeaderAndIsr, UpdateMetadata,
StopReplica), after it wrote the decision to the tree. A broker reads the tree itself when it
starts, and for a topic that it does not know. Whichever comes first, the image takes a state once,
and never an older one (`updates`).

    handlers/leader_and_isr, update_metadata, stop_replica ─► requests ─► updates ─► image ─► roles

A request about a topic that the image does not know makes this broker read the topic from the tree,
its configuration too. The server behind this broker's session may lag behind the controller's, so
it catches up first. A topic that the tree does not have even then is kept here, and the topic is
read again until it is there, or until its controller says something else. The registered brokers
come from the tree alone: an UpdateMetadata request has no version of them, so it only says that it
is time to look.

Source: Kafka ReplicaManager (controllerEpoch, maybeUpdateMetadataCache),
ZkMetadataCache.updateMetadata, ZkBrokerEpochManager.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import PartitionState, decode_large_topic
from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.cluster.sent_state import SentState
from minibroker.broker.cluster.updates import STATES_PER_STEP
from minibroker.broker.evidence import EvidenceKind, deletion_request
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, may_be_same_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Set

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.follow import TreeFollower
    from minibroker.broker.cluster.registration import Registration
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.kafka.ids import TopicPartition

LEADER_DURING_DELETE: Final = -2
"""The leader of a partition whose topic is being deleted."""
UNKNOWN_BROKER_EPOCH: Final = -1
PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 10.0
"""Pauses between two looks for a topic that a controller told of: the first, and the longest."""


class SentTopic(NamedTuple):
    """The states of one topic's partitions in a request."""

    name: str
    topic_id: TopicId
    """Zero where the controller uses no ids."""
    states: dict[int, SentState]
    deleted_indexes: Set[int] = frozenset()
    """Partitions that are being deleted (LEADER_DURING_DELETE); they have no state."""


class _ExpectedTopic(NamedTuple):
    """A topic that a controller told of before the tree has it."""

    topic: SentTopic
    pause_s: float
    """Time until it is looked for again."""


class ControllerRequests:
    """Owned by the loop; every change is made under the cluster's lock."""

    def __init__(
        self, context: ClusterContext, follower: TreeFollower, registration: Registration
    ) -> None:
        # Constant after construction.
        self._context = context
        self._follower = follower
        self._registration = registration
        # Changed with every request.
        self.epoch = 0
        """The highest controller epoch that a request had; 0 before the first."""
        self.updated_at_ms: int | None = None
        """Wall clock of the last UpdateMetadata request that was taken; None before the first."""
        self._deleted_indexes: dict[str, tuple[TopicId, Set[int]]] = {}
        """Topic → its id, and the partitions that are being deleted; not all of them yet."""
        self._expected_topics: dict[str, _ExpectedTopic] = {}
        """By name: topics that the tree does not have yet, or not with all partitions."""
        follower.when_read = self._apply_expected

    def metadata_age_ms(self) -> int | None:
        """Return the time since the last UpdateMetadata request; None before the first."""
        if self.updated_at_ms is None:
            return None
        return max(0, self._context.clock.now_ms() - self.updated_at_ms)

    def check_broker_epoch(self, broker_epoch: int, *, is_kraft: bool) -> None:
        """Refuse a request that is meant for an earlier registration of this broker.

        A newer epoch than this broker's is fine: the controller may know of the registration
        first. Raises KafkaError: STALE_BROKER_EPOCH; UNKNOWN_SERVER_ERROR for a KRaft controller's
        request with an epoch, as Kafka where no migration goes on.
        """
        if broker_epoch == UNKNOWN_BROKER_EPOCH:
            return
        if is_kraft:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "no migration to KRaft goes on at this broker"
            )
        ours = self._registration.info.epoch
        if broker_epoch < ours:
            self._context.log.info(
                "a request for broker epoch %d is refused: this broker has epoch %d",
                broker_epoch,
                ours,
            )
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)

    def check_controller_epoch(self, controller_id: int, controller_epoch: int) -> None:
        """Refuse a request of a controller that was deposed, and remember the epoch of another one.

        The tree tells of a new controller, too: a minibroker sends no requests to minibrokers.
        Raises KafkaError STALE_CONTROLLER_EPOCH.
        """
        newest = max(self.epoch, self._context.updater.image.controller_epoch)
        if controller_epoch < newest:
            self._context.log.warning(
                "a request of controller %d with epoch %d is refused: there was one with epoch %d",
                controller_id,
                controller_epoch,
                newest,
            )
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if controller_epoch > self.epoch:
            self._expected_topics.clear()  # another controller tells everything anew
        self.epoch = controller_epoch

    async def take_states(self, topics: Collection[SentTopic]) -> None:
        """Apply a LeaderAndIsr request's states. Raises CoordinationError."""
        async with self._context.lock:
            await self._apply(topics)

    async def take_isr(
        self,
        name: TopicPartition,
        topic_id: bytes,
        *,
        leader: int,
        leader_epoch: int,
        isr: list[int],
        partition_epoch: int,
    ) -> None:
        """Apply the state of a partition that the controller answered to its leader.

        `topic_id`: of the topic that the leader asked about. Another one may have its name by now.
        """
        async with self._context.lock:
            image = self._context.updater.image
            partition = image.partition(*name)
            if partition is None or not may_be_same_topic(
                image.topics[name.topic].topic_id, topic_id
            ):
                return
            state = PartitionState(leader, leader_epoch, isr, partition.controller_epoch)
            sent_state = SentState(state, partition_epoch, partition.replicas)
            self._context.updater.apply_sent(name.topic, {name.partition: sent_state})

    async def is_being_deleted(self, topic: str) -> bool:
        """Return whether a topic is being deleted, or is gone. Raises CoordinationError.

        A controller says so in an UpdateMetadata request first, which takes the topic out of the
        image. One that is there all the same is looked up in the tree: a mark there is about the
        topic that the tree has.
        """
        topics = self._context.updater.image.topics
        if topic not in topics:
            return True
        tree = self._context.tree
        await tree.sync()
        node, mark = await tree.get_many([paths.topic(topic), paths.delete_topic(topic)])
        if mark is None or node is None:
            return mark is not None
        marked_topic = await decode_large_topic(paths.topic(topic), node[0])
        known_topic = topics.get(topic)  # by now: it may be another one of that name
        return known_topic is None or may_be_same_topic(
            known_topic.topic_id, marked_topic.topic_id or TopicId(ZERO_TOPIC_ID)
        )

    async def read_topic(self, name: str) -> None:
        """Read a topic from the tree now. Raises CoordinationError."""
        async with self._context.lock:
            await self._follower.read_topics([name])

    async def take_metadata(
        self,
        *,
        controller_id: int,
        controller_epoch: int,
        broker_ids: Collection[int],
        topics: Collection[SentTopic],
    ) -> None:
        """Apply an UpdateMetadata request. Raises KafkaError STALE_CONTROLLER_EPOCH,
        CoordinationError.
        """
        image = self._context.updater.image
        async with self._context.lock:
            self.check_controller_epoch(controller_id, controller_epoch)
            if controller_epoch >= image.controller_epoch:
                self._context.updater.apply_controller(
                    max(controller_id, NO_CONTROLLER), controller_epoch
                )
            if set(broker_ids) != image.brokers.keys():
                self._follower.look_at_brokers()
            evidence = deletion_request(
                EvidenceKind.LEADER_DURING_DELETE, controller_id, controller_epoch
            )
            self._begin_deletions(topics, evidence)
            await self._apply(topics)
            self.updated_at_ms = self._context.clock.now_ms()

    def _begin_deletions(self, topics: Iterable[SentTopic], evidence: DeletionEvidence) -> None:
        """Take the topics out of the image whose every partition is being deleted. A large topic
        comes in several requests.
        """
        updater = self._context.updater
        for topic in topics:
            known_topic = updater.image.topics.get(topic.name)
            if topic.deleted_indexes:
                self._expected_topics.pop(topic.name, None)
            if (
                not topic.deleted_indexes
                or known_topic is None
                or not may_be_same_topic(known_topic.topic_id, topic.topic_id)
            ):
                continue
            topic_id, old_indexes = self._deleted_indexes.pop(
                topic.name, (known_topic.topic_id, set())
            )
            deleted_indexes = (
                topic.deleted_indexes
                if topic_id != known_topic.topic_id
                else topic.deleted_indexes | old_indexes
            )
            if all(index in deleted_indexes for index in range(len(known_topic.partitions))):
                updater.begin_deletion(known_topic, evidence)
            else:
                self._deleted_indexes[topic.name] = known_topic.topic_id, deleted_indexes

    async def _apply(self, topics: Collection[SentTopic]) -> None:
        """Apply states of partitions, a few at a time; unknown partitions are read first.

        Raises CoordinationError where those cannot be read now; the others are applied all the
        same.
        """
        failure: CoordinationError | None = None
        unknown: list[SentTopic] = []
        turn = TimeSlice()
        for topic in topics:
            if topic.states and not self._is_known(topic):
                unknown.append(topic)
            if turn.is_over:
                await turn.pause()
        if unknown:
            try:
                await self._context.tree.sync()
                await self._follower.read_topics({topic.name for topic in unknown})
            except CoordinationError as error:
                failure = error
        for topic in topics:
            await self._apply_topic(topic, turn)
        for topic in unknown:
            if self._is_to_come(topic):
                self._expect(topic)
        if failure is not None:
            raise failure  # a controller of Kafka tells nothing twice

    def _is_to_come(self, topic: SentTopic) -> bool:
        """Return whether the tree lacks a sent topic, or partitions of it. One that is being
        deleted is there no more, and where another topic has the name the tree is right.
        """
        image = self._context.updater.image
        known_topic = image.topics.get(topic.name)
        if known_topic is None:
            return topic.name not in image.hidden_topics
        return may_be_same_topic(known_topic.topic_id, topic.topic_id) and not self._is_known(topic)

    def _expect(self, topic: SentTopic) -> None:
        """Keep the states of a topic until the tree has it."""
        old_expectation = self._expected_topics.get(topic.name)
        if old_expectation is not None and old_expectation.topic.topic_id == topic.topic_id:
            topic = topic._replace(states={**old_expectation.topic.states, **topic.states})
        self._context.log.info(
            "topic %s, or a part of it, cannot be read from the metadata tree yet: "
            "the controller told of it, and it is read again",
            topic.name,
        )
        self._expected_topics[topic.name] = _ExpectedTopic(topic, PAUSE_S)
        self._follower.look_at_topic_later(topic.name, PAUSE_S)

    async def _apply_expected(self, names: Iterable[str]) -> None:
        """Apply what was sent of these topics, which have just been read, once they are there."""
        turn = TimeSlice()
        for name in self._expected_topics.keys() & set(names):
            expected_topic = self._expected_topics.get(name)
            if expected_topic is None:
                continue  # another controller came meanwhile, and tells everything anew
            topic, pause_s = expected_topic
            if self._is_to_come(topic):
                pause_s = min(2 * pause_s, PAUSE_S_MAX)
                self._expected_topics[name] = _ExpectedTopic(topic, pause_s)
                self._follower.look_at_topic_later(name, pause_s)
                continue
            del self._expected_topics[name]
            await self._apply_topic(topic, turn)

    async def _apply_topic(self, topic: SentTopic, turn: TimeSlice) -> None:
        """Apply the states of one topic, if it is still there."""
        updater = self._context.updater
        states = iter(topic.states.items())
        while step := list(islice(states, STATES_PER_STEP)):
            known_topic = updater.image.topics.get(topic.name)
            if known_topic is None or not may_be_same_topic(known_topic.topic_id, topic.topic_id):
                return  # deleted meanwhile, or made again, or not read
            count = len(known_topic.partitions)
            updater.apply_sent(
                topic.name,
                {
                    index: self._with_own(topic.name, index, sent_state)
                    for index, sent_state in step
                    if 0 <= index < count
                },
            )
            if turn.is_over:
                await turn.pause()

    def _is_known(self, topic: SentTopic) -> bool:
        known_topic = self._context.updater.image.topics.get(topic.name)
        return (
            known_topic is not None
            # One without an id may have got it: the tree says so.
            and topic.topic_id in (known_topic.topic_id, ZERO_TOPIC_ID)
            and max(topic.states, default=0) < len(known_topic.partitions)
        )

    def _with_own(self, name: str, index: int, sent_state: SentState) -> SentState:
        """Return the state, in which a replica of this broker on a failed disk is offline whether
        the controller knows it yet or not.
        """
        own = self._context.broker_id
        failed = self._context.updater.failed_replicas.of(name, index)
        if sent_state.offline is None or own not in failed or own in sent_state.offline:
            return sent_state
        return sent_state._replace(offline=[*sent_state.offline, own])
