"""The group coordinator: which groups are coordinated here, and where their offsets are.

    handlers ─► GroupCoordinator.shard(group id) ─► GroupShard: groups, offsets, append
                       │                                 ▲
                 partitions.journal ──load, markers──────┘

`services.groups` is made with the first request that needs it, or at start when
`__consumer_offsets` is there: a broker without groups does not pay for them.

Source: Kafka 3.9 GroupCoordinator; 4.4 GroupCoordinatorService.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.group import CLASSIC, CONSUMER
from minibroker.broker.groups.members import Surroundings, make_members
from minibroker.broker.groups.offset_runs import decode_runs
from minibroker.broker.groups.records import decode_records, offset_version_for
from minibroker.broker.groups.shard import GroupShard
from minibroker.broker.partitions.coordinator_runtime import CoordinatorRuntime, WriteTimeout
from minibroker.broker.slices import run_in_slices
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.groups.classic.membership import ClassicMembership
    from minibroker.broker.groups.consumer.membership import ConsumerMembership
    from minibroker.broker.groups.group import Group
    from minibroker.broker.groups.members import Members
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.timers import Timers
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)

MINUTE_MS: Final = 60_000


class GroupCoordinator(ClusterListener):
    """Belongs to the loop's thread."""

    __slots__ = (
        "_clock",
        "_cluster",
        "_members",
        "_offset_version",
        "_runtime",
        "_timers",
        "_worker",
        "config",
        "journal",
        "protocols",
    )

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        timers: Timers,
        config: BrokerConfig,
        worker: Runner,
    ) -> None:
        """`config` is that of the start: settings of groups do not change while the broker runs."""
        self.config = config
        self.protocols = frozenset(config.words("group.coordinator.rebalance.protocols"))
        """Those that members may speak, by the types of groups."""
        self._worker = worker
        self._clock = clock
        self._timers = timers
        self._offset_version = offset_version_for(str(config.get("inter.broker.protocol.version")))
        self._members: dict[str, Members] = {}
        """By the name of the kind; made when the first group or member of it is met."""
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            OFFSETS_TOPIC,
            make_shard=self._make_shard,
            cluster=cluster,
            partitions=partitions,
            clock=clock,
            config=config,
            worker=worker,
            codec=config.offsets_topic_compression_codec,
            decode=decode_records,
            decode_batch=decode_runs,
            write_timeout=WriteTimeout(timers, config.offsets_commit_timeout_ms),
        )
        self.journal = self._runtime.journal
        self._cluster = cluster

    def start(self) -> None:
        """Load what this broker leads, and follow the cluster."""
        self.journal.start()
        self._cluster.subscribe(self)
        self._schedule_expiry()

    def close(self) -> None:
        """Answer waiting members and end all timers: the broker stops."""
        for shard in self._runtime.active():
            self.on_shard_unloaded(shard)

    def members(self, kind: str) -> Members:
        """Return the manager of the members of a kind of groups (`kinds`)."""
        members = self._members.get(kind)
        if members is None:
            surroundings = Surroundings(
                self._clock,
                self._timers,
                self.config,
                self._cluster,
                self._worker,
                self.members,
            )
            members = self._members[kind] = make_members(kind, surroundings)
        return members

    @property
    def classic(self) -> ClassicMembership:
        """Return the manager of the members of classic groups."""
        return cast("ClassicMembership", self.members(CLASSIC))

    @property
    def consumer(self) -> ConsumerMembership:
        """Return the manager of the members of consumer groups (KIP-848)."""
        return cast("ConsumerMembership", self.members(CONSUMER))

    # Finding.

    def shard(self, group_id: str | None, *, may_be_empty: bool = False) -> GroupShard:
        """Return the shard that keeps the group.

        The empty id is one that OffsetCommit, OffsetFetch, DescribeGroups and DeleteGroups take.

        Raises KafkaError: INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        if group_id is None or not (group_id or may_be_empty):
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        shard = self._runtime.get(self.journal.partition_of(group_id))
        if group_id in shard.deleted_groups:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"group {group_id} is being deleted"
            )
        return shard

    def active_shards(self) -> list[GroupShard]:
        """Return every shard that is loaded."""
        return list(self._runtime.active())

    def find(self, group_id: str) -> Group | None:
        """Return a group, None if there is none.

        Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self.shard(group_id, may_be_empty=True).groups.get(group_id)

    def delete_group(self, group_id: str) -> Iterator[int]:
        """Delete a group with its offsets, in short steps; yields how many each step deleted.

        Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND,
        NON_EMPTY_GROUP, and the journal's codes.
        """
        shard = self.shard(group_id, may_be_empty=True)
        group = shard.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.validate_delete()
        yield from shard.delete_group(group)

    def visible(self, group_id: str) -> Awaitable[None] | None:
        """Call `CoordinatorRuntime.visible` for the partition that keeps the group."""
        return self._runtime.visible(self.journal.partition_of(group_id))

    # Transactions.

    def complete_transaction(self, index: int, producer_id: int, is_commit: bool) -> None:
        """Apply or drop the offsets of a transaction whose marker is visible in partition `index`.

        The producer's next transaction may begin from now on, so this is done at once: behind
        records that are not visible yet, it would end that one. A partition that is being loaded
        comes to the marker by itself.
        """
        shard = self._runtime.find(index)
        if shard is not None:
            shard.complete_transaction(producer_id, is_commit=is_commit)

    # The shards (`ShardFollower`).

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """Begin the sessions of all members: the groups of the partition are loaded."""
        for kind in {group.type_name for group in shard.groups.values()}:
            self.members(kind)
        for members in self._members.values():
            members.on_shard_loaded(shard)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Answer waiting members: another broker coordinates these groups, or this one stops."""
        for members in self._members.values():
            members.on_shard_unloaded(shard)

    def _make_shard(self, index: int) -> GroupShard:
        return GroupShard(
            index,
            self._runtime,
            self._clock,
            make_simple_group=ClassicGroup,
            offset_version=self._offset_version,
            follower=self,
        )

    # Expiry.

    def _schedule_expiry(self) -> None:
        self._timers.after(self.config.offsets_retention_check_interval_ms, self._expire)

    def _expire(self) -> None:
        self._schedule_expiry()
        run_in_slices(self._expire_offsets())

    def _expire_offsets(self) -> Iterator[None]:
        """Expire the offsets of every active partition, in short steps."""
        retention_ms = self.config.offsets_retention_minutes * MINUTE_MS
        count = 0
        for index in list(self.journal.active_indexes()):
            shard = self._runtime.find(index)
            if shard is None:
                continue
            try:
                for offsets in shard.expire(retention_ms):
                    count += offsets
                    yield
                    if self._runtime.find(index) is not shard:
                        break  # unloaded meanwhile
            except KafkaError as error:  # the next check tries again
                logger.warning("cannot expire offsets of partition %d: %s", index, error)
        if count:
            logger.info("%d committed offsets expired", count)

    # The cluster (`ClusterListener`).

    def on_topic_deleted(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Delete the offsets committed for the topic, in slices."""
        if topic.name != OFFSETS_TOPIC:
            run_in_slices(self._forget_topic(topic, evidence))

    def _forget_topic(self, topic: TopicImage, evidence: DeletionEvidence) -> Iterator[None]:
        steps = [shard.forget_topic(topic.name, topic.topic_id) for shard in self.active_shards()]
        count = 0
        for of_shard in steps:
            try:
                for offsets in of_shard:
                    count += offsets
                    yield
            except KafkaError as error:  # they expire
                logger.warning("cannot delete offsets of topic %s: %s", topic.name, error)
        if count:
            logger.info(
                "%d committed offsets of topic %s are deleted: %s", count, topic.name, evidence
            )
