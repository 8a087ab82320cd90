"""`snapshot`: all that can be seen of the brokers of one cluster at one moment, as plain values.

    nodes, on their loop ─► snapshot() ─► Snapshot ─► the page of a failed test

The brokers go on meanwhile: it is taken in short slices. Every list is bounded. Values of sensitive
settings are not in it.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from minibroker.broker.config.describe import DEFAULT_SOURCE, broker_entries
from minibroker.broker.partitions.partition import READ_UNCOMMITTED
from minibroker.broker.slices import TimeSlice
from minibroker.cli.quantities import counted
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.releases import RELEASES
from minibroker.rig.group_views import GroupMember, members_of
from minibroker.rig.topic_records import TopicRecord, decoded
from minibroker.trace.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from minibroker.broker.cluster.image import PartitionImage, TopicImage
    from minibroker.broker.groups.group import Group
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.partitions.partition import Partition
    from minibroker.rig.faults import Fault
    from minibroker.rig.node import Node
    from minibroker.rig.request_log import RequestLog

TOPICS_MAX: Final = 100
PARTITIONS_MAX: Final = 100
GROUPS_MAX: Final = 200
TRANSACTIONS_MAX: Final = 200
RECORDS_MAX: Final = 100
"""Most records of a topic."""
RECORDS_OF_ALL_MAX: Final = 2_000
"""Most records of all topics together, about; topics that come later have none."""
OFFSETS_MAX: Final = 500
"""Most committed offsets of a group."""
REQUESTS_MAX: Final = 2_000
_RECORD_BYTES_MAX: Final = 4_096
"""Bytes of a key, a value or a header that are in a snapshot."""
_CHOICES: Final = {
    "topic": None,
    "partition": None,
    "group": None,
    "client_id": None,
    "version": None,
    "peer": None,
    "user": None,
    "skip": 0,
    "times": None,
    "probability": 1.0,
}
"""Field of a fault that chooses what it meets → its default."""
_LEAST_OF_A_PARTITION: Final = 5
"""Records of each partition, however many partitions a topic has."""


class BrokerSnapshot(NamedTuple):
    """One broker."""

    broker_id: int
    address: str
    state: str
    """`running`, `paused` or `killed`."""
    is_controller: bool


class PartitionSnapshot(NamedTuple):
    """One partition, as its leader has it. Offsets are -1 where no broker could be asked."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int
    end_offset: int
    """The high watermark."""
    open_offset: int
    """The last stable offset; less than the end while a transaction is open."""


class SnapshotRecord(NamedTuple):
    """A record whose long parts are cut; `sizes` are those of the whole key and value."""

    record: TopicRecord
    sizes: tuple[int, int]
    header_sizes: tuple[int, ...] = ()
    """Sizes of the whole values of the headers that it has."""


class TopicSnapshot(NamedTuple):
    """A topic with its last records, in the order of partitions and offsets."""

    name: str
    is_internal: bool
    configs: Mapping[str, str]
    """Its own settings."""
    partitions: Sequence[PartitionSnapshot]
    records: Sequence[SnapshotRecord]


class OffsetSnapshot(NamedTuple):
    """The position of a group in a partition."""

    topic: str
    partition: int
    committed: int
    end_offset: int
    """-1 if the partition could not be asked."""

    @property
    def lag(self) -> int | None:
        """Return the records behind the committed offset, None if they are not known."""
        return None if self.end_offset < 0 else max(self.end_offset - self.committed, 0)


class GroupSnapshot(NamedTuple):
    """A group of any kind."""

    name: str
    kind: str
    state: str
    members: Sequence[GroupMember]
    offsets: Sequence[OffsetSnapshot]


