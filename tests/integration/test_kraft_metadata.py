"""Apache Kafka with KRaft goes on with metadata that minibroker wrote, and minibroker with Kafka's.

Each node of Kafka starts on a directory that nobody formatted.
"""

from __future__ import annotations

import asyncio
import io
import itertools
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import TopicPartition as Place

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    MetaProperties,
    write_clean_marker,
    write_properties,
)
from minibroker.cli.program import run_words
from minibroker.kafka.ids import topic_id_to_text
from minibroker.kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from minibroker.kafka.scram import MECHANISMS
from minibroker.tools.kraft.levels import LEVELS
from minibroker.tools.kraft.log_directory import (
    SnapshotId,
    write_metadata_directory,
)
from minibroker.tools.kraft.log_reading import read_metadata_directory
from minibroker.tools.kraft.metadata import ConfigEntity, ConfigKind, Metadata
from minibroker.tools.kraft.records import RegisteredBroker, records_of
from minibroker.tools.kraft.stopped import (
    replica_directories,
    without_leaders,
)
from tests.support import java
from tests.support.kraft_answers import (
    answered_credentials,
    answered_metadata,
    answered_tokens,
    answered_topics,
    ask_until,
    connect,
    log_in,
    new_producer_id,
)
from tests.support.kraft_kafka import JARS, KraftKafka
from tests.support.kraft_metadata import (
    EPOCH,
    ITERATIONS,
    PASSWORD,
    PRODUCER_ID,
    full_metadata,
)
from tests.support.peers import SETTINGS_FILE, KafkaPeer
from tests.support.processes import free_port
from tests.unit.tools.kraft import admin_calls

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from minibroker.kafka.ids import TopicPartition
    from minibroker.tools.kraft.log_reading import StoredMetadata
    from tests.support.in_process import RawClient

pytestmark = pytest.mark.java

CLUSTER_ID = "vPeOCWypqUOSepEvx0cbog"
DIRECTORY_ID = bytes([1, *range(1, 16)])
"""Id of the first log directory."""
BROKER_EPOCH = 0
"""As hand-over writes it."""
OFFSET = 1000
NOW_MS = 1_795_225_152_000
WAIT_S = 60
RECORD_COUNT = 50
SMALL_METADATA = {
    "3.9": {
        "metadata.log.segment.min.bytes": "6000",
        "metadata.log.segment.bytes": "6000",
        "metadata.log.max.record.bytes.between.snapshots": "1500",
    },
    "4.4": {
        "internal.metadata.log.segment.bytes": "6000",
        "metadata.log.max.record.bytes.between.snapshots": "1500",
    },
}
"""Settings with which Kafka makes a snapshot and a segment every few topics."""
SECURED = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "SASL_PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS.values()),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
    "delegation.token.secret.key": "the secret",
    **{
        f"listener.name.sasl_plaintext.{name.lower()}.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
        for name in MECHANISMS.values()
    },
}


class Node:
    """One node of Kafka on directories that minibroker made."""

    def __init__(self, release: str, directory: Path) -> None:
        self.directory_ids = {directory / f"data-{n}": bytes([n, *range(1, 16)]) for n in (1, 2)}
        for path in self.directory_ids:
            path.mkdir(exist_ok=True)
        self.log_directory = directory / "data-1"
        self.sasl_port = free_port()
        self.kafka = KraftKafka(release, directory / "kafka", list(self.directory_ids))
        listeners = (
            f"PLAINTEXT://{self.kafka.address}",
            f"SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}",
        )
        controller = f"CONTROLLER://127.0.0.1:{self.kafka.controller_port}"
        self.kafka.settings |= {
            **SECURED,
            "listeners": ",".join([*listeners, controller]),
            "advertised.listeners": ",".join(listeners),
        }

    def write(self, metadata: Metadata, offset: int = OFFSET) -> None:
        """Make the directories those of a node that was stopped cleanly."""
        broker = RegisteredBroker(BROKER_EPOCH, b"i" * 16, tuple(self.directory_ids.values()))
        records = records_of(metadata, brokers={0: broker})
        snapshot = SnapshotId(offset, metadata.epoch)
        write_metadata_directory(REAL_FILES, str(self.log_directory), records, snapshot, NOW_MS)
        for path, directory_id in self.directory_ids.items():
            write_clean_marker(REAL_FILES, str(path), BROKER_EPOCH)
            properties = MetaProperties(0, CLUSTER_ID, topic_id_to_text(directory_id), 1)
            write_properties(REAL_FILES, str(path), properties, NOW_MS)

    def read(self) -> StoredMetadata:
        """Return the metadata in the directory."""
        return read_metadata_directory(REAL_FILES, str(self.log_directory))

    def replica_directories(self) -> dict[tuple[int, TopicPartition], bytes]:
        """Return where the logs are."""
        ids = {str(path): id_ for path, id_ in self.directory_ids.items()}
        return replica_directories(REAL_FILES, 0, ids)


