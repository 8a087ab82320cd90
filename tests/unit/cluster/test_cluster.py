"""The facade over both homes: topics, configs, restart; what listeners hear and the tree holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.clock import SystemClock
from minibroker.cluster import paths
from minibroker.cluster.cluster import Cluster
from minibroker.cluster.codecs import FEATURE_NODE
from minibroker.cluster.image import Endpoint
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from minibroker.cluster.image import TopicImage
    from minibroker.cluster.tree import Tree


class Recorder:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def on_topic_created(self, topic: TopicImage) -> None:
        self.events.append(("created", topic.name, len(topic.partitions)))

    def on_topic_deleted(self, topic: TopicImage) -> None:
        self.events.append(("deleted", topic.name))

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        self.events.append(("added", topic.name, old_count, len(topic.partitions)))

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        self.events.append(("leadership", topic.name, partition))

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        self.events.append(("config", entity_type, entity_name))

    def take(self) -> list[tuple[object, ...]]:
        """What was heard since the last time."""
        events, self.events = self.events, []
        return events


def new_cluster(tree: Tree, listener: Recorder, broker_id: int = 0) -> Cluster:
    cluster = Cluster(
        broker_id=broker_id,
        tree=tree,
        clock=SystemClock(),
        endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
    )
    cluster.subscribe(listener)
    return cluster


@pytest.fixture
def heard() -> Recorder:
    """The listener of `cluster`."""
    return Recorder()


@pytest.fixture
def cluster_tree(new_tree: Callable[[], Tree]) -> Tree:
    """The tree of `cluster`, opened by it."""
    return new_tree()


@pytest.fixture
async def cluster(cluster_tree: Tree, heard: Recorder) -> AsyncIterator[Cluster]:
    """A started cluster of one broker, id 0."""
    started = new_cluster(cluster_tree, heard)
    await started.start()
    yield started
    await started.close()


def code_of(caught: pytest.ExceptionInfo[KafkaError]) -> tuple[ErrorCode, str | None]:
    return caught.value.code, caught.value.detail


async def test_start_makes_what_kafka_makes(cluster: Cluster, cluster_tree: Tree) -> None:
    for path in paths.PERSISTENT:
        assert (await cluster_tree.get(path))[0] == b"", path
    image = cluster.image
    assert len(image.cluster_id) == 22
    assert json.loads((await cluster_tree.get("/cluster/id"))[0])["id"] == image.cluster_id
    assert (image.controller_id, image.controller_epoch) == (0, 1)
    assert cluster.is_controller
    assert (await cluster_tree.get("/controller_epoch"))[0] == b"1"
    assert (await cluster_tree.get("/feature"))[0] == FEATURE_NODE
    stat = await cluster_tree.exists("/brokers/ids/0")
    assert stat is not None
    assert stat.ephemeral_owner == cluster_tree.session_id
    assert image.brokers == {0: cluster.this_broker}
    assert cluster.this_broker.epoch == stat.czxid


async def test_create_topic_writes_all_and_tells(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    topic = await cluster.create_topic("t", 2, 1, configs={"retention.ms": "5"})
    assert cluster.image.topics["t"] is topic
    assert cluster.image.topic_by_id[topic.topic_id] is topic
    assert cluster.config_of("topics", "t") == {"retention.ms": "5"}
    for partition in topic.partitions:
        assert (partition.leader, partition.leader_epoch) == (0, 0)
        assert partition.replicas == partition.isr == [0]
        assert (partition.offline, partition.partition_epoch) == ([], 0)
    assert heard.take()[-1] == ("created", "t", 2)
    value = json.loads((await cluster_tree.get("/brokers/topics/t"))[0])
    assert value["partitions"] == {"0": [0], "1": [0]}
    state, _ = await cluster_tree.get("/brokers/topics/t/partitions/1/state")
    assert state == b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    config, _ = await cluster_tree.get("/config/topics/t")
    assert config == b'{"version":1,"config":{"retention.ms":"5"}}'


async def test_large_topic_is_created_in_steps(cluster: Cluster, heard: Recorder) -> None:
    topic = await cluster.create_topic("large", 600)
    assert len(topic.partitions) == 600
    assert all(one.leader == 0 and one.partition_epoch == 0 for one in topic.partitions)
    assert heard.take()[0] == ("created", "large", 600)


async def test_create_topic_over_a_left_over_config(cluster: Cluster, cluster_tree: Tree) -> None:
    await cluster_tree.create("/config/topics/t", b'{"version":1,"config":{"a":"b"}}')
    await cluster.create_topic("t", configs={"c": "d"})
    assert (await cluster_tree.get("/config/topics/t"))[0] == b'{"version":1,"config":{"c":"d"}}'


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        (
            "a/b",
            "'a/b' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            "ä",
            "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "a\n",
            "'a\n' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
    ],
)
async def test_illegal_topic_names_are_refused(cluster: Cluster, name: str, reason: str) -> None:
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic(name)
    assert code_of(caught) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic name is invalid: {reason}",
    )


async def test_topic_that_exists_or_collides_is_refused(cluster: Cluster) -> None:
    await cluster.create_topic("a.b")
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("a.b")
    assert code_of(caught) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a.b' already exists.")
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("a_b")
    assert code_of(caught) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topics: a.b",
    )
    assert set(cluster.image.topics) == {"a.b"}


@pytest.mark.parametrize(
    ("assignment", "detail"),
    [
        ({0: [0], 2: [0]}, "partitions should be a consecutive 0-based integer sequence"),
        ({0: [0], 1: [0, 1]}, "All partitions should have the same number of replicas"),
        (
            {0: [0, 0]},
            "Duplicate replica assignment found: Map(0 -> ArrayBuffer(0, 0))",
        ),
        ({0: []}, "A partition needs at least one replica"),
    ],
)
async def test_bad_assignments_are_refused(
    cluster: Cluster, assignment: dict[int, list[int]], detail: str
) -> None:
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("t", assignment=assignment)
    assert code_of(caught) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
    assert cluster.image.topics == {}


async def test_assignment_to_an_absent_broker_waits_for_it(cluster: Cluster) -> None:
    """Kafka accepts it; the partition has no leader and an offline replica."""
    topic = await cluster.create_topic("t", assignment={0: [0, 5], 1: [5, 6]})
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (0, [0])
    assert topic.partitions[0].offline == [5]
    assert (topic.partitions[1].leader, topic.partitions[1].offline) == (-1, [5, 6])


async def test_plan_topic_writes_nothing(cluster: Cluster, heard: Recorder) -> None:
    assert cluster.plan_topic("t", 3) == [[0], [0], [0]]
    assert cluster.image.topics == {}
    assert [event for event in heard.take() if event[0] == "created"] == []


async def test_create_partitions_adds_and_tells(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    before = await cluster.create_topic("t")
    heard.take()
    topic = await cluster.create_partitions("t", 3)
    assert topic.topic_id == before.topic_id
    assert [one.leader for one in topic.partitions] == [0, 0, 0]
    assert heard.take() == [("added", "t", 1, 3)]
    value = json.loads((await cluster_tree.get("/brokers/topics/t"))[0])
    assert value["partitions"] == {"0": [0], "1": [0], "2": [0]}
    assert await cluster_tree.children("/brokers/topics/t/partitions") == ["0", "1", "2"]
    await cluster.create_partitions("t", 4, [[0]])
    assert len(cluster.image.topics["t"].partitions) == 4


@pytest.mark.parametrize(
    ("name", "total", "assignment", "code", "detail"),
    [
        (
            "none",
            3,
            None,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'none' does not exist.",
        ),
        ("t", 2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partitions."),
        (
            "t",
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "Topic currently has 2 partitions, which is higher than the requested 1.",
        ),
        (
            "t",
            3,
            [[0], [0]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Increasing the number of partitions by 1 but 2 assignments provided.",
        ),
        (
            "t",
            3,
            [[9]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unknown broker(s) in replica assignment: 9.",
        ),
        (
            "t",
            3,
            [[]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Cannot have replication factor of 0 for partition id 2.",
        ),
        (
            "t",
            3,
            [[0, 0]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate brokers not allowed in replica assignment: 0, 0 for partition id 2.",
        ),
    ],
)
async def test_create_partitions_refuses(
    *,
    cluster: Cluster,
    name: str,
    total: int,
    assignment: list[list[int]] | None,
    code: ErrorCode,
    detail: str,
) -> None:
    await cluster.create_topic("t", 2)
    with pytest.raises(KafkaError) as caught:
        await cluster.create_partitions(name, total, assignment)
    assert code_of(caught) == (code, detail)


async def test_delete_topic_removes_all_and_tells(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    topic = await cluster.create_topic("t", 3, configs={"a": "b"})
    heard.take()
    await cluster.delete_topic("t")
    assert heard.take() == [("deleted", "t")]
    assert cluster.image.topics == {}
    assert topic.topic_id not in cluster.image.topic_by_id
    assert cluster.config_of("topics", "t") == {}
    assert await cluster_tree.children("/brokers/topics") == []
    assert await cluster_tree.children("/config/topics") == []
    assert await cluster_tree.children("/admin/delete_topics") == []
    with pytest.raises(KafkaError) as caught:
        await cluster.delete_topic("t")
    assert code_of(caught) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Topic `t` to delete does not exist",
    )
    again = await cluster.create_topic("t")
    assert again.topic_id != topic.topic_id


async def test_alter_config_changes_removes_and_replaces(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    heard.take()
    await cluster.alter_config("brokers", "0", {"a": "1", "b": "2"})
    assert await cluster.alter_config("brokers", "0", {"a": None, "c": "ü"}) == {
        "b": "2",
        "c": "ü",
    }
    assert cluster.config_of("brokers", "0") == {"b": "2", "c": "ü"}
    data, stat = await cluster_tree.get("/config/brokers/0")
    assert data == '{"version":1,"config":{"b":"2","c":"ü"}}'.encode()
    assert stat.version == 1
    assert await cluster.alter_config("brokers", "0", {"d": "4"}, replace=True) == {"d": "4"}
    assert heard.take() == [("config", "brokers", "0")] * 3
    await cluster.alter_config("brokers", "0", {}, replace=True)
    assert (await cluster_tree.get("/config/brokers/0"))[0] == b'{"version":1,"config":{}}'


async def test_changes_are_announced_where_others_listen(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await cluster.alter_config("clients", "<default>", {"producer_byte_rate": "1"})
    names = await cluster_tree.children("/config/changes")
    if not cluster_tree.is_shared:
        assert names == []
        return
    assert names == ["config_change_0000000000"]
    data, _ = await cluster_tree.get(f"/config/changes/{names[0]}")
    assert data == b'{"version":2,"entity_path":"clients/<default>"}'


async def test_empty_quota_nodes_go_away(cluster: Cluster, cluster_tree: Tree) -> None:
    """Kafka's rule: an empty (user, client) node takes its empty parents with it."""
    await cluster.alter_config("users", "u/clients/c", {"producer_byte_rate": "1"})
    await cluster.alter_config("users", "v/clients/c", {"producer_byte_rate": "1"})
    await cluster.alter_config("users", "v", {"request_percentage": "1"})
    await cluster.alter_config("users", "u/clients/c", {"producer_byte_rate": None})
    await cluster.alter_config("users", "v/clients/c", {"producer_byte_rate": None})
    assert await cluster_tree.children("/config/users") == ["v"]
    assert await cluster_tree.children("/config/users/v") == []
    assert cluster.image.configs["users"] == {"v": {"request_percentage": "1"}}