class TransactionSnapshot(NamedTuple):
    """A transactional id."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[tuple[str, int]]
    started_ms: int
    """-1 before its first transaction."""
    timeout_ms: int


class FaultSnapshot(NamedTuple):
    """A fault rule."""

    rule: str
    """Its choice of requests: `Produce, topic=orders, times=2`."""
    effect: str
    hits: int
    is_removed: bool

    @classmethod
    def of(cls, fault: Fault) -> FaultSnapshot:
        """Return a rule as it is now."""
        kind = fault.login or (fault.broker and "broker") or fault.api or "any request"
        choices = [
            f"{name}={getattr(fault, name)}"
            for name, default in _CHOICES.items()
            if getattr(fault, name) != default
        ]
        return cls(", ".join([kind, *choices]), fault.effect, fault.hits, fault.is_removed)


class Snapshot(NamedTuple):
    """Everything about one broker or one cluster."""

    bootstrap: str
    cluster_id: str
    release: str
    """The Kafka release that it passes for, or its software."""
    brokers: Sequence[BrokerSnapshot]
    settings: Sequence[tuple[str, str]]
    """Settings that are not defaults, those of the first broker that runs."""
    topics: Sequence[TopicSnapshot]
    groups: Sequence[GroupSnapshot]
    transactions: Sequence[TransactionSnapshot]
    faults: Sequence[FaultSnapshot]
    exchanges: Sequence[Exchange]
    """The last requests, in the order of time, by the machine's clock."""
    notes: Sequence[str]
    """Sentences about everything that is left out."""


async def snapshot(
    nodes: Sequence[Node], *, since_ms: float = 0.0, faults: Sequence[FaultSnapshot] = ()
) -> Snapshot:
    """Return a snapshot of the brokers of one cluster.

    Args:
        nodes: all brokers of the cluster; the killed ones show their requests only.
        since_ms: requests that came before are left out, by the machine's clock.
        faults: its rules, as `fault_snapshot` makes them.
    """
    taking = _Taking(nodes)
    topics = await taking.topics()
    return Snapshot(
        bootstrap=",".join(_address(node) for node in nodes),
        cluster_id=taking.image.cluster_id if taking.image is not None else "",
        release=_release(nodes[0]),
        brokers=[taking.broker(node) for node in nodes],
        settings=_settings(taking.active[0]) if taking.active else [],
        topics=topics,
        groups=await taking.groups(),
        transactions=taking.transactions(),
        faults=faults,
        exchanges=taking.exchanges(since_ms),
        notes=taking.notes,
    )


