"""Metadata of a tree: one that a broker wrote at the word of admin clients, and odd nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.app import TREE_FILE
from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    PartitionState,
    encode_config,
    encode_reassignment,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.tree import ensure_node
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.acls import (
    Acl,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from minibroker.broker.security.password_encoder import encoder_of
from minibroker.broker.security.tokens import Token
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import TopicId, TopicPartition
from minibroker.kafka.scram import credential, credential_of
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.metadata import (
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree import read_metadata
from minibroker.tools.kraft.tree_reading import NO_ACL_ID
from tests.support.in_process import InProcessBroker
from tests.unit.tools.kraft import admin_calls as admin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CONFIG = BrokerConfig({})
ID = TopicId(bytes(range(16)))
TOPIC = paths.topic("t")


class Filled(NamedTuple):
    """A tree that a broker left, and ids that the broker chose."""

    metadata: Metadata
    orders_id: bytes
    again_id: bytes
    token: Token
    producer_id: int


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncIterator[EmbeddedTree]:
    """An open tree, empty but for the parents of topics."""
    empty_tree = EmbeddedTree(tmp_path / "metadata.db", SystemClock())
    await empty_tree.open()
    await ensure_node(empty_tree, paths.TOPICS)
    yield empty_tree
    await empty_tree.close()


async def fill(directory: Path) -> Filled:
    """Have a broker make everything and stop; return what its tree says."""
    async with (
        InProcessBroker(directory, admin.SETTINGS) as running,
        await admin.log_in(running) as root,
    ):
        orders_id = await admin.create_topic(root, "orders", 2, segment_bytes="2097152")
        await admin.grow(root, "orders", 3)
        await admin.create_topic(root, "deleted", 1, segment_bytes="1048577")
        await admin.delete_topic(root, "deleted")
        await admin.create_topic(root, "again", 2)
        await admin.delete_topic(root, "again")
        again_id = await admin.create_topic(root, "again", 1)
        await admin.set_configs(root, admin.BROKER, "0", log_cleaner_threads="2")
        await admin.set_configs(root, admin.BROKER, "", message_max_bytes="2000000")
        await admin.set_configs(root, admin.GROUP, admin.ODD, consumer_session_timeout_ms="50000")
        await admin.set_configs(root, admin.CLIENT_METRICS, "m", interval_ms="1000")
        await admin.set_quotas(root, {"user": admin.ODD}, producer_byte_rate=1e7)
        await admin.set_quotas(root, {"user": None}, request_percentage=0.5)
        await admin.set_quotas(root, {"client-id": "c%"}, consumer_byte_rate=5)
        await admin.set_quotas(root, {"client-id": None}, controller_mutation_rate=1.5)
        await admin.set_quotas(root, {"user": "u", "client-id": admin.ODD}, producer_byte_rate=1)
        await admin.set_quotas(root, {"user": None, "client-id": None}, producer_byte_rate=2)
        await admin.set_quotas(root, {"ip": "127.0.0.1"}, connection_creation_rate=7)
        await admin.set_quotas(root, {"ip": None}, connection_creation_rate=8)
        await admin.set_credential(root, admin.ODD, 2)
        await admin.create_acl(root, resource_type=2, resource_name="orders")
        await admin.create_acl(
            root,
            resource_type=3,
            resource_name="team-",
            resource_pattern_type=4,
            operation=2,
            permission_type=2,
            host="10.0.0.1",
        )
        answer = await admin.create_token(root, admin.ODD)
        await admin.set_feature(root, "transaction.version", 1)
        producer_id = await admin.take_producer_id(root)
    tree = EmbeddedTree(directory / "data" / TREE_FILE, SystemClock())
    await tree.open()
    metadata = await read_metadata(tree, BrokerConfig(admin.SETTINGS))
    await tree.close()
    token = Token(
        answer.token_id,
        "User:root",
        "User:root",
        (f"User:{admin.ODD}",),
        answer.issue_timestamp_ms,
        answer.max_timestamp_ms,
        answer.expiry_timestamp_ms,
    )
    return Filled(metadata, orders_id, again_id, token, producer_id)


async def test_everything_that_a_broker_wrote(tmp_path: Path) -> None:
    metadata, orders_id, again_id, token, producer_id = await fill(tmp_path)
    partition = PartitionValue(replicas=(0,), isr=(0,), leader=0, leader_epoch=0)
    assert metadata.topics == {
        "orders": TopicValue(TopicId(orders_id), (partition,) * 3),
        "again": TopicValue(TopicId(again_id), (partition,)),
    }
    assert metadata.configs == {
        ConfigEntity(ConfigKind.TOPIC, "orders"): {"segment.bytes": "2097152"},
        ConfigEntity(ConfigKind.BROKER, "0"): {"log.cleaner.threads": "2"},
        ConfigEntity(ConfigKind.BROKER, ""): {"message.max.bytes": "2000000"},
        ConfigEntity(ConfigKind.GROUP, admin.ODD): {"consumer.session.timeout.ms": "50000"},
        ConfigEntity(ConfigKind.CLIENT_METRICS, "m"): {"interval.ms": "1000"},
    }
    assert metadata.quotas == {
        (("user", admin.ODD),): {"producer_byte_rate": 1e7},
        (("user", None),): {"request_percentage": 0.5},
        (("client-id", "c%"),): {"consumer_byte_rate": 5.0},
        (("client-id", None),): {"controller_mutation_rate": 1.5},
        (("client-id", admin.ODD), ("user", "u")): {"producer_byte_rate": 1.0},
        (("client-id", None), ("user", None)): {"producer_byte_rate": 2.0},
        (("ip", "127.0.0.1"),): {"connection_creation_rate": 7.0},
        (("ip", None),): {"connection_creation_rate": 8.0},
    }
    assert metadata.credentials.keys() == {("root", 1), ("root", 2), (admin.ODD, 2)}
    assert metadata.credentials[admin.ODD, 2] == credential_of(
        credential(2, admin.SALT, admin.SALTED, 4096)
    )
    literal = Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL)
    prefixed = Pattern(ResourceType.GROUP, "team-", PatternType.PREFIXED)
    assert metadata.acls == {
        Acl(literal, Entry("User:alice", "*", Operation.READ, Permission.ALLOW)): NO_ACL_ID,
        Acl(prefixed, Entry("User:alice", "10.0.0.1", Operation.ALL, Permission.DENY)): NO_ACL_ID,
    }
    assert metadata.tokens == {token.id: token}
    assert metadata.features == {
        "group.version": 1,
        "metadata.version": 33,
        "transaction.version": 1,
    }
    assert (producer_id, metadata.next_producer_id, metadata.epoch) == (0, 1000, 1)


async def test_an_empty_tree_has_what_is_in_force_without_it(tree: EmbeddedTree) -> None:
    levels = {"group.version": 1, "metadata.version": 33, "transaction.version": 2}
    assert await read_metadata(tree, CONFIG) == Metadata(features=levels)
    config = BrokerConfig({"minibroker.advertised.kafka.version": "3.9"})
    assert await read_metadata(tree, config) == Metadata()


async def test_a_topic_that_is_marked_for_deletion_is_left_out(tree: EmbeddedTree) -> None:
    await tree.create(TOPIC, encode_topic(ID, [[0]]))
    await ensure_node(tree, paths.config("topics", "t"), encode_config({"segment.bytes": "1"}))
    metadata = await read_metadata(tree, CONFIG)
    assert (len(metadata.topics), len(metadata.configs)) == (1, 1)
    await ensure_node(tree, paths.delete_topic("t"))
    metadata = await read_metadata(tree, CONFIG)
    assert (metadata.topics, metadata.configs) == ({}, {})


async def test_a_topic_without_an_id_gets_that_of_its_log_or_a_new_one(tree: EmbeddedTree) -> None:
    await tree.create(TOPIC, encode_topic(None, [[0]]))
    assert (await read_metadata(tree, CONFIG, {"t": ID})).topics["t"].id == ID
    assert (await read_metadata(tree, CONFIG)).topics["t"].id not in {ID, bytes(16)}


async def test_partitions_with_a_move_a_state_and_without_one(tree: EmbeddedTree) -> None:
    await tree.create(TOPIC, encode_topic(ID, [[2, 1], [1, 0]], {1: [1]}, {1: [0]}))
    path = paths.partition_state("t", 1)
    await tree.create(path, b"{}", make_parents=True)
    await tree.set(path, encode_state(PartitionState(-2, 7, [0], 3, 1)))
    (topic,) = (await read_metadata(tree, CONFIG)).topics.values()
    assert topic.partitions == (
        PartitionValue(replicas=(2, 1), isr=(2, 1), leader=2, leader_epoch=0),
        PartitionValue(
            replicas=(1, 0),
            isr=(0,),
            leader=-1,
            leader_epoch=7,
            adding=(1,),
            removing=(0,),
            is_recovering=True,
            partition_epoch=1,
        ),
    )


async def test_moves_that_an_old_tool_asked_for_are_under_way(tree: EmbeddedTree) -> None:
    await tree.create(TOPIC, encode_topic(ID, [[0], [0]]))
    moves = {TopicPartition("t", 1): [1], TopicPartition("t", 0): [1, 1]}
    await ensure_node(tree, paths.REASSIGN_PARTITIONS, encode_reassignment(moves))
    first, second = (await read_metadata(tree, CONFIG)).topics["t"].partitions
    assert (first.replicas, first.adding) == ((0,), ())
    assert (second.replicas, second.adding, second.removing) == ((1, 0), (1,), (0,))


async def test_passwords_are_opened_with_the_secret_or_the_old_one(tree: EmbeddedTree) -> None:
    plain = {"ssl.key.password": "plain"}
    await ensure_node(tree, paths.config("brokers", "1"), encode_config(plain))
    encoder = encoder_of(BrokerConfig({"password.encoder.secret": "one"}))
    assert encoder is not None
    settings = {"ssl.key.password": encoder.encode("ä"), "log.cleaner.threads": "2"}
    await ensure_node(tree, paths.config("brokers", "0"), encode_config(settings))
    for settings in (
        {"password.encoder.secret": "one"},
        {"password.encoder.secret": "two", "password.encoder.old.secret": "one"},
    ):
        metadata = await read_metadata(tree, BrokerConfig(settings))
        assert metadata.configs == {
            ConfigEntity(ConfigKind.BROKER, "1"): plain,
            ConfigEntity(ConfigKind.BROKER, "0"): {
                "ssl.key.password": "ä",
                "log.cleaner.threads": "2",
            },
        }
    for config in (CONFIG, BrokerConfig({"password.encoder.secret": "two"})):
        with pytest.raises(TransferError, match=r"ssl.key.password of /config/brokers/0"):
            await read_metadata(tree, config)


@pytest.mark.parametrize(
    ("path", "value", "error_type", "text"),
    [
        (TOPIC, b"nonsense", CoordinationError, TOPIC),
        (TOPIC, b'{"partitions":{"2000000000":[0]}}', TransferError, "2000000000"),
        (TOPIC, b'{"partitions":{"0":[]}}', TransferError, "no replicas of partition 0"),
        ("/config/users/a%ZZ", b"", TransferError, "a%ZZ"),
        (
            "/config/users/a",
            encode_config({"producer_byte_rate": "much"}),
            TransferError,
            "producer_byte_rate of /config/users/a .* 'much'",
        ),
        (
            "/config/ips/a",
            encode_config({"connection_creation_rate": "NaN"}),
            TransferError,
            "NaN",
        ),
        (
            "/config/users/a",
            encode_config({"SCRAM-SHA-512": "salt=%"}),
            TransferError,
            "/config/users/a .* SCRAM-SHA-512",
        ),
        ("/kafka-acl/Topic/t", b"{}", CoordinationError, "/kafka-acl/Topic/t"),
        ("/delegation_token/tokens/x", b"{}", CoordinationError, "tokens/x"),
        ("/latest_producer_id_block", b"{}", CoordinationError, "producer_id"),
        ("/controller_epoch", b"x", CoordinationError, "/controller_epoch"),
        ("/feature", b"x", CoordinationError, "/feature"),
    ],
)
async def test_a_node_that_cannot_be_read_is_named(
    tree: EmbeddedTree, path: str, value: bytes, error_type: type[Exception], text: str
) -> None:
    await ensure_node(tree, path, value)
    with pytest.raises(error_type, match=text):
        await read_metadata(tree, CONFIG)