async def test_restart_finds_everything_and_tells(new_tree: Callable[[], Tree]) -> None:
    """Topics, configs and the cluster id are there; leader epochs stay; the broker epoch grows."""
    first = new_cluster(new_tree(), Recorder())
    await first.start()
    topic = await first.create_topic("t", 2, configs={"retention.ms": "1"})
    await first.alter_config("users", "u/clients/c", {"producer_byte_rate": "1"})
    await first.alter_config("brokers", "<default>", {"a": "b"})
    await first.close()

    heard = Recorder()
    second = new_cluster(new_tree(), heard)
    await second.start()
    assert sorted(heard.take()) == [
        ("config", "brokers", "<default>"),
        ("config", "users", "u/clients/c"),
        ("created", "t", 2),
    ]
    found = second.image.topics["t"]
    assert found.topic_id == topic.topic_id
    assert found.partitions == topic.partitions
    assert second.config_of("topics", "t") == {"retention.ms": "1"}
    assert second.config_of("users", "u/clients/c") == {"producer_byte_rate": "1"}
    assert second.image.cluster_id == first.image.cluster_id
    assert second.image.controller_epoch == 2
    assert second.this_broker.epoch > first.this_broker.epoch
    await second.close()


async def test_deletion_that_broke_off_is_finished_at_start(new_tree: Callable[[], Tree]) -> None:
    tree = new_tree()
    first = new_cluster(tree, Recorder())
    await first.start()
    await first.create_topic("t")
    await tree.create("/admin/delete_topics/t")
    await first.close()
    second = new_cluster(new_tree(), Recorder())
    await second.start()
    assert second.image.topics == {}
    await second.close()