class _Taking:
    """One snapshot while it is taken. Belongs to the loop."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.active = [node for node in nodes if node.is_running]
        images = [node.app.cluster.image for node in self.active if node.app.cluster.is_controller]
        images += [node.app.cluster.image for node in self.active]
        self.image = images[0] if images else None
        self.notes: list[str] = []
        self._record_count = 0
        self._turn = TimeSlice()
        if not self.active:
            self.notes.append("Every broker was killed: only its requests are here.")

    def broker(self, node: Node) -> BrokerSnapshot:
        """Return the state of one broker."""
        state = "killed"
        if node.is_running:
            state = "paused" if node.is_paused else "running"
        controller_id = self.image.controller_id if self.image is not None else None
        return BrokerSnapshot(
            node.broker_id, _address(node), state, controller_id == node.broker_id
        )

    async def topics(self) -> list[TopicSnapshot]:
        """Return the topics by name, those of the broker itself at the end."""
        if self.image is None:
            return []
        images = sorted(
            self.image.topics.values(), key=lambda image: (image.is_internal, image.name)
        )
        configs = self.image.configs.get("topics", {})
        if len(images) > TOPICS_MAX:
            self.notes.append(f"Left out: {counted(len(images) - TOPICS_MAX, 'topic')}.")
        return [
            await self._topic(image, configs.get(image.name, {})) for image in images[:TOPICS_MAX]
        ]

    async def _topic(self, image: TopicImage, configs: Mapping[str, str]) -> TopicSnapshot:
        partitions = []
        records: list[SnapshotRecord] = []
        count = len(image.partitions)
        of_each = max(RECORDS_MAX // count, _LEAST_OF_A_PARTITION)
        if count > PARTITIONS_MAX:
            self.notes.append(
                f"Left out: {counted(count - PARTITIONS_MAX, 'partition')} of {image.name}."
            )
        for index, state in enumerate(image.partitions[:PARTITIONS_MAX]):
            partition = self._replica(image.name, index, state.leader)
            partitions.append(_partition(index, state, partition))
            if partition is not None and partition.has_log and not image.is_internal:
                records += await self._records(partition, of_each)
        if self._record_count < RECORDS_OF_ALL_MAX <= self._record_count + len(records):
            self.notes.append(f"Left out: records of topics behind {image.name}.")
        self._record_count += len(records)
        return TopicSnapshot(image.name, image.is_internal, dict(configs), partitions, records)

    async def _records(self, partition: Partition, count: int) -> list[SnapshotRecord]:
        """Return the last records of a partition, at most `count` offsets back."""
        records: list[SnapshotRecord] = []
        if self._record_count >= RECORDS_OF_ALL_MAX:
            return records
        first = max(partition.log_start_offset, partition.high_watermark - count)
        try:
            for record in islice(decoded(partition, first, READ_UNCOMMITTED), count):
                records.append(cut_record(record))
                await self._pause()
        except KafkaError as error:
            self.notes.append(f"Records of {partition}: {error}.")
        return records

    def _replica(self, topic: str, index: int, leader: int) -> Partition | None:
        """Return the leader's replica, or another one where the leader does not run."""
        nodes = sorted(self.active, key=lambda node: node.broker_id != leader)
        replicas = (node.app.partitions.replica(topic, index) for node in nodes)
        return next((replica for replica in replicas if replica is not None), None)

    async def groups(self) -> list[GroupSnapshot]:
        """Return the groups by name."""
        if self.image is None or OFFSETS_TOPIC not in self.image.topics:
            return []
        groups = []
        for node, shard, name in self._group_places():
            group = shard.groups.get(name)
            if group is not None:
                groups.append(self._group(node, shard, group))
            await self._pause()
        if len(groups) == GROUPS_MAX:
            self.notes.append(f"Left out: groups beyond {GROUPS_MAX}.")
        return sorted(groups, key=lambda group: group.name)

    def _group_places(self) -> list[tuple[Node, GroupShard, str]]:
        places = (
            (node, shard, name)
            for node in self.active
            for shard in node.app.services.groups.active_shards()
            for name in shard.groups
        )
        return list(islice(places, GROUPS_MAX))

    def _group(self, node: Node, shard: GroupShard, group: Group) -> GroupSnapshot:
        committed_offsets = (
            (topic, index, committed.offset)
            for topic, partitions in shard.offsets.of_group(group.group_id).items()
            for index, committed in partitions.items()
        )
        offsets = [
            OffsetSnapshot(topic, index, offset, self._end_offset(topic, index))
            for topic, index, offset in islice(committed_offsets, OFFSETS_MAX)
        ]
        if len(offsets) == OFFSETS_MAX:
            self.notes.append(f"Left out: offsets of {group.group_id} beyond {OFFSETS_MAX}.")
        members = members_of(group, node.app.services.groups.consumer.topics)
        return GroupSnapshot(
            group.group_id, group.type_name, group.state_name, members, sorted(offsets)
        )

    def _end_offset(self, topic: str, index: int) -> int:
        image = self.image.topics.get(topic) if self.image is not None else None
        if image is None or index >= len(image.partitions):
            return -1
        partition = self._replica(topic, index, image.partitions[index].leader)
        return partition.high_watermark if partition is not None and partition.has_log else -1

    def transactions(self) -> list[TransactionSnapshot]:
        """Return the transactional ids by name."""
        if self.image is None or TRANSACTIONS_TOPIC not in self.image.topics:
            return []
        transactions = []
        for node in self.active:
            try:
                transactions += list(islice(_transactions(node), TRANSACTIONS_MAX))
            except KafkaError as error:
                self.notes.append(f"Transactions of broker {node.broker_id}: {error}.")
        if len(transactions) > TRANSACTIONS_MAX:
            self.notes.append(f"Left out: transactional ids beyond {TRANSACTIONS_MAX}.")
        return sorted(transactions)[:TRANSACTIONS_MAX]

    def exchanges(self, since_ms: float) -> list[Exchange]:
        """Return the last requests of all brokers, those without an answer too."""
        alone = len(self.nodes) == 1
        logs = [
            (_address(node) if alone else f"broker {node.broker_id}", node.request_log)
            for node in self.nodes
        ]
        return exchanges_of(logs, since_ms, self.notes)

    async def _pause(self) -> None:
        if self._turn.is_over:
            await self._turn.pause()


