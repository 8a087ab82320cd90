"""Looks into a running broker and changes it, on its loop: what `testing.Broker` calls.

Reaches for the same parts that handlers use: partitions, the cluster's image, the group
coordinator.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.records.builder import build_batch
from minibroker.records.record import Record
from minibroker.testing.partitioner import partition_of
from minibroker.testing.topic_records import TopicRecord, records_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.app import Broker
    from minibroker.cluster.image import TopicImage
    from minibroker.config.options import TopicToCreate
    from minibroker.records.record import Header

ACKS_ALL = -1


class _Claim:
    """An append's answer, as the partitions see it."""

    def __init__(self) -> None:
        self.error_code = 0
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.log_start_offset = -1


class _Progress:
    """Woken by partitions that grow and by topics that appear; a `Waiter` and a listener."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def on_progress(self) -> None:
        self.event.set()

    def complete(self) -> None:
        self.event.set()

    def on_topic_created(self, topic: TopicImage) -> None:
        self.event.set()

    def on_topic_deleted(self, topic: TopicImage) -> None:
        self.event.set()

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        self.event.set()

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Partitions tell who waits for them."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """No records come of it."""


class Inspector:
    """Belongs to the broker's loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._cluster = broker.cluster
        self._partitions = broker.partitions
        self._progress = _Progress()
        self._cluster.subscribe(self._progress)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that clients are told."""
        return self._broker.address

    # Topics and records.

    def topics(self) -> dict[str, int]:
        """Name → number of partitions, internal ones left out."""
        topics = self._cluster.image.topics.values()
        return {topic.name: len(topic.partitions) for topic in topics if not topic.is_internal}

    async def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Raises KafkaError, ConfigError."""
        from minibroker.config.topic import validate_topic_config  # noqa: PLC0415  as app does

        validate_topic_config(config, self._broker.config)
        replication = self._broker.config.default_replication_factor
        await self._cluster.create_topic(name, partitions, replication, configs=config)

    async def delete_topic(self, name: str) -> None:
        """Raises KafkaError."""
        await self._cluster.delete_topic(name)

    def records(self, topic: str, index: int | None, isolation: str) -> list[TopicRecord]:
        """Partition by partition. Raises KafkaError, ValueError."""
        image = self._cluster.image.topics.get(topic)
        if image is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        indexes = range(len(image.partitions)) if index is None else (index,)
        return [
            record
            for partition in indexes
            for record in records_of(self._partitions.get(topic, partition), isolation)
        ]

    async def produce(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        index: int | None,
        timestamp: int | None,
    ) -> TopicRecord:
        """Append one record as a client with acks=all. Raises KafkaError."""
        image = self._cluster.image.topics.get(topic)
        if image is None and self._broker.config.auto_create_topics_enable:
            await self.create_topic(topic, self._broker.config.num_partitions, {})
            image = self._cluster.image.topics.get(topic)
        if index is None:
            index = partition_of(key, len(image.partitions)) if image is not None else 0
        partition = self._partitions.get(topic, index)
        now_ms = self._broker.clock.now_ms()
        when = now_ms if timestamp is None else timestamp
        batch = build_batch([Record(0, when, key, value, headers)])
        claim = _Claim()
        appended = partition.append(memoryview(batch), ACKS_ALL, now_ms, claim)
        self._partitions.commit()
        if claim.error_code:
            raise KafkaError(ErrorCode(claim.error_code), f"{topic}-{index} was not written")
        offset = appended.first_offset
        return next(
            record
            for record in records_of(partition, "read_uncommitted")
            if record.offset == offset
        )

    async def wait_for(self, topic: str, count: int, timeout_s: float) -> list[TopicRecord]:
        """All records once there are `count`. Raises TimeoutError, which says how many came."""
        found: list[TopicRecord] = []
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    self._progress.event.clear()
                    found = self._watched(topic)
                    if len(found) >= count:
                        return found
                    await self._progress.event.wait()
        except TimeoutError:
            raise TimeoutError(
                f"waited {timeout_s:g} s for {count} records in topic {topic!r}, "
                f"which has {len(found)}"
            ) from None

    def _watched(self, topic: str) -> list[TopicRecord]:
        """Return the topic's records, and watch its partitions for more."""
        if topic not in self._cluster.image.topics:
            return []
        for partition in self._partitions.of_topic(topic).values():
            if partition.waiters is None:
                partition.waiters = set()
            partition.waiters.add(self._progress)
        return self.records(topic, None, "read_committed")

    # Groups.

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """(topic, partition) → offset. Raises KafkaError."""
        if OFFSETS_TOPIC not in self._cluster.image.topics:
            return {}
        of_group = self._broker.services.groups.shard(group).offsets.of_group(group)
        return {
            (topic, partition): committed.offset
            for topic, partitions in of_group.items()
            for partition, committed in partitions.items()
        }

    def groups(self) -> dict[str, str]:
        """Group id → state."""
        if OFFSETS_TOPIC not in self._cluster.image.topics:
            return {}
        return {
            group_id: group.state_name
            for shard in self._broker.services.groups.active_shards()
            for group_id, group in shard.groups.items()
        }

    # Anew.

    async def reset(self, topics: Sequence[TopicToCreate]) -> None:
        """Delete every topic (internal ones hold groups and transactions), every changed setting
        and quota; then make `topics` again."""
        cluster = self._cluster
        for name in list(cluster.image.topics):
            await cluster.delete_topic(name)
        entities: list[tuple[str, str, dict[str, Any]]] = [
            (kind, name, dict(config))
            for kind, of_kind in cluster.image.configs.items()
            for name, config in of_kind.items()
            if config
        ]
        for kind, name, config in entities:
            await cluster.alter_config(kind, name, dict.fromkeys(config))
        for topic in topics:
            count = topic.partitions if topic.partitions > 0 else self._broker.config.num_partitions
            await self.create_topic(topic.name, count, topic.configs)
