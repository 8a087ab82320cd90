"""Metadata written into a tree: a broker serves them, and only what differs is written."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.app import CLUSTER_FILE, TREE_FILE, Broker
from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    PartitionState,
    decode_config,
    decode_features,
    decode_state,
    encode_config,
    encode_reassignment,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import ensure_node
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.members import configs_of
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.broker.local_cluster import LocalCluster
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.tokens import Token
from minibroker.clock import SystemClock
from minibroker.kafka.ids import TopicId, TopicPartition
from minibroker.kafka.protocol.messages import (
    api_versions,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_delegation_token,
)
from minibroker.kafka.protocol.messages import (
    metadata as metadata_messages,
)
from minibroker.kafka.scram import ScramCredential, credential, credential_of, salted_password
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.metadata import (
    NO_ACL_ID,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree import read_metadata, write_metadata
from tests.support.in_process import InProcessBroker
from tests.support.kraft_answers import new_producer_id
from tests.support.waiting import eventually
from tests.unit.tools.kraft import admin_calls as admin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient

CONFIG = BrokerConfig({})
ID, OTHER_ID = TopicId(bytes(range(16))), TopicId(bytes(range(1, 17)))
PARTITION = PartitionValue(replicas=(0,), isr=(0,), leader=0, leader_epoch=4)
TOPIC = TopicValue(ID, (PARTITION,))
BOB_MAY_WRITE = Entry("User:bob", "*", Operation.WRITE, Permission.ALLOW)
KEY = ScramCredential(b"salt", b"stored", b"server", 4096)
API_VERSIONS = api_versions.ApiVersionsRequest(
    client_software_name="test", client_software_version="1"
)
ANY = 1
OWN_SOURCES = {admin.TOPIC: 1, admin.BROKER: 2, admin.CLIENT_METRICS: 7, admin.GROUP: 8}
"""Kind of resource → source of its own values in DescribeConfigs."""
DEFAULT_BROKER_SOURCE = 3


def literal(name: str, kind: ResourceType = ResourceType.GROUP) -> Pattern:
    return Pattern(kind, name, PatternType.LITERAL)


# A broker serves what was written.


def changed(metadata: Metadata) -> Metadata:
    """Return other metadata: of each kind something is new, is another, and is not there."""
    orders = metadata.topics["orders"]
    user_pattern = literal("team/a")
    topic_pattern = literal("orders", ResourceType.TOPIC)
    (token,) = metadata.tokens.values()
    salted_bytes = salted_password(1, "secret of bob", b"salt of bob", 4096)
    bob = credential_of(credential(1, b"salt of bob", salted_bytes, 4096))
    assert bob is not None
    (old_acl,) = [acl for acl in metadata.acls if acl.pattern == topic_pattern]
    configs = dict(metadata.configs)
    del configs[ConfigEntity(ConfigKind.BROKER, "0")]
    quotas = dict(metadata.quotas)
    del quotas[("client-id", "c%"),]
    return Metadata(
        topics={
            "orders": orders._replace(partitions=(*orders.partitions, PARTITION)),
            "again": TopicValue(OTHER_ID, (PARTITION,) * 2),
            "new": TopicValue(ID, (PARTITION,)),
        },
        configs={
            **configs,
            ConfigEntity(ConfigKind.TOPIC, "orders"): {"retention.ms": "77"},
            ConfigEntity(ConfigKind.TOPIC, "new"): {"segment.bytes": "3145728"},
            ConfigEntity(ConfigKind.BROKER, ""): {"message.max.bytes": "3000000"},
        },
        quotas={
            **quotas,
            (("user", admin.ODD),): {"consumer_byte_rate": 3.0},
            (("client-id", "new"),): {"producer_byte_rate": 4.0},
        },
        credentials={**metadata.credentials, ("bob", 1): bob},
        acls={
            old_acl: NO_ACL_ID,
            Acl(topic_pattern, BOB_MAY_WRITE): bytes(15) + b"1",
            Acl(user_pattern, BOB_MAY_WRITE): bytes(15) + b"2",
        },
        tokens={
            token.id: token._replace(expires_ms=token.expires_ms - 1000),
            "new-token": token._replace(id="new-token", owner="User:bob"),
        },
        features={"group.version": 1, "metadata.version": 33, "share.version": 1},
        next_producer_id=7777,
        epoch=metadata.epoch + 41,
    )


async def test_a_broker_serves_metadata_that_were_written(tmp_path: Path) -> None:
    first_contents, *_ = await admin.fill(tmp_path)
    config = BrokerConfig(admin.SETTINGS)
    metadata = changed(first_contents)
    tree = EmbeddedTree(tmp_path / "data" / TREE_FILE, SystemClock())
    await tree.open()
    assert await write_metadata(tree, metadata, config)
    await tree.close()
    async with InProcessBroker(tmp_path, admin.SETTINGS) as running:
        async with await admin.log_in(running, "bob", "secret of bob"):
            pass
        async with await admin.log_in(running) as root:
            await check_topics_and_configs(root)
            await check_users(root)
            assert await new_producer_id(root) == 7777
            answer = await root.call(API_VERSIONS, 3)
            levels = {each.name: each.max_version_level for each in answer.finalized_features}
            assert levels == {"group.version": 1, "metadata.version": 33}
        assert running.broker.cluster.image.controller_epoch == metadata.epoch + 1


async def check_topics_and_configs(root: RawClient) -> None:
    answer = await root.call(metadata_messages.MetadataRequest(topics=None), 12)
    topics = {topic.name: topic for topic in answer.topics}
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {
        "orders": 4,
        "again": 2,
        "new": 1,
    }
    assert (topics["again"].topic_id, topics["new"].topic_id) == (OTHER_ID, ID)
    assert {p.leader_id for topic in answer.topics for p in topic.partitions} == {0}
    resources = [(admin.TOPIC, "orders"), (admin.TOPIC, "new"), (admin.BROKER, "")]
    resources += [(admin.BROKER, "0"), (admin.GROUP, admin.ODD), (admin.CLIENT_METRICS, "m")]
    assert [await own_settings(root, kind, name) for kind, name in resources] == [
        {"retention.ms": "77"},
        {"segment.bytes": "3145728"},
        {"message.max.bytes": "3000000"},
        {},
        {"consumer.session.timeout.ms": "50000"},
        {"interval.ms": "1000"},
    ]


async def own_settings(root: RawClient, kind: int, name: str) -> dict[str, str]:
    """Return the settings that a resource has of its own."""
    resource = describe_configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = describe_configs.DescribeConfigsRequest(resources=[resource])
    (result,) = (await root.call(request, 4)).results
    source = OWN_SOURCES[kind] if name else DEFAULT_BROKER_SOURCE
    return {each.name: each.value for each in result.configs if each.config_source == source}


async def check_users(root: RawClient) -> None:
    quotas = describe_client_quotas.DescribeClientQuotasRequest(components=[])
    answer = await root.call(quotas, 1)
    served_quotas = {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }
    assert served_quotas == {
        (("user", admin.ODD),): {"consumer_byte_rate": 3.0},
        (("user", None),): {"request_percentage": 0.5},
        (("client-id", "new"),): {"producer_byte_rate": 4.0},
        (("client-id", None),): {"controller_mutation_rate": 1.5},
        (("client-id", admin.ODD), ("user", "u")): {"producer_byte_rate": 1.0},
        (("client-id", None), ("user", None)): {"producer_byte_rate": 2.0},
        (("ip", "127.0.0.1"),): {"connection_creation_rate": 7.0},
        (("ip", None),): {"connection_creation_rate": 8.0},
    }
    request = describe_acls.DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answer = await root.call(request, 3)
    assert {
        (each.resource_type, each.resource_name, each.pattern_type): {
            (acl.principal, acl.operation) for acl in each.acls
        }
        for each in answer.resources
    } == {
        (2, "orders", 3): {("User:alice", 3), ("User:bob", 4)},
        (3, "team/a", 3): {("User:bob", 4)},
    }
    question = describe_delegation_token.DescribeDelegationTokenRequest(owners=None)
    answer = await root.call(question, 3)
    assert {
        (each.principal_name, each.max_timestamp - each.expiry_timestamp > 0)
        for each in answer.tokens
    } == {("root", True), ("bob", True)}


def cluster_of_two(directory: Path) -> tuple[LocalCluster, Broker]:
    """Return brokers 0 and 1 of one process, not started yet, and the first of them."""
    config = BrokerConfig(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), "broker.id": "0"}
    )
    cluster = LocalCluster(directory, SystemClock())
    brokers = [Broker(member, tree=cluster.tree.session()) for member in configs_of(config, 2)]
    cluster.members.extend(brokers)
    return cluster, brokers[0]


async def test_brokers_of_one_process_go_on_with_a_move_that_was_written(tmp_path: Path) -> None:
    cluster, _ = cluster_of_two(tmp_path)
    await cluster.start([TopicToCreate("t", 1, {}, 1)])
    await cluster.stop()
    tree = SharedTree(tmp_path / CLUSTER_FILE, SystemClock()).session()
    await tree.open()
    metadata = await read_metadata(tree, CONFIG)
    (partition,) = metadata.topics["t"].partitions
    moved = partition._replace(replicas=(1, 0), adding=(1,), removing=(0,))
    metadata.topics["t"] = metadata.topics["t"]._replace(partitions=(moved,))
    metadata.topics["new"] = TopicValue(ID, (PARTITION._replace(replicas=(0, 1), isr=(0, 1)),))
    await write_metadata(tree, metadata, CONFIG)
    await tree.close()
    cluster, broker = cluster_of_two(tmp_path)
    await cluster.start()
    topics = broker.cluster.image.topics
    await eventually(lambda: topics["t"].partitions[0].replicas == [1])
    assert topics["t"].partitions[0].leader == 1
    assert sorted(topics["new"].partitions[0].isr) == [0, 1]
    await cluster.stop()


# Only what differs is written.


async def test_metadata_that_were_read_change_nothing(tmp_path: Path) -> None:
    await admin.fill(tmp_path)
    config = BrokerConfig(admin.SETTINGS)
    tree = EmbeddedTree(tmp_path / "data" / TREE_FILE, SystemClock())
    await tree.open()
    first_contents = await admin.contents(tree)
    assert await write_metadata(tree, await read_metadata(tree, config), config) == 0
    assert await admin.contents(tree) == first_contents
    await tree.close()


async def test_a_change_touches_its_node_only(tree: EmbeddedTree) -> None:
    await write_metadata(tree, Metadata(topics={"t": TopicValue(ID, (PARTITION,) * 3)}), CONFIG)
    first_contents = await admin.contents(tree)
    states = (PARTITION, PARTITION._replace(leader_epoch=5, isr=(), is_recovering=True), PARTITION)
    metadata = Metadata(topics={"t": TopicValue(ID, states)}, features={"x": 3}, epoch=9)
    await write_metadata(tree, metadata, CONFIG)
    after = await admin.contents(tree)
    assert {path for path, node in after.items() if node != first_contents.get(path)} == {
        paths.partition_state("t", 1),
        paths.FEATURE,
        paths.CONTROLLER_EPOCH,
    }
    data, version = after[paths.partition_state("t", 1)]
    assert version == 1
    assert decode_state("", data) == PartitionState(0, 5, [], 9, 1)
    assert after[paths.CONTROLLER_EPOCH][0] == b"9"


async def test_several_brokers_in_one_process_have_such_a_tree_too(tmp_path: Path) -> None:
    tree = SharedTree(tmp_path / "cluster.db", SystemClock()).session()
    await tree.open()
    partition = PartitionValue((1, 0), (0,), 0, 3, adding=(1,), removing=(0,))
    metadata = Metadata(
        topics={"t": TopicValue(ID, (partition,))}, features={"metadata.version": 20}, epoch=1
    )
    await write_metadata(tree, metadata, CONFIG)
    assert await read_metadata(tree, CONFIG) == metadata
    await tree.close()


async def test_a_topic_made_anew_begins_anew_and_a_deleted_one_is_gone(tree: EmbeddedTree) -> None:
    await ensure_node(tree, paths.consumer_offset("g", "t", 0), b"5")
    settings = {ConfigEntity(ConfigKind.TOPIC, name): {"retention.ms": "1"} for name in ("t", "u")}
    await write_metadata(
        tree, Metadata(topics={"t": TOPIC, "u": TOPIC}, configs=settings, epoch=1), CONFIG
    )
    topic = TopicValue(ID, (PARTITION._replace(leader_epoch=5),))
    await write_metadata(tree, Metadata(topics={"t": topic, "u": topic}, epoch=1), CONFIG)
    await write_metadata(tree, Metadata(topics={"t": TOPIC._replace(id=OTHER_ID)}), CONFIG)
    nodes = await admin.contents(tree)
    assert nodes[paths.topic("t")] == (encode_topic(OTHER_ID, [[0]]), 0)
    state = encode_state(PartitionState(0, 4, [0], 1))
    assert nodes[paths.partition_state("t", 0)] == (state, 0)
    assert [path for path in nodes if "/u" in path] == []
    assert nodes[paths.config("topics", "t")] == (encode_config({}), 1)
    assert nodes[paths.consumer_offset("g", "t", 0)] == (b"5", 0)


async def test_fewer_partitions_and_no_id_before(tree: EmbeddedTree) -> None:
    await ensure_node(tree, paths.topic("t"), encode_topic(None, [[0], [0]]))
    for index in (0, 1):
        state = encode_state(PartitionState(0, 4, [0], 1))
        await ensure_node(tree, paths.partition_state("t", index), state)
    await write_metadata(tree, Metadata(topics={"t": TOPIC}), CONFIG)
    nodes = await admin.contents(tree)
    assert nodes[paths.topic("t")] == (encode_topic(ID, [[0]]), 1)
    assert nodes[paths.partition_state("t", 0)][1] == 0
    assert paths.partition("t", 1) not in nodes


async def test_the_mark_of_a_topic_stays_until_there_is_another_topic(tree: EmbeddedTree) -> None:
    await write_metadata(tree, Metadata(topics={"t": TOPIC}), CONFIG)
    await ensure_node(tree, paths.delete_topic("t"))
    moves = encode_reassignment({TopicPartition("t", 0): [1]})
    await ensure_node(tree, paths.REASSIGN_PARTITIONS, moves)
    assert (await read_metadata(tree, CONFIG)).topics == {}
    await write_metadata(tree, Metadata(), CONFIG)
    assert {paths.delete_topic("t"), paths.partition_state("t", 0)} <= set(
        await admin.contents(tree)
    )
    await write_metadata(tree, Metadata(topics={"t": TOPIC}), CONFIG)
    nodes = await admin.contents(tree)
    assert paths.delete_topic("t") not in nodes
    assert paths.REASSIGN_PARTITIONS not in nodes
    assert (await read_metadata(tree, CONFIG)).topics == {"t": TOPIC}


async def test_nodes_of_users_go_with_their_last_value(tree: EmbeddedTree) -> None:
    both = (("client-id", "c"), ("user", "u"))
    user = paths.config("users", "u")
    client = paths.config("users", "u/clients/c")
    await ensure_node(tree, user, encode_config({"foreign": "1"}))
    await ensure_node(
        tree, paths.config("users", "<default>"), encode_config({"SCRAM-SHA-256": ""})
    )
    quotas = {"producer_byte_rate": 1.0}
    metadata = Metadata(
        quotas={(("user", "u"),): quotas, both: quotas}, credentials={("u", 1): KEY}
    )
    await write_metadata(tree, metadata, CONFIG)
    read_back = await read_metadata(tree, CONFIG)
    assert (read_back.quotas, read_back.credentials) == (metadata.quotas, metadata.credentials)
    await write_metadata(tree, Metadata(quotas={(("user", "u"),): quotas}), CONFIG)
    nodes = await admin.contents(tree)
    assert paths.config("users", "u/clients") not in nodes
    assert decode_config("", nodes[user][0]) == {"foreign": "1", "producer_byte_rate": "1"}
    await write_metadata(tree, Metadata(quotas={both: quotas}), CONFIG)
    nodes = await admin.contents(tree)
    assert decode_config("", nodes[user][0]) == {"foreign": "1"}
    assert client in nodes
    await tree.set(user, b"")
    await write_metadata(tree, Metadata(), CONFIG)
    nodes = await admin.contents(tree)
    assert user not in nodes
    assert nodes[paths.config("users", "<default>")][1] == 0


async def test_nodes_of_users_and_of_their_clients_go_together(tree: EmbeddedTree) -> None:
    quotas = {"producer_byte_rate": 1.0}
    both = (("client-id", "c"), ("user", "u"))
    metadata = Metadata(quotas={(("user", "u"),): quotas, both: quotas})
    await write_metadata(tree, metadata, CONFIG)
    await write_metadata(tree, Metadata(), CONFIG)
    assert await tree.children(f"{paths.CONFIG}/users") == []


async def test_a_value_that_says_the_same_keeps_its_text(tree: EmbeddedTree) -> None:
    text = f"iterations=4096,{credential(1, b'salt', b'salted', 4096)}"
    stored = credential_of(text)
    assert stored is not None
    config = {"producer_byte_rate": "1e3", "SCRAM-SHA-256": text}
    await ensure_node(tree, paths.config("users", "u"), encode_config(config))
    quotas = {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2.0}
    metadata = Metadata(quotas={(("user", "u"),): quotas}, credentials={("u", 1): stored})
    await write_metadata(tree, metadata, CONFIG)
    data, _ = await tree.get(paths.config("users", "u"))
    assert decode_config("", data) == {**config, "consumer_byte_rate": "2"}


async def test_acls_of_names_with_slashes_come_and_go_in_any_order(tree: EmbeddedTree) -> None:
    outer, inner = Acl(literal("a"), BOB_MAY_WRITE), Acl(literal("a/b"), BOB_MAY_WRITE)
    for acls in ([inner], [outer], [inner], [inner, outer], [inner], [outer], [inner, outer], []):
        metadata = Metadata(acls=dict.fromkeys(acls, NO_ACL_ID))
        await write_metadata(tree, metadata, CONFIG)
        assert (await read_metadata(tree, CONFIG)).acls == metadata.acls
    assert await tree.children("/kafka-acl/Group") == []


async def test_passwords_are_encoded_where_there_is_a_secret(tree: EmbeddedTree) -> None:
    entity = ConfigEntity(ConfigKind.BROKER, "")
    node = paths.config("brokers", "<default>")
    settings = {"ssl.key.password": "one", "ssl.keystore.password": "two"}
    metadata = Metadata(configs={entity: settings})
    await write_metadata(tree, metadata, CONFIG)
    assert (await tree.get(node))[0] == encode_config(settings)
    config = BrokerConfig({"password.encoder.secret": "s"})
    assert await write_metadata(tree, await read_metadata(tree, config), config) == 0
    metadata.configs[entity] = {"ssl.key.password": "one", "ssl.keystore.password": "three"}
    await write_metadata(tree, metadata, config)
    stored = decode_config("", (await tree.get(node))[0])
    assert stored["ssl.key.password"] == "one"
    assert stored["ssl.keystore.password"].startswith("initializationVector")
    assert (await read_metadata(tree, config)).configs == metadata.configs
    assert await write_metadata(tree, metadata, config) == 0
    await write_metadata(tree, Metadata(), config)
    assert (await tree.get(node))[0] == encode_config({})


async def test_settings_of_groups_go_with_their_node(tree: EmbeddedTree) -> None:
    entity = ConfigEntity(ConfigKind.GROUP, "g/1")
    await write_metadata(tree, Metadata(configs={entity: {"a": "1"}}), CONFIG)
    assert await tree.children("/config/groups") == ["g%2F1"]
    await write_metadata(tree, Metadata(), CONFIG)
    assert await tree.children("/config/groups") == []


@pytest.mark.parametrize(
    ("changes", "isr", "recovery"),
    [
        ({"isr": (2,), "eligible": (0,)}, [2], 0),
        ({"eligible": (1, 0), "last_eligible": (2,)}, [1, 0], 0),
        ({"last_eligible": (2,)}, [2], 1),
        ({"last_eligible": (2, 1)}, [], 0),
    ],
)
async def test_where_nobody_is_in_sync_an_eligible_leader_is(
    tree: EmbeddedTree, changes: dict[str, Any], isr: list[int], recovery: int
) -> None:
    values = {"replicas": (0, 1, 2), "isr": (), "leader": -1, "leader_epoch": 3, **changes}
    topic = TopicValue(ID, (PartitionValue(**values),))
    await write_metadata(tree, Metadata(topics={"t": topic}, epoch=7), CONFIG)
    data, _ = await tree.get(paths.partition_state("t", 0))
    assert decode_state("", data) == PartitionState(-1, 3, isr, 7, recovery)


async def test_a_broker_ends_the_deletion_of_a_topic_whose_logs_are_gone(tmp_path: Path) -> None:
    """A topic was being deleted when the broker stopped, and Kafka removed its logs meanwhile."""
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t", 2)
    tree = EmbeddedTree(tmp_path / "data" / TREE_FILE, SystemClock())
    await tree.open()
    await ensure_node(tree, paths.delete_topic("t"))
    await write_metadata(tree, await read_metadata(tree, CONFIG), CONFIG)
    await tree.close()
    for directory in (tmp_path / "data").glob("t-*"):
        shutil.rmtree(directory)
    async with InProcessBroker(tmp_path) as running:
        assert running.broker.cluster.image.topics == {}
        await running.create_topic("t", 1)


async def test_epochs_and_producer_ids_never_fall(tree: EmbeddedTree) -> None:
    await write_metadata(tree, Metadata(epoch=5, next_producer_id=1500), CONFIG)
    await write_metadata(tree, Metadata(epoch=4, next_producer_id=1499), CONFIG)
    metadata = await read_metadata(tree, CONFIG)
    assert (metadata.epoch, metadata.next_producer_id) == (5, 1500)


async def test_a_feature_out_of_force_is_written_down(tree: EmbeddedTree) -> None:
    levels = {"metadata.version": 25, "share.version": 1}
    await write_metadata(tree, Metadata(features=levels), CONFIG)
    assert (await read_metadata(tree, CONFIG)).features == levels
    zeros = ("eligible.leader.replicas.version", "group.version", "transaction.version")
    stored = decode_features("", (await tree.get(paths.FEATURE))[0])
    assert stored == {**dict.fromkeys(zeros, 0), **levels}


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (Metadata(topics={"a/b": TOPIC}), "topic 'a/b'"),
        (Metadata(configs={ConfigEntity(ConfigKind.GROUP, ".."): {"a": "1"}}), r"group '\.\.'"),
        (Metadata(quotas={(("user", "."),): {"producer_byte_rate": 1.0}}), "quotas of .*'user'"),
        (Metadata(quotas={(("user", "u"),): {"producer_byte_rate": 1.5}}), "must be a LONG"),
        (Metadata(quotas={(("user", "u"),): {"nonsense": 1.0}}), "nonsense"),
        (Metadata(quotas={(("galaxy", "u"),): {"producer_byte_rate": 1.0}}), "galaxy"),
        (Metadata(credentials={("u", 3): KEY}), "mechanism is 3"),
        (Metadata(credentials={("", 1): KEY}), "credential of user ''"),
        (Metadata(acls={Acl(literal("a/"), BOB_MAY_WRITE): NO_ACL_ID}), "ACL of .* a/"),
        (Metadata(acls={Acl(literal("a"), BOB_MAY_WRITE._replace(principal="b")): b""}), "b from"),
        (
            Metadata(acls={Acl(literal("a", ResourceType.UNKNOWN), BOB_MAY_WRITE): NO_ACL_ID}),
            "UNKNOWN a",
        ),
        (
            Metadata(tokens={"a/b": Token("a/b", "User:u", "User:u", (), 0, 1, 1)}),
            "delegation token 'a/b'",
        ),
    ],
)
async def test_metadata_that_the_tree_cannot_hold_change_nothing(
    tree: EmbeddedTree, metadata: Metadata, text: str
) -> None:
    first_contents = await admin.contents(tree)
    metadata.epoch = 99
    with pytest.raises(TransferError, match=text):
        await write_metadata(tree, metadata, CONFIG)
    assert await admin.contents(tree) == first_contents