def exchanges_of(
    logs: Iterable[tuple[str, RequestLog]], since_ms: float, notes: list[str]
) -> list[Exchange]:
    """Return the last requests of logs by time, with the broker's name for each log.

    A sentence about those that are left out is added to `notes`.
    """
    entries = [
        (request.machine_ms, name, request, is_ended, describe)
        for name, log in logs
        for is_ended, requests in (
            (True, ((request, partial(log.describe, request.number)) for request in log)),
            (False, log.open_requests()),
        )
        for request, describe in requests
        if request.machine_ms >= since_ms
    ]
    entries.sort(key=lambda entry: entry[0])
    if len(entries) > REQUESTS_MAX:
        notes.append(f"Left out: {counted(len(entries) - REQUESTS_MAX, 'earlier request')}.")
    connections: dict[str, int] = {}
    return [
        Exchange(
            number=number,
            connection=connections.setdefault(request.client_address, len(connections) + 1),
            client_address=request.client_address,
            broker=request.broker or name,
            api=request.api,
            version=request.version,
            correlation_id=request.correlation_id,
            client_id=request.client_id,
            at_ms=at_ms,
            duration_ms=request.duration_ms
            if is_ended and request.answer_bytes is not None
            else None,
            request_bytes=request.request_bytes,
            answer_bytes=request.answer_bytes,
            subject=request.subject or describe(),
            error=request.error,
            fault=request.fault,
        )
        for number, (at_ms, name, request, is_ended, describe) in enumerate(
            entries[-REQUESTS_MAX:], 1
        )
    ]


def proxy_snapshot(
    address: str,
    brokers: Mapping[str, str],
    log: RequestLog,
    since_ms: float,
    faults: Sequence[FaultSnapshot],
) -> Snapshot:
    """Return what a proxy sees: requests and faults.

    Args:
        address: the one that clients have.
        brokers: address of a listener → that of the broker behind it.
        log: on its loop.
        since_ms: requests that came before are left out.
    """
    notes = ["A proxy sees requests: topics, groups and records are those of its Kafka."]
    exchanges = exchanges_of([(address, log)], since_ms, notes)
    return Snapshot(
        bootstrap=address,
        cluster_id="",
        release="a proxy",
        brokers=[
            BrokerSnapshot(number, f"{listener} for {target}", "running", False)
            for number, (listener, target) in enumerate(brokers.items())
        ],
        settings=[],
        topics=[],
        groups=[],
        transactions=[],
        faults=faults,
        exchanges=exchanges,
        notes=notes,
    )


def _address(node: Node) -> str:
    host, port = node.address
    return f"{host}:{port}"


def _release(node: Node) -> str:
    return f"Kafka {node.app.config.advertised_kafka_version or RELEASES[-1]}"


def _settings(node: Node) -> list[tuple[str, str]]:
    """Return the settings that are not defaults; a sensitive one has no value."""
    return [
        (entry.name, "(hidden)" if entry.is_sensitive else str(entry.value))
        for entry in broker_entries(node.app.services.dynamic)
        if entry.source != DEFAULT_SOURCE
    ]


def _partition(index: int, state: PartitionImage, partition: Partition | None) -> PartitionSnapshot:
    offsets = (-1, -1, -1)
    if partition is not None and partition.has_log:
        offsets = (
            partition.log_start_offset,
            partition.high_watermark,
            partition.last_stable_offset,
        )
    leader = -1 if state.leader == NO_LEADER else state.leader
    return PartitionSnapshot(index, leader, tuple(state.replicas), tuple(state.isr), *offsets)


def cut_record(record: TopicRecord) -> SnapshotRecord:
    """Return a record without the ends of its long parts."""
    key, value = record.key, record.value
    headers = tuple(
        (name, None if data is None else bytes(data[:_RECORD_BYTES_MAX]))
        for name, data in record.headers[:_LEAST_OF_A_PARTITION]
    )
    cut = record._replace(
        key=None if key is None else bytes(key[:_RECORD_BYTES_MAX]),
        value=None if value is None else bytes(value[:_RECORD_BYTES_MAX]),
        headers=headers,
    )
    header_sizes = tuple(len(data or b"") for _, data in record.headers[: len(headers)])
    return SnapshotRecord(cut, (len(key or b""), len(value or b"")), header_sizes)


def _transactions(node: Node) -> Iterator[TransactionSnapshot]:
    """Yield the transactional ids of a broker. Raises KafkaError while they are loaded."""
    for metadata in node.app.services.transactions.all():
        yield TransactionSnapshot(
            metadata.transactional_id,
            metadata.state.title,
            metadata.producer_id,
            metadata.producer_epoch,
            sorted((place.topic, place.partition) for place in metadata.partitions),
            metadata.start_ms,
            metadata.timeout_ms,
        )
