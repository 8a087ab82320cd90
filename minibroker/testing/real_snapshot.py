"""A snapshot of a Kafka that runs: `pytest --kafka=HOST:PORT` has one.

It is asked over the wire, as any admin client asks: topics, the last records, groups, offsets. The
requests of clients are those that the proxy before it sees; `RealKafka` adds them.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Final

from minibroker.cli.quantities import counted
from minibroker.client.admin import describe, offsets_at
from minibroker.client.configs import OF_TOPIC, topic_settings
from minibroker.client.consume import PartitionReader
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.group_details import group_details
from minibroker.client.groups import GroupListing, committed_offsets, list_groups
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from minibroker.kafka.records.conversion import read_records
from minibroker.rig.group_views import GroupMember
from minibroker.rig.snapshot import (
    GROUPS_MAX,
    PARTITIONS_MAX,
    RECORDS_MAX,
    TOPICS_MAX,
    BrokerSnapshot,
    GroupSnapshot,
    OffsetSnapshot,
    PartitionSnapshot,
    Snapshot,
    SnapshotRecord,
    TopicSnapshot,
    cut_record,
)
from minibroker.rig.topic_records import CREATE_TIME, LOG_APPEND_TIME, TopicRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from minibroker.client.admin import DescribedCluster, DescribedTopic
    from minibroker.client.client import Client
    from minibroker.client.consume import Fetched

_TIME_S: Final = 10.0
"""Time for all questions; what is not known by then is left out."""
_POLL_S: Final = 1.0


def real_snapshot(client: Client, own_topics: Collection[str]) -> Snapshot:
    """Return what a Kafka tells, without requests.

    `own_topics`: come first. Raises KafkaError, OSError, ProtocolError, ConfigError.
    """
    return _Asking(client, own_topics).snapshot()


class _Asking:
    """The questions of one view, and the time for them."""

    def __init__(self, client: Client, own_topics: Collection[str]) -> None:
        self._client = client
        self._own_topics = own_topics
        self._deadline = time.monotonic() + _TIME_S
        self._notes: list[str] = []

    def snapshot(self) -> Snapshot:
        """Return what the cluster tells. Raises KafkaError, OSError, ProtocolError, ConfigError."""
        cluster = describe(self._client)
        return Snapshot(
            bootstrap="",
            cluster_id=cluster.cluster_id,
            release="a Kafka that runs",
            brokers=[
                BrokerSnapshot(
                    broker_id,
                    f"{broker.address[0]}:{broker.address[1]}",
                    "running",
                    broker_id == cluster.controller_id,
                )
                for broker_id, broker in cluster.brokers.items()
            ],
            settings=[],
            topics=list(self._topics(cluster)),
            groups=list(self._groups()),
            transactions=[],
            faults=[],
            exchanges=[],
            notes=self._notes,
        )

    def _topics(self, cluster: DescribedCluster) -> Iterator[TopicSnapshot]:
        """Yield the topics, those of this test first. Raises KafkaError, OSError."""
        own_topics = set(self._own_topics)
        names = sorted(cluster.topics, key=lambda name: (name not in own_topics, name))
        for count, name in enumerate(names):
            if count == TOPICS_MAX or time.monotonic() > self._deadline:
                self._notes.append(f"Left out: {counted(len(names) - count, 'topic')}.")
                return
            topic = cluster.topics[name]
            if not topic.is_internal:
                yield self._topic(name, topic)

    def _topic(self, name: str, topic: DescribedTopic) -> TopicSnapshot:
        led = [part for part in topic.partitions[:PARTITIONS_MAX] if part.leader >= 0]
        places = [TopicPartition(name, part.number) for part in led]
        starts = offsets_at(self._client, places, EARLIEST_TIMESTAMP, is_committed=False)
        ends = offsets_at(self._client, places, LATEST_TIMESTAMP, is_committed=False)
        stable = offsets_at(self._client, places, LATEST_TIMESTAMP, is_committed=True)
        partitions = [
            PartitionSnapshot(
                part.number,
                part.leader,
                part.replicas,
                part.in_sync,
                starts.get(TopicPartition(name, part.number), -1),
                ends.get(TopicPartition(name, part.number), -1),
                stable.get(TopicPartition(name, part.number), -1),
            )
            for part in topic.partitions[:PARTITIONS_MAX]
        ]
        configs = {
            setting.name: "(hidden)" if setting.value is None else setting.value
            for setting in topic_settings(self._client, name)
            if setting.source == OF_TOPIC
        }
        return TopicSnapshot(name, False, configs, partitions, self._records(starts, ends))

    def _records(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[SnapshotRecord]:
        """Return the last records of partitions. Raises KafkaError, OSError."""
        of_each = max(RECORDS_MAX // max(len(ends), 1), 1)
        firsts = {
            place: max(starts.get(place, 0), end - of_each)
            for place, end in ends.items()
            if end > starts.get(place, 0)
        }
        reader = PartitionReader(self._client, firsts, is_committed=False)
        records: list[SnapshotRecord] = []
        try:
            while reader.positions and time.monotonic() < self._deadline:
                for fetched in reader.poll(_POLL_S):
                    end = ends[fetched.place]
                    records += islice(_records_of(fetched, end), of_each)
                    if fetched.next_offset >= end:
                        reader.remove([fetched.place])
        finally:
            reader.close()
        if reader.positions:
            self._notes.append("The time was over before the last records were here.")
        return sorted(records, key=lambda item: (item.record.partition, item.record.offset))

    def _groups(self) -> Iterator[GroupSnapshot]:
        """Yield the groups of consumers. Raises KafkaError, OSError."""
        groups = list_groups(self._client, self._deadline)
        for count, group in enumerate(groups):
            if count == GROUPS_MAX or time.monotonic() > self._deadline:
                self._notes.append(f"Left out: {counted(len(groups) - count, 'group')}.")
                return
            yield self._group(group)

    def _group(self, group: GroupListing) -> GroupSnapshot:
        coordinator = CoordinatorClient(self._client, group.name)
        details = group_details(coordinator, self._deadline)
        committed = committed_offsets(coordinator, self._deadline)
        places = [TopicPartition(item.topic, item.partition) for item in committed]
        ends = offsets_at(self._client, places, LATEST_TIMESTAMP, is_committed=False)
        members = [
            GroupMember(member.member_id, member.client_id, member.instance_id, member.partitions)
            for member in details.members
        ]
        offsets = [
            OffsetSnapshot(
                item.topic,
                item.partition,
                item.offset,
                ends.get(TopicPartition(item.topic, item.partition), -1),
            )
            for item in committed
        ]
        return GroupSnapshot(group.name, details.protocol, details.state, members, offsets)


def _records_of(fetched: Fetched, end: int) -> Iterator[SnapshotRecord]:
    """Yield the records of an answer from the offset on that was asked for, up to the end."""
    for batch in fetched.batches:
        kind = LOG_APPEND_TIME if batch.header.is_append_time else CREATE_TIME
        for record in read_records(batch.content, 0, batch.header):
            if fetched.start <= record.offset < end:
                topic_record = TopicRecord(
                    *fetched.place,
                    record.offset,
                    record.timestamp,
                    kind,
                    record.key,
                    record.value,
                    record.headers,
                )
                yield cut_record(topic_record)
