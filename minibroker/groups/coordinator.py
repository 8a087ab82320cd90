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
from typing import TYPE_CHECKING, Any, Final, Protocol

from minibroker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.groups.classic.membership import ClassicMembership, settings_of
from minibroker.groups.classic.stored import value_version_for
from minibroker.groups.group import CONSUMER
from minibroker.groups.offset_runs import decode_runs
from minibroker.groups.records import decode_records, offset_version_for
from minibroker.groups.shard import GroupShard
from minibroker.partitions.journal import Journal
from minibroker.records.control import parse_marker
from minibroker.slices import run_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minibroker.clock import Clock
    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.image import TopicImage
    from minibroker.config.broker import BrokerConfig
    from minibroker.groups.consumer.membership import ConsumerMembership, RunThen
    from minibroker.groups.group import Group
    from minibroker.groups.records import GroupEntry
    from minibroker.partitions.manager import PartitionManager
    from minibroker.records.batch import BatchHeader
    from minibroker.records.record import Record
    from minibroker.timers import Timers

logger = logging.getLogger(__name__)

MINUTE_MS: Final = 60_000
COMMIT_VERSIONS: Final = 4


class ShardFollower(Protocol):
    """What manages members (classic, consumer): told when groups come and go as a whole."""

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """All groups of the partition are as they were: their sessions run from now on."""

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Another broker coordinates these groups: whoever waits here is sent there."""


class GroupCoordinator:
    """Belongs to the loop's thread."""

    __slots__ = (
        "_clock",
        "_cluster",
        "_consumer",
        "_followers",
        "_offset_version",
        "_run_then",
        "_shards",
        "_timers",
        "classic",
        "commit_routes",
        "config",
        "journal",
    )

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        timers: Timers,
        config: BrokerConfig,
        run_later: Callable[[Callable[[], None]], None],
        run_then: RunThen,
    ) -> None:
        """`config`: what groups go by cannot be changed while the broker runs."""
        self.config = config
        self._run_then = run_then
        self._consumer: ConsumerMembership | None = None
        self._clock = clock
        self._timers = timers
        protocol = str(config.get("inter.broker.protocol.version"))
        self._offset_version = offset_version_for(protocol)
        self.classic = ClassicMembership(
            clock=clock,
            timers=timers,
            settings=settings_of(config),
            value_version=value_version_for(protocol),
        )
        """The members of the classic groups."""
        self._followers: tuple[ShardFollower, ...] = (self.classic,)
        self._shards: dict[int, GroupShard] = {}
        """Of every partition that is loading or loaded."""
        self.commit_routes: list[dict[bytes, Any]] = [{} for _ in range(COMMIT_VERSIONS)]
        """Per OffsetCommit version from 7 on: who commits for which topic, as the request has it →
        what that means. `handlers/offset_commit_fast` fills it; emptied whenever a topic or a
        partition of `__consumer_offsets` comes, goes or changes."""
        self.journal = Journal(
            OFFSETS_TOPIC,
            cluster=cluster,
            partitions=partitions,
            clock=clock,
            config=config,
            run_later=run_later,
            listener=self,
            codec=config.offsets_topic_compression_codec,
            decode=decode_records,
            decode_batch=decode_runs,
        )
        self._cluster = cluster

    def start(self) -> None:
        """Load what this broker leads, and follow the cluster."""
        self.journal.start()
        self._cluster.subscribe(self)
        self._schedule_expiry()

    def close(self) -> None:
        """The broker stops: whoever waits for a group is told, and no session ends any more."""
        for shard in self._shards.values():
            for follower in self._followers:
                follower.on_shard_unloaded(shard)

    @property
    def consumer(self) -> ConsumerMembership:
        """The members of the consumer groups (KIP-848); loaded with the first one."""
        if self._consumer is None:
            from minibroker.groups.consumer.membership import (  # noqa: PLC0415 see above
                ConsumerMembership,
            )

            self._consumer = ConsumerMembership(
                clock=self._clock,
                timers=self._timers,
                config=self.config,
                cluster=self._cluster,
                classic=self.classic,
                run_then=self._run_then,
            )
            self._cluster.subscribe(self._consumer)
            self._followers = (self.classic, self._consumer)
        return self._consumer

    # Finding.

    def shard(self, group_id: str | None, *, may_be_empty: bool = False) -> GroupShard:
        """Return the shard that keeps the group, with every accepted commit applied.

        The empty id is one that OffsetCommit, OffsetFetch, DescribeGroups and DeleteGroups take.

        Raises KafkaError: INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        shard = self.shard_to_commit(group_id, may_be_empty=may_be_empty)
        self.journal.flush()
        return shard

    def shard_to_commit(self, group_id: str | None, *, may_be_empty: bool = False) -> GroupShard:
        """Like `shard`, but without flushing the journal: for callers that only write."""
        if group_id is None or not (group_id or may_be_empty):
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        index = self.journal.partition_of(group_id)
        self.journal.check_active(index)
        return self._shards[index]

    def active_shards(self) -> list[GroupShard]:
        """Every shard that is loaded."""
        return [self._shards[index] for index in self.journal.active_indexes()]

    def find(self, group_id: str) -> Group | None:
        """A group that is coordinated here. Raises as `shard`."""
        return self.shard(group_id, may_be_empty=True).groups.get(group_id)

    # Transactions.

    def complete_transaction(self, index: int, producer_id: int, is_commit: bool) -> None:
        """Apply or drop the offsets of a transaction whose marker is in partition `index`.

        They were staged before the marker, and count before it: an offset that still waits for its
        fsync takes effect first. A partition that is being loaded comes to the marker by itself.
        """
        self.journal.flush()

        def complete() -> None:
            shard = self._shards.get(index)
            if shard is not None and self.journal.is_active(index):
                shard.complete_transaction(producer_id, is_commit=is_commit)

        self.journal.when_told(index, complete)

    # The journal (`JournalListener`).

    def on_batch(
        self, index: int, header: BatchHeader, records: Sequence[GroupEntry | Record]
    ) -> None:
        shard = self._shards.get(index)
        if shard is None:
            shard = self._make_shard(index)
        if header.is_control:
            for record in records[:1]:
                marker = parse_marker(record)  # type: ignore[arg-type]
                if marker is not None:
                    shard.complete_transaction(header.producer_id, is_commit=marker.is_commit)
            return
        producer_id = header.producer_id if header.is_transactional else -1
        for entry in records:
            shard.replay(entry, producer_id)  # type: ignore[arg-type]

    def on_loaded(self, index: int) -> None:
        shard = self._shards.get(index)
        if shard is None:
            shard = self._make_shard(index)
        for group_id in list(shard.offsets.group_ids()):
            if group_id not in shard.groups:  # its tombstone stands alone: offsets outlive it
                shard.create_simple_group(group_id)
        if shard.groups:
            logger.info(
                "%s-%d is loaded: %d groups, %d committed offsets",
                OFFSETS_TOPIC,
                index,
                len(shard.groups),
                shard.offsets.committed_count,
            )
        if any(group.type_name == CONSUMER for group in shard.groups.values()):
            _ = self.consumer
        for follower in self._followers:
            follower.on_shard_loaded(shard)

    def on_unloaded(self, index: int) -> None:
        self._forget_routes()
        shard = self._shards.pop(index, None)
        if shard is not None:
            for follower in self._followers:
                follower.on_shard_unloaded(shard)

    def _forget_routes(self) -> None:
        for routes in self.commit_routes:
            routes.clear()

    def _make_shard(self, index: int) -> GroupShard:
        shard = GroupShard(index, self.journal, self._clock, offset_version=self._offset_version)
        self._shards[index] = shard
        return shard

    # Expiry.

    def _schedule_expiry(self) -> None:
        self._timers.after(self.config.offsets_retention_check_interval_ms, self._expire)

    def _expire(self) -> None:
        self._schedule_expiry()
        self.journal.flush()
        run_in_slices(self._expire_offsets())

    def _expire_offsets(self) -> Iterator[None]:
        """Expire the offsets of every active partition, in short steps."""
        retention_ms = self.config.offsets_retention_minutes * MINUTE_MS
        count = 0
        for index in list(self.journal.active_indexes()):
            shard = self._shards.get(index)
            if shard is None or not self.journal.is_active(index):
                continue
            try:
                for expired in shard.expire(retention_ms):
                    count += expired
                    yield
                    if self._shards.get(index) is not shard:
                        break  # unloaded meanwhile
                    self.journal.flush()  # a step has to know every accepted commit
            except KafkaError as error:  # the next check tries again
                logger.warning("cannot expire offsets of partition %d: %s", index, error)
        if count:
            logger.info("%d committed offsets expired", count)

    # The cluster (`ClusterListener`).

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """What was committed for a topic goes with it."""
        self._forget_routes()
        if topic.name == OFFSETS_TOPIC:
            return
        self.journal.flush()
        for shard in self.active_shards():
            try:
                shard.forget_topic(topic.name, topic.topic_id)
            except KafkaError as error:  # they expire
                logger.warning("cannot delete offsets of topic %s: %s", topic.name, error)

    def on_topic_created(self, topic: TopicImage) -> None:
        """Nothing was committed for it yet."""

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Offsets can be committed for more partitions, or groups have moved to another one."""
        self._forget_routes()

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Who leads a topic does not matter to what is committed for it."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """What groups go by is fixed at start."""
