"""Metadata of a tree: one that a broker wrote at the word of admin clients, and odd nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    PRODUCER_ID_MAX,
    PartitionState,
    ProducerIdBlock,
    encode_config,
    encode_producer_id_block,
    encode_reassignment,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.tree import ensure_node
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.password_encoder import encoder_of
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from minibroker.kafka.scram import credential, credential_of
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.metadata import (
    NO_ACL_ID,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree import read_metadata
from tests.unit.tools.kraft import admin_calls as admin

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = BrokerConfig({})
ID = TopicId(bytes(range(16)))
TOPIC = paths.topic("t")


@pytest.fixture
async def tree(tree: EmbeddedTree) -> EmbeddedTree:
    """An open tree, empty but for the parents of topics."""
    await ensure_node(tree, paths.TOPICS)
    return tree


async def test_everything_that_a_broker_wrote(tmp_path: Path) -> None:
    metadata, orders_id, again_id, token, producer_id = await admin.fill(tmp_path)
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
    await tree.create(paths.topic("zero"), encode_topic(ZERO_TOPIC_ID, [[0]]))
    assert (await read_metadata(tree, CONFIG, {"t": ID})).topics["t"].id == ID
    topics = (await read_metadata(tree, CONFIG)).topics
    assert topics["t"].id != ID
    assert topics["zero"].id != ZERO_TOPIC_ID


async def test_topics_with_the_same_id_are_named(tree: EmbeddedTree) -> None:
    for name in ("t", "u"):
        await tree.create(paths.topic(name), encode_topic(ID, [[0]]))
    with pytest.raises(TransferError, match=r"'t' and 'u' .* the same id, AAECAwQF"):
        await read_metadata(tree, CONFIG)


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


async def test_after_the_last_block_no_producer_id_is_free(tree: EmbeddedTree) -> None:
    block = ProducerIdBlock(0, PRODUCER_ID_MAX - 999, PRODUCER_ID_MAX)
    await tree.create(paths.PRODUCER_ID_BLOCK, encode_producer_id_block(block))
    assert (await read_metadata(tree, CONFIG)).next_producer_id == PRODUCER_ID_MAX


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
        (TOPIC, b'{"partitions":{"0":[-1]}}', TransferError, r"partition t-0 .* \[-1\]"),
        (TOPIC, b'{"partitions":{"0":[4294967296]}}', TransferError, "to 2147483647"),
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
