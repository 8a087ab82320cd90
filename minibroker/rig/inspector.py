"""Reads and changes a running broker, on its loop; `testing.Broker` calls it.

It uses the same parts as the handlers: partitions, the cluster's image, the group coordinator.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.partitions.partition import ACKS_ALL, LOG_END, READ_UNCOMMITTED
from minibroker.broker.security.acl_entries import Acl, AclFilter
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.partitioner import partition_of
from minibroker.kafka.records.record import Record
from minibroker.rig.topic_records import TopicRecord, check_isolation, decoded, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from minibroker.broker.app import Broker
    from minibroker.broker.config.topic_option import TopicToCreate
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.security.authorizer import Authorizer
    from minibroker.kafka.records.record import Header
    from minibroker.rig.group_views import GroupMember

EVERY_ACL: Final = AclFilter(
    ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY
)
_BATCH_BYTES: Final = 16 << 10
"""Bytes of values in one batch, like `batch.size` of Java's producer; a larger value is alone."""
REPLICATED_S: Final = 10.0
"""Longest wait until the replicas in sync have records that were written."""
_RECORD_BYTES_AROUND: Final = 32
"""Bytes of a small record beside its value: lengths, deltas, a short key."""


class _Claim:
    """The answer of an append, as the partitions see it."""

    def __init__(self) -> None:
        self.error_code = 0
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.log_start_offset = -1

    def check(self, sentence: str) -> None:
        """Raises KafkaError, with the sentence, where the claim does not hold."""
        if self.error_code:
            raise KafkaError(ErrorCode(self.error_code), sentence)