@pytest.mark.parametrize(
    ("release", "is_killed"), [("3.9", False), ("4.0", True), ("4.4", False), ("4.4", True)]
)
def test_kafka_goes_on_with_everything_and_gives_its_changes_back(
    release: str, is_killed: bool, tmp_path: Path
) -> None:
    node = Node(release, tmp_path)
    metadata = full_metadata(release, DIRECTORY_ID)
    node.write(metadata)
    node.kafka.start()
    try:
        asyncio.run(check_answers(node, metadata))
        changed = asyncio.run(change_everything(node, metadata))
    finally:
        if is_killed:
            node.kafka.kill()
        else:
            node.kafka.stop()
    stored = node.read().metadata
    assert stored.epoch > EPOCH
    assert comparable(stored) == comparable(changed)
    for topic in stored.topics.values():
        for partition in topic.partitions:
            assert (partition.isr or partition.eligible) == (0,)
            assert partition.directories[0] in node.directory_ids.values()


def test_records_stay_when_another_kafka_takes_the_directories(tmp_path: Path) -> None:
    node = Node("3.9", tmp_path)
    metadata = full_metadata("3.9", DIRECTORY_ID)
    metadata.quotas.clear()
    node.write(without_leaders(metadata, {}))
    node.kafka.start()
    try:
        write_records(node, {"orders": 3, "prices": 1})
    finally:
        node.kafka.stop()
    stored = node.read()
    assert set(node.replica_directories().values()) == set(node.directory_ids.values())
    metadata = without_leaders(stored.metadata, node.replica_directories())
    metadata.features = dict(LEVELS["4.4"])
    node = Node("4.4", tmp_path)
    node.write(metadata, stored.end_offset)
    node.kafka.start()
    try:
        counts = read_counts(node, {"orders": 3, "prices": 1})
    finally:
        node.kafka.kill()
    assert counts == {"orders": [RECORD_COUNT] * 3, "prices": [RECORD_COUNT]}
    logs = [path.name for log_directory in node.directory_ids for path in log_directory.iterdir()]
    assert [name for name in logs if "-stray" in name] == []
    metadata = node.read().metadata
    for topic in metadata.topics.values():
        assert [partition.leader for partition in topic.partitions] == [0] * len(topic.partitions)


@pytest.mark.parametrize("release", ["3.9", "4.4"])
def test_snapshots_of_kafka_and_segments_behind_them_are_read(release: str, tmp_path: Path) -> None:
    node = Node(release, tmp_path)
    metadata = full_metadata(release, DIRECTORY_ID)
    metadata.quotas.clear()
    node.write(metadata)
    node.kafka.settings |= SMALL_METADATA[release]
    node.kafka.start()
    directory = node.log_directory / names.KRAFT_LOG
    try:
        topics = asyncio.run(create_topics(node))
        assert node.kafka.process is not None
        node.kafka.process.wait_until(
            lambda: len(list(directory.glob("*.checkpoint"))) > 2, WAIT_S, "Kafka's snapshot"
        )
    finally:
        node.kafka.kill()
    segments = sorted(path.name for path in directory.glob("*.log"))
    assert len(segments) > 1
    stored = node.read().metadata
    assert stored.topics.keys() == {*metadata.topics, *topics}
    # Kafka's cleaner comes after a minute: it deletes what lies in front of the newest snapshot.
    *older, newest = sorted(directory.glob("*.checkpoint"))
    for path in older:
        path.unlink()
    for name, next_name in itertools.pairwise(segments):
        if next_name[:20] <= newest.name[:20]:
            (directory / name).unlink()
    assert node.read().metadata == stored


