"""Apache Kafka with KRaft goes on with metadata that minibroker wrote, and minibroker with Kafka's.

Each node of Kafka starts on a directory that nobody formatted.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.security.acls import (
    Acl,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import MetaProperties, write_properties
from minibroker.kafka.ids import topic_id_to_text
from minibroker.kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from minibroker.kafka.scram import MECHANISMS
from minibroker.tools.kraft.log_directory import (
    SnapshotId,
    write_clean_marker,
    write_metadata_directory,
)
from minibroker.tools.kraft.log_reading import read_metadata_directory
from minibroker.tools.kraft.metadata import ConfigEntity, ConfigKind, Metadata
from minibroker.tools.kraft.records import RegisteredBroker, records_of
from minibroker.tools.kraft.stopped import with_replicas_in_sync
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
from tests.support.kraft_kafka import KraftKafka
from tests.support.kraft_metadata import (
    EPOCH,
    ITERATIONS,
    PASSWORD,
    PRODUCER_ID,
    full_metadata,
)
from tests.support.processes import free_port
from tests.unit.tools.kraft import admin_calls

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient

pytestmark = pytest.mark.java

CLUSTER_ID = "vPeOCWypqUOSepEvx0cbog"
DIRECTORY_ID = bytes(range(16))
BROKER_EPOCH = 900
OFFSET = 1000
NOW_MS = 1_795_225_152_000
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
    """One node of Kafka on a directory that minibroker made."""

    def __init__(self, release: str, directory: Path) -> None:
        self.log_directory = directory / "data"
        self.log_directory.mkdir(exist_ok=True)
        self.sasl_port = free_port()
        self.kafka = KraftKafka(release, directory / "kafka", [self.log_directory])
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
        """Make the directory that of a node that was stopped cleanly."""
        path = str(self.log_directory)
        broker = RegisteredBroker(BROKER_EPOCH, b"i" * 16, (DIRECTORY_ID,))
        records = records_of(metadata, brokers={0: broker})
        snapshot = SnapshotId(offset, metadata.epoch)
        write_metadata_directory(REAL_FILES, path, records, snapshot, NOW_MS)
        write_clean_marker(REAL_FILES, path, BROKER_EPOCH)
        properties = MetaProperties(0, CLUSTER_ID, topic_id_to_text(DIRECTORY_ID), 1)
        write_properties(REAL_FILES, path, properties, NOW_MS)

    def read(self) -> Metadata:
        """Return the metadata in the directory."""
        return read_metadata_directory(REAL_FILES, str(self.log_directory)).metadata


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
    stored = node.read()
    assert stored.epoch > EPOCH
    assert comparable(stored) == comparable(changed)
    for topic in with_replicas_in_sync(stored).topics.values():
        for partition in topic.partitions:
            assert partition.isr == (0,)
            assert partition.directories == (DIRECTORY_ID,)


async def check_answers(node: Node, metadata: Metadata) -> None:
    """Check that the cluster answers every value of the metadata."""
    client = await connect(node.kafka.port)
    answered = await answered_metadata(client, metadata.configs)
    for name, topic in answered.topics.items():
        assert topic.id == metadata.topics[name].id
        for partition, before in zip(
            topic.partitions, metadata.topics[name].partitions, strict=True
        ):
            assert (partition.replicas, partition.isr, partition.leader) == ((0,), (0,), 0)
            assert partition.leader_epoch > before.leader_epoch
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
    kept = next(acl for acl in changed.acls if acl.pattern.resource_type is ResourceType.TOPIC)
    changed.acls = {kept: changed.acls[kept], added: bytes(16)}
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