class TopicProgress(ClusterListener):
    """Wakes a wait when partitions grow or topics appear; a `Waiter` and a listener."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def _wake(self, *_change: Any, **_names: Any) -> None:
        self.event.set()

    on_progress = complete = _wake
    on_topic_created = on_topic_deleted = on_topic_missing = _wake
    on_partitions_added = on_leadership = _wake


class Inspector:
    """Reads and changes the broker. Belongs to its loop."""

    def __init__(self, broker: Broker, progress: TopicProgress | None = None) -> None:
        """`progress`: wakes the waits; it outlives this broker where its node starts it again."""
        self._broker = broker
        self._cluster = broker.cluster
        self._partitions = broker.partitions
        self._progress = progress or TopicProgress()
        self._cluster.subscribe(self._progress)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port for clients."""
        return self._broker.address

    # Topics and records.

    def topics(self) -> dict[str, int]:
        """Return name → number of partitions, without internal topics."""
        topics = self._cluster.image.topics.values()
        return {topic.name: len(topic.partitions) for topic in topics if not topic.is_internal}

    async def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str], replicas: int = 0
    ) -> None:
        """Make a topic; `replicas` of 0: as many as the broker's default. Raises KafkaError,
        ConfigError.
        """
        from minibroker.broker.config.topic import validate_topic_config  # noqa: PLC0415  as app does

        validate_topic_config(config, self._broker.config)
        replication = replicas or self._broker.config.default_replication_factor
        await self._cluster.create_topic(name, partitions, replication, configs=config)

    async def add_topic(self, topic: TopicToCreate) -> None:
        """Make a topic in the notation of the command line. Raises KafkaError, ConfigError."""
        count = topic.partitions if topic.partitions > 0 else self._broker.config.num_partitions
        await self.create_topic(topic.name, count, topic.configs, topic.replicas)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises KafkaError."""
        await self._cluster.delete_topic(name)

    def records(self, topic: str, index: int | None, isolation: str) -> list[TopicRecord]:
        """Return the records, ordered by partition. Raises KafkaError, ValueError."""
        check_isolation(isolation)
        count = self._partition_count(topic, index)
        indexes = range(count) if index is None else (index,)
        return [
            record
            for partition in indexes
            for record in records_of(self._partitions.hosted(topic, partition), isolation)
        ]

    def last(self, topic: str, count: int) -> list[TopicRecord]:
        """Return the last records of each partition, at most `count` offsets back."""
        records: list[TopicRecord] = []
        for partition in self._replicas(topic):
            if not partition.has_log:
                continue
            first = max(partition.log_start_offset, partition.high_watermark - count)
            records += decoded(partition, first, READ_UNCOMMITTED)
        return records

    async def produce(
        self,
        topic: str,
        *,
        key: bytes | None,
        values: Sequence[bytes | None],
        headers: tuple[Header, ...],
        index: int | None,
        timestamp: int | None,
    ) -> list[TopicRecord]:
        """Append a record of each value, as a client with acks=all. Raises KafkaError."""
        await self.ensure_topic(topic)
        count = self._partition_count(topic, index)
        if index is None:
            index = partition_of(key, count)
        when = self._broker.clock.now_ms() if timestamp is None else timestamp
        topic_records: list[TopicRecord] = []
        turn = TimeSlice()
        for batch in _batches(values):
            records = [Record(0, when, key, value, headers) for value in batch]
            topic_records += await self._append(self._partitions.get(topic, index), records)
            if turn.is_over:
                await turn.pause()
        return topic_records

    def _partition_count(self, topic: str, index: int | None) -> int:
        """Return how many partitions a topic has.

        Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION): there is no such topic, or no partition
        `index` of it; says which ones there are.
        """
        image = self._cluster.image.topics.get(topic)
        if image is None:
            sentence = f"there is no topic {topic!r}"
            if not self._broker.config.auto_create_topics_enable:
                sentence += ", and this broker makes none (auto.create.topics.enable=false)"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)
        count = len(image.partitions)
        if index is not None and not 0 <= index < count:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has no partition {index}: it has {count}, from 0",
            )
        return count

    async def ensure_topic(self, topic: str) -> None:
        """Make a topic that does not exist, where the broker makes topics by itself."""
        if (
            topic not in self._cluster.image.topics
            and self._broker.config.auto_create_topics_enable
        ):
            await self.create_topic(topic, self._broker.config.num_partitions, {})

    async def _append(self, partition: Partition, records: list[Record]) -> list[TopicRecord]:
        """Write one batch, and return its records as the log has them."""
        first_offset = await self.append(partition, records)
        return list(islice(decoded(partition, first_offset, LOG_END), len(records)))

    async def append(self, partition: Partition, records: list[Record]) -> int:
        """Write one batch, as a client with acks=all; return the offset of its first record.

        Raises KafkaError. Where replicas lack the batch after `REPLICATED_S` it is
        REQUEST_TIMED_OUT, and the batch stays.
        """
        claim = _Claim()
        first_offset, synced = self._write(partition, records, claim)
        end_offset = first_offset + len(records)
        replicas = partition.replicas
        if replicas is not None and end_offset > partition.high_watermark:
            # The wait begins in the step of the write: later this broker may lead no more.
            await replicas.wait(end_offset, claim, int(REPLICATED_S * 1000))
        await synced
        claim.check(f"not every replica in sync of {partition} has offset {first_offset}")
        return first_offset

    async def append_here(self, partition: Partition, records: list[Record]) -> int:
        """Write one batch to the disk of this broker alone; return the offset of its first record.

        Raises KafkaError: nothing is written.
        """
        claim = _Claim()
        first_offset, synced = self._write(partition, records, claim)
        await synced
        claim.check(f"{partition} was not written")
        return first_offset

    def _write(
        self, partition: Partition, records: list[Record], claim: _Claim
    ) -> tuple[int, asyncio.Future[bool]]:
        """Return the offset of the first record, and what is done when the disk has the batch."""
        batch = memoryview(build_batch(records))
        appended = partition.append(batch, ACKS_ALL, self._broker.clock.now_ms(), claim)
        self._partitions.commit()
        synced: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._partitions.appends.when_synced(synced.set_result)
        return appended.first_offset, synced

    async def wait_for(
        self,
        topic: str,
        count: int,
        timeout_s: float,
        latest: Callable[[], Inspector | None] | None = None,
    ) -> list[TopicRecord]:
        """Return all records once there are `count`.

        `latest` returns the inspector of the broker as it runs now, None while it does not;
        without it this one looks. Raises TimeoutError, which says how many came.
        """
        records: list[TopicRecord] = []
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    self._progress.event.clear()
                    inspector = self if latest is None else latest()
                    if inspector is not None:
                        records = inspector.watch(topic)
                    if len(records) >= count:
                        return records
                    await self._progress.event.wait()
        except TimeoutError:
            raise TimeoutError(
                f"waited {timeout_s:g} s for {count} records in topic {topic!r}, "
                f"which has {len(records)}"
            ) from None

    def watch(self, topic: str) -> list[TopicRecord]:
        """Return the records of this broker's replicas, and watch them for more."""
        records: list[TopicRecord] = []
        for partition in self._replicas(topic):
            if partition.waiters is None:
                partition.waiters = {}
            partition.waiters[self._progress] = None
            records += self.records(topic, partition.index, "read_committed")
        return records

    def _replicas(self, topic: str) -> Iterator[Partition]:
        """Yield the topic's partitions that are here by now, led, followed or offline."""
        image = self._cluster.image.topics.get(topic)
        for index in range(len(image.partitions) if image is not None else 0):
            partition = self._partitions.replica(topic, index)
            if partition is not None:
                yield partition

    # Groups.

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → committed offset. Raises KafkaError."""
        if OFFSETS_TOPIC not in self._cluster.image.topics:
            return {}
        of_group = self._broker.services.groups.shard(group).offsets.of_group(group)
        return {
            (topic, partition): committed.offset
            for topic, partitions in of_group.items()
            for partition, committed in partitions.items()
        }

    def groups(self) -> dict[str, str]:
        """Return group id → state."""
        if OFFSETS_TOPIC not in self._cluster.image.topics:
            return {}
        return {
            group_id: group.state_name
            for shard in self._broker.services.groups.active_shards()
            for group_id, group in shard.groups.items()
        }

    def members(self, group_id: str) -> list[GroupMember]:
        """Return the members of a group; none where there is no such group. Raises KafkaError."""
        if OFFSETS_TOPIC not in self._cluster.image.topics:
            return []
        from minibroker.rig.group_views import members_of  # noqa: PLC0415  brings the groups

        groups = self._broker.services.groups
        group = groups.shard(group_id).groups.get(group_id)
        return [] if group is None else members_of(group, groups.consumer.topics)

    def lag(self, group_id: str, brokers: Sequence[Broker]) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → records between the committed offset and the high watermark.

        It has only partitions with a committed offset. `brokers`: those of the cluster that run;
        each partition is asked where it is led. Raises KafkaError: GROUP_ID_NOT_FOUND where there
        is no such group; names those that there are.
        """
        offsets = self.committed(group_id)
        if not offsets and group_id not in (groups := self.groups()):
            names = ", ".join(map(repr, sorted(groups))) or "none yet"
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"there is no group {group_id!r}, the groups of this broker are: {names}",
            )
        return {
            # A new leader may not know yet how far readers may read.
            (topic, index): max(0, self._led(topic, index, brokers).high_watermark - offset)
            for (topic, index), offset in offsets.items()
        }

    def _led(self, topic: str, index: int, brokers: Sequence[Broker]) -> Partition:
        """Return a partition at the broker that leads it. Raises KafkaError where none does."""
        partition = led_partition(brokers, topic, index)
        return self._partitions.get(topic, index) if partition is None else partition

    # ACLs.

    @property
    def authorizer(self) -> Authorizer:
        """Return the broker's authorizer. Raises RuntimeError if it has none."""
        authorizer = self._broker.services.authorizer
        if authorizer is None:
            raise RuntimeError("everyone may do everything here: give acls=[…] at the start")
        return authorizer

    def acls(self) -> list[Acl]:
        """Return all ACLs, sorted."""
        return self.authorizer.find(EVERY_ACL)

    async def change_acls(self, added: Sequence[Acl], removed: Sequence[Acl]) -> None:
        """Add and remove ACLs, as a client does. Raises KafkaError."""
        outcomes = await self.authorizer.create(added, allows_networks=True)
        for deleted in await self.authorizer.delete([_filter_of(acl) for acl in removed]):
            outcomes += [error for _, error in deleted]
        for error in outcomes:
            if error is not None:
                raise error

    def has_acls(self, added: Sequence[Acl], removed: Sequence[Acl]) -> bool:
        """Return whether the broker decides by the former, and not by the latter."""
        acls = set(self.acls())
        return acls.issuperset(added) and acls.isdisjoint(removed)

    # Anew.

    async def reset(self, topics: Sequence[TopicToCreate]) -> None:
        """Delete every topic, changed setting, quota, ACL and token; then make `topics` and users
        again.

        Internal topics go too: they hold groups and transactions.
        """
        cluster = self._cluster
        for name in list(cluster.image.topics):
            await cluster.delete_topic(name)
        await self.forget_settings()
        await self._broker.access.write_users()
        for topic in topics:
            await self.add_topic(topic)

    async def forget_settings(self) -> None:
        """Delete every changed setting, quota, ACL and token that this broker knows."""
        cluster = self._cluster
        entities: list[tuple[str, str, dict[str, Any]]] = [
            (kind, name, dict(config))
            for kind, of_kind in cluster.image.configs.items()
            for name, config in of_kind.items()
            if config
        ]
        for kind, name, config in entities:
            await cluster.alter_config(kind, name, dict.fromkeys(config))
        if (tokens := self._broker.access.tokens) is not None:
            for entry in tokens.all():
                with suppress(KafkaError):  # another broker may be faster
                    await tokens.expire(entry.token.owner, entry.hmac, -1)
        if self._broker.services.authorizer is not None:
            await self.change_acls((), self.acls())


def led_partition(brokers: Sequence[Broker], topic: str, index: int) -> Partition | None:
    """Return a partition at its leader, None where none of these brokers leads it."""
    for broker in brokers:
        partition = broker.partitions.find(topic, index)
        if partition is not None:
            return partition
    return None


def _filter_of(acl: Acl) -> AclFilter:
    """Return a filter that matches this ACL and no other."""
    pattern, entry = acl
    return AclFilter(
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission,
    )


def _batches(values: Sequence[bytes | None]) -> Iterator[list[bytes | None]]:
    """Yield the values in order, cut into batches of about `_BATCH_BYTES`."""
    batch: list[bytes | None] = []
    size_bytes = 0
    for value in values:
        length = len(value or b"") + _RECORD_BYTES_AROUND
        if batch and size_bytes + length > _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
        batch.append(value)
        size_bytes += length
    if batch:
        yield batch