@pytest.mark.parametrize("release", sorted(JARS))
def test_levels_are_those_of_a_new_cluster(release: str, tmp_path: Path) -> None:
    peer = KafkaPeer(release, tmp_path)
    peer.jars = JARS[release]
    peer.start()
    peer.stop()
    stored = read_metadata_directory(REAL_FILES, str(peer.log_dir))
    assert stored.metadata.features == LEVELS[release]
    assert stored.brokers.keys() == {0}


def test_a_quorum_whose_voters_may_change_is_read(tmp_path: Path) -> None:
    node = Node("4.4", tmp_path)
    node.kafka.settings["controller.quorum.voters"] = ""
    controller = f"127.0.0.1:{node.kafka.controller_port}"
    node.kafka.settings["controller.quorum.bootstrap.servers"] = controller
    node.kafka.prepare()
    path = str(node.kafka.directory / SETTINGS_FILE)
    words = ["format", "--standalone", "-t", CLUSTER_ID, "-c", path]
    java.run_java(node.kafka.jars, "kafka.tools.StorageTool", *words)
    node.kafka.start()
    try:
        topics = asyncio.run(create_topics(node))
    finally:
        node.kafka.kill()
    stored = node.read()
    assert stored.metadata.topics.keys() == set(topics)
    assert stored.metadata.features == LEVELS["4.4"]


def test_kafka_s_tool_and_ours_print_the_same(tmp_path: Path) -> None:
    node = Node("4.0", tmp_path)
    node.write(full_metadata("4.0", DIRECTORY_ID))
    node.kafka.start()
    node.kafka.stop()
    directory = node.log_directory / names.KRAFT_LOG
    files = [directory / SnapshotId(OFFSET, EPOCH).file_name, *directory.glob("*.log")]
    paths = ",".join(map(str, files))
    words = ["--cluster-metadata-decoder", "--files", paths]
    theirs = java.run_java(
        java.TOOLS_43, "org.apache.kafka.tools.DumpLogSegments", *words, with_errors=False
    )
    output = io.StringIO()
    assert run_words(["dump-log", *words], output, output) == 0
    lines = zip(output.getvalue().splitlines(), theirs.splitlines(), strict=True)
    # As Kafka 3.9's tool, ours shows no content of a leader's first record.
    assert [pair for pair in lines if pair[0] != pair[1] and "LEADER_CHANGE" not in pair[0]] == []
    assert "skipping" not in theirs


async def create_topics(node: Node) -> list[str]:
    """Create topics whose records fill several segments; return their names."""
    client = await connect(node.kafka.port)
    names = [f"topic-{number}" for number in range(8)]
    for name in names:
        await admin_calls.create_topic(client, name, 20)
    await client.close()
    return names


def write_records(node: Node, topics: Mapping[str, int]) -> None:
    """Write records into each partition. `topics`: name → partitions."""
    producer = Producer({"bootstrap.servers": node.kafka.address})
    errors: list[object] = []

    def collect(error: object, _message: object) -> None:
        errors.append(error)

    for topic, count in topics.items():
        for partition in range(count):
            for number in range(RECORD_COUNT):
                text = str(number).encode()
                producer.produce(topic, text, text, partition, on_delivery=collect)
    assert producer.flush(WAIT_S) == 0
    assert [error for error in errors if error is not None] == []


def read_counts(node: Node, topics: Mapping[str, int]) -> dict[str, list[int]]:
    """Return how many records each partition gives. `topics`: name → partitions."""
    consumer = Consumer(
        {"bootstrap.servers": node.kafka.address, "group.id": "g", "enable.partition.eof": True}
    )
    counts = {topic: [0] * count for topic, count in topics.items()}
    consumer.assign([Place(topic, n, 0) for topic, count in topics.items() for n in range(count)])
    ended = 0
    while ended < sum(topics.values()):
        message = consumer.poll(WAIT_S)
        assert message is not None
        error = message.error()
        if error is None:
            topic, partition = message.topic(), message.partition()
            assert topic is not None
            assert partition is not None
            counts[topic][partition] += 1
        else:
            assert error.code() == ConfluentError._PARTITION_EOF, error
            ended += 1
    consumer.close()
    return counts