async def test_topic_without_id_gets_one(new_tree: Callable[[], Tree]) -> None:
    """Old tools and brokers wrote topics without an id and without states."""
    tree = new_tree()
    await tree.open()
    await tree.create(
        "/brokers/topics/old", b'{"version":1,"partitions":{"0":[0]}}', make_parents=True
    )
    await tree.close()
    tree = new_tree()
    cluster = new_cluster(tree, Recorder())
    await cluster.start()
    topic = cluster.image.topics["old"]
    assert topic.topic_id in cluster.image.topic_by_id
    assert topic.partitions[0].leader == 0
    value = json.loads((await tree.get("/brokers/topics/old"))[0])
    assert value["version"] == 3
    assert len(value["topic_id"]) == 22
    await cluster.close()


async def test_proposed_cluster_id_counts_only_in_a_new_tree(new_tree: Callable[[], Tree]) -> None:
    for proposal in ("first-proposal", "second-proposal"):
        cluster = Cluster(broker_id=0, tree=new_tree(), clock=SystemClock(), cluster_id=proposal)
        cluster.set_endpoints([Endpoint("PLAINTEXT", "h", 1)])
        await cluster.start()
        assert cluster.image.cluster_id == "first-proposal"
        assert cluster.image.brokers[0].endpoints == (Endpoint("PLAINTEXT", "h", 1),)
        await cluster.close()


async def test_P1_producer_ids_come_from_any_started_cluster(cluster: Cluster) -> None:
    first = cluster.next_producer_id()
    assert not isinstance(first, int)
    assert await first == 0
    assert cluster.next_producer_id() == 1
