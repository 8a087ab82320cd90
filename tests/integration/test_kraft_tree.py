"""Apache Kafka 3.9 on a tree that metadata were written into, and its changes read back.

The tree is ZooKeeper's, since Kafka 3.9 reads no other one. An embedded tree has the same nodes.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.ids import ANONYMOUS, TopicId
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.scram import credential, credential_of
from minibroker.tools.kraft.metadata import (
    NO_ACL_ID,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree import read_metadata, write_metadata
from tests.support.in_process import RawClient
from tests.support.kraft_answers import new_producer_id
from tests.support.peers import KafkaPeer
from tests.unit.tools.kraft import admin_calls as admin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import ZooKeeper

WAIT_S = 180
pytestmark = [pytest.mark.java, pytest.mark.slow]
CONFIG = BrokerConfig({"minibroker.advertised.kafka.version": "3.9"})
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": ANONYMOUS,
}
ID, OLD_ID = TopicId(bytes(range(16))), TopicId(bytes(range(1, 17)))
PARTITION = PartitionValue(replicas=(0,), isr=(0,), leader=0, leader_epoch=6)
PREFIXED = Acl(
    Pattern(ResourceType.GROUP, "team-", PatternType.PREFIXED),
    Entry("User:bob", "10.0.0.1", Operation.ALL, Permission.DENY),
)
LITERAL = Acl(
    Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL),
    Entry("User:alice", "*", Operation.READ, Permission.ALLOW),
)
KEY = credential_of(credential(2, admin.SALT, admin.SALTED, 4096))
assert KEY is not None
WRITTEN = Metadata(
    topics={"orders": TopicValue(ID, (PARTITION,) * 2), "old": TopicValue(OLD_ID, (PARTITION,))},
    configs={
        ConfigEntity(ConfigKind.TOPIC, "orders"): {"retention.ms": "86400001"},
        ConfigEntity(ConfigKind.BROKER, ""): {"message.max.bytes": "2000000"},
    },
    quotas={
        (("user", admin.ODD),): {"producer_byte_rate": 1e7, "request_percentage": 0.5},
        (("client-id", None), ("user", "u")): {"consumer_byte_rate": 5.0},
    },
    credentials={(admin.ODD, 2): KEY},
    acls={PREFIXED: NO_ACL_ID},
    next_producer_id=5000,
    epoch=41,
)


async def topics_of(client: RawClient) -> dict[str, tuple[bytes, int]]:
    """Return name → id and number of partitions, once Kafka's controller has told the topics."""
    async with asyncio.timeout(WAIT_S):
        while not (answer := await client.call(MetadataRequest(topics=None), 12)).topics:
            continue
    return {topic.name: (topic.topic_id, len(topic.partitions)) for topic in answer.topics}


async def call_kafka(kafka: KafkaPeer) -> tuple[bytes, int]:
    """Look at what Kafka serves and change it; return the id of its new topic, and a producer id
    that it gave.
    """
    reader, writer = await asyncio.open_connection(kafka.host, kafka.port)
    async with RawClient(reader, writer, "test") as client:
        assert await topics_of(client) == {"orders": (ID, 2), "old": (OLD_ID, 1)}
        await admin.grow(client, "orders", 3)
        await admin.delete_topic(client, "old")
        new_id = await admin.create_topic(client, "new", 1, segment_bytes="2097152")
        await admin.set_configs(client, admin.BROKER, "0", log_cleaner_threads="2")
        await admin.set_quotas(client, {"user": admin.ODD}, producer_byte_rate=3)
        await admin.set_quotas(client, {"ip": None}, connection_creation_rate=8)
        await admin.set_credential(client, "bob", 1)
        await admin.create_acl(client, resource_type=2, resource_name="orders")
        return new_id, await new_producer_id(client)


async def test_kafka_serves_what_was_written_and_its_changes_are_read(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    connect = f"{zookeeper.connect}/kraft-tree"
    tree = ZooKeeperTree(connect, session_timeout_ms=10_000)
    await tree.open()
    await write_metadata(tree, WRITTEN, CONFIG)
    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect, settings=SETTINGS)
    await asyncio.to_thread(kafka.start)
    try:
        new_id, producer_id = await call_kafka(kafka)
    finally:
        await asyncio.to_thread(kafka.stop)
    metadata = await read_metadata(tree, CONFIG)
    await tree.close()
    bob = credential_of(credential(1, admin.SALT, admin.SALTED, 4096))
    assert bob is not None
    new_partition = PARTITION._replace(leader_epoch=0)
    assert producer_id == WRITTEN.next_producer_id
    assert metadata == replace(
        WRITTEN,
        topics={
            "orders": TopicValue(ID, (PARTITION, PARTITION, new_partition)),
            "new": TopicValue(TopicId(new_id), (new_partition,)),
        },
        configs={
            **WRITTEN.configs,
            ConfigEntity(ConfigKind.TOPIC, "new"): {"segment.bytes": "2097152"},
            ConfigEntity(ConfigKind.BROKER, "0"): {"log.cleaner.threads": "2"},
        },
        quotas={
            **WRITTEN.quotas,
            (("user", admin.ODD),): {"producer_byte_rate": 3.0, "request_percentage": 0.5},
            (("ip", None),): {"connection_creation_rate": 8.0},
        },
        credentials={**WRITTEN.credentials, ("bob", 1): bob},
        acls={PREFIXED: NO_ACL_ID, LITERAL: NO_ACL_ID},
        next_producer_id=producer_id + 1000,
        epoch=WRITTEN.epoch + 1,
    )