async def check_answers(node: Node, metadata: Metadata) -> None:
    """Check that the cluster answers every value of the metadata."""
    client = await connect(node.kafka.port)
    await ask_until(
        answered_topics,
        client,
        lambda topics: all(p.leader >= 0 for topic in topics.values() for p in topic.partitions),
    )
    answered = await answered_metadata(client, metadata.configs)
    for name, topic in answered.topics.items():
        assert topic.id == metadata.topics[name].id
        for partition, old_partition in zip(
            topic.partitions, metadata.topics[name].partitions, strict=True
        ):
            assert (partition.replicas, partition.isr, partition.leader) == ((0,), (0,), 0)
            assert partition.leader_epoch > old_partition.leader_epoch
    assert answered.topics.keys() == metadata.topics.keys()
    assert answered.configs == metadata.configs
    assert answered.quotas == metadata.quotas
    assert answered.acls.keys() == metadata.acls.keys()
    assert answered.features == metadata.features
    assert await answered_credentials(client) == dict.fromkeys(metadata.credentials, ITERATIONS)
    assert await new_producer_id(client) == PRODUCER_ID
    await client.close()
    for mechanism in MECHANISMS.values():
        alice = await log_in(node.sasl_port, mechanism, "alice", PASSWORD)
        assert await answered_tokens(alice) == metadata.tokens
        await alice.close()


async def change_everything(node: Node, metadata: Metadata) -> Metadata:
    """Change something of every kind through Kafka; return the metadata as they have to be now."""
    changed = deepcopy(metadata)
    client = await connect(node.kafka.port)
    await admin_calls.delete_topic(client, "orders")
    del changed.configs[ConfigEntity(ConfigKind.TOPIC, "orders")]
    topic_id = await admin_calls.create_topic(client, "orders", 2, retention_ms="5000")
    changed.configs[ConfigEntity(ConfigKind.TOPIC, "orders")] = {"retention.ms": "5000"}
    await admin_calls.grow(client, "prices", 3)
    changed.topics = await ask_until(
        answered_topics,
        client,
        lambda topics: (
            len(topics["prices"].partitions) == 3
            and "orders" in topics
            and topics["orders"].id == topic_id
        ),
    )
    assert topic_id != metadata.topics["orders"].id
    await admin_calls.set_configs(client, ConfigKind.TOPIC, "prices", segment_bytes="1048576")
    changed.configs[ConfigEntity(ConfigKind.TOPIC, "prices")] = {"segment.bytes": "1048576"}
    await admin_calls.set_quotas(client, {"user": "zoë", "client-id": None}, producer_byte_rate=9)
    changed.quotas[("client-id", None), ("user", "zoë")] = {"producer_byte_rate": 9.0}
    await change_security(client, changed)
    await client.close()
    alice = await log_in(node.sasl_port, "SCRAM-SHA-256", "alice", PASSWORD)
    await admin_calls.create_token(alice, "dave")
    changed.tokens = await ask_until(answered_tokens, alice, lambda tokens: len(tokens) == 2)
    await alice.close()
    changed.next_producer_id = PRODUCER_ID + 1000
    return changed


async def change_security(client: RawClient, changed: Metadata) -> None:
    """Add and remove an ACL, add a credential."""
    added = Acl(
        Pattern(ResourceType.TOPIC, "prices", PatternType.LITERAL),
        Entry("User:alice", "*", Operation.READ, Permission.ALLOW),
    )
    await admin_calls.create_acl(
        client, resource_type=2, resource_name="prices", resource_pattern_type=3
    )
    removal = DeleteAclsFilter(
        resource_type_filter=3,
        resource_name_filter="r",
        pattern_type_filter=4,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    answer = await client.call(DeleteAclsRequest(filters=[removal]), 3)
    assert len(answer.filter_results[0].matching_acls) == 1
    old_acl = next(acl for acl in changed.acls if acl.pattern.resource_type is ResourceType.TOPIC)
    changed.acls = {old_acl: changed.acls[old_acl], added: bytes(16)}
    await admin_calls.set_credential(client, "bob", 1)
    changed.credentials["bob", 1] = changed.credentials["alice", 1]


def comparable(metadata: Metadata) -> dict[str, object]:
    """Return everything but epochs, states of partitions and keys that Kafka makes."""
    return {
        "topics": {
            name: (topic.id, [partition.replicas for partition in topic.partitions])
            for name, topic in metadata.topics.items()
        },
        "configs": metadata.configs,
        "quotas": metadata.quotas,
        "credentials": metadata.credentials.keys(),
        "acls": metadata.acls.keys(),
        "tokens": metadata.tokens,
        "features": metadata.features,
        "next_producer_id": metadata.next_producer_id,
    }
