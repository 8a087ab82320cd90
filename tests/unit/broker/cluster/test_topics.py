"""Creating, growing and deleting topics, over both homes: what is written, refused and told."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.deletions import DELETED_AT_ONCE
from minibroker.broker.cluster.image import TopicImage
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from tests.support.cluster import add_broker, code_of
from tests.support.evidence import MARKED
from tests.support.turns import Turns

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Tree
    from tests.support.cluster import Recorder


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
    assert all(
        partition.leader == 0 and partition.partition_epoch == 0 for partition in topic.partitions
    )
    created, begin, *led, end = heard.take()
    assert created == ("created", "large", 600)
    assert (begin, end) == (("steps begin",), ("steps end",))
    assert led == [("leadership", "large", index) for index in range(600)]


async def test_others_have_their_turn_while_a_large_topic_is_created_and_grows(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slices of no length, everybody else has a turn after each step of four partitions."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    await cluster.create_topic("large", 400)
    assert turns.count >= 100
    turn_count = turns.count
    topic = await cluster.topics.add_partitions("large", 800)
    assert turns.stop() - turn_count >= 100
    assert all(
        partition.leader == 0 and partition.partition_epoch == 0 for partition in topic.partitions
    )


async def test_others_have_their_turn_while_a_large_topic_is_deleted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slices of no length, everybody else has a turn after each step of 25 nodes."""
    await cluster.create_topic("large", 400)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    await cluster.delete_topic("large")
    assert turns.stop() >= 800 / DELETED_AT_ONCE
    assert cluster.image.topics == {}


async def test_a_topic_is_seen_before_all_its_partitions_have_leaders(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    creation = asyncio.create_task(cluster.create_topic("large", 40))
    led: set[int] = set()
    while not creation.done():
        await asyncio.sleep(0)
        topic = cluster.image.topics.get("large")
        led.add(
            0 if topic is None else sum(partition.leader == 0 for partition in topic.partitions)
        )
    assert {0, 4, 40} <= led


async def test_create_topic_over_a_left_over_config(cluster: Cluster, cluster_tree: Tree) -> None:
    await cluster_tree.create("/config/topics/t", b'{"version":1,"config":{"a":"b"}}')
    await cluster.create_topic("t", configs={"c": "d"})
    assert (await cluster_tree.get("/config/topics/t"))[0] == b'{"version":1,"config":{"c":"d"}}'


async def test_a_setting_without_its_topic_is_none_of_the_topic_that_is_made(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await cluster.alter_config("topics", "t", {"retention.ms": "5"})
    await cluster.create_topic("t")
    assert (await cluster_tree.get("/config/topics/t"))[0] == b'{"version":1,"config":{}}'
    assert cluster.config_of("topics", "t") == {}


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


async def test_topics_that_collide_are_refused_though_both_were_planned(cluster: Cluster) -> None:
    """Two requests come at once: the second one waits while the first topic is written."""
    async with cluster._context.lock:
        requests = [asyncio.create_task(cluster.create_topic(name)) for name in ("a.b", "a_b")]
        await asyncio.sleep(0)  # both have been checked, and wait
    first, second = await asyncio.gather(*requests, return_exceptions=True)
    assert isinstance(first, TopicImage)
    assert isinstance(second, KafkaError)
    assert (second.code, second.detail) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topics: a.b",
    )
    assert set(cluster.image.topics) == {"a.b"}


@pytest.mark.parametrize(
    ("assignment", "detail"),
    [
        ({0: [0], 2: [0]}, "partitions should be a consecutive 0-based integer sequence"),
        ({0: [0], 1: [0, 1]}, "All partitions should have the same number of replicas"),
        ({0: [0, 0]}, "Duplicate replica assignment found: Map(0 -> ArrayBuffer(0, 0))"),
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


async def test_a_broker_that_stands_alone_refuses_an_assignment_to_others(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    unknown = [-7, -6] if cluster_tree.is_shared else [5, 6]
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("t", assignment={0: [0, unknown[1]], 1: unknown})
    assert code_of(caught) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Unknown broker(s) in replica assignment: {unknown[0]}, {unknown[1]}.",
    )
    assert cluster.image.topics == {}


async def test_replicas_may_be_assigned_to_brokers_that_are_not_there_yet(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    if not cluster_tree.is_shared:
        return
    topic = await cluster.create_topic("t", assignment={0: [6, 0]})
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (0, [0])
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("other", assignment={0: [6]}, timeout_s=0.01)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    (partition,) = cluster.image.topics["other"].partitions
    assert (partition.leader, partition.partition_epoch) == (-1, -1)
    await add_broker(cluster, cluster_tree, 6)
    async with cluster._context.lock:
        await cluster._controller.settle()
    await cluster.topics.wait_for_leaders("other", 0)
    (partition,) = cluster.image.topics["other"].partitions
    assert (partition.leader, partition.isr) == (6, [6])


async def test_a_topic_gets_as_many_replicas_as_it_asks_for(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    topic = await cluster.create_topic("t", 1, 2)
    assert sorted(topic.partitions[0].replicas) == [0, 2]
    grown = await cluster.topics.add_partitions("t", 2, [[2, 0]])
    second = grown.partitions[1]
    assert (second.replicas, second.leader, second.isr) == ([2, 0], 2, [2, 0])


async def test_more_replicas_than_brokers_are_refused(cluster: Cluster) -> None:
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("t", 1, 2)
    assert code_of(caught)[0] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert cluster.image.topics == {}


async def test_plan_topic_writes_nothing(cluster: Cluster, heard: Recorder) -> None:
    assert cluster.topics.plan("t", 3, 1, None) == [[0], [0], [0]]
    assert cluster.image.topics == {}
    assert [event for event in heard.take() if event[0] == "created"] == []


async def test_create_partitions_adds_and_tells(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    first_image = await cluster.create_topic("t")
    heard.take()
    topic = await cluster.topics.add_partitions("t", 3)
    assert topic.topic_id == first_image.topic_id
    assert [partition.leader for partition in topic.partitions] == [0, 0, 0]
    assert heard.take() == [("added", "t", 1, 3)]
    value = json.loads((await cluster_tree.get("/brokers/topics/t"))[0])
    assert value["partitions"] == {"0": [0], "1": [0], "2": [0]}
    assert await cluster_tree.children("/brokers/topics/t/partitions") == ["0", "1", "2"]
    await cluster.topics.add_partitions("t", 4, [[0]])
    assert len(cluster.image.topics["t"].partitions) == 4


@pytest.mark.parametrize(
    ("name", "total", "assignment", "code", "detail"),
    [
        ("none", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'none' does not exist."),
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
        await cluster.topics.add_partitions(name, total, assignment)
    assert code_of(caught) == (code, detail)


async def test_topic_marked_for_deletion_is_not_made_again(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    """If another broker is the controller, the mark stays until it has deleted the topic."""
    if not cluster_tree.is_shared:
        return
    await cluster._follower.close()  # our own controller must not delete it meanwhile
    await cluster_tree.create("/admin/delete_topics/t")
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("t")
    assert code_of(caught) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' is marked for deletion.")


async def test_delete_topic_removes_all_and_tells(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    topic = await cluster.create_topic("t", 3, configs={"a": "b"})
    heard.take()
    await cluster.delete_topic("t")
    assert heard.take() == [("deleted", "t", MARKED.kind)]
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


# A request that waited for the cluster's lock.


async def test_a_broker_that_was_deposed_while_it_waited_grows_no_topic(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    """The next controller may have moved its partitions, or made another topic of that name."""
    if not cluster_tree.is_shared:
        return  # it is never deposed
    await cluster.create_topic("t")
    node, _ = await cluster_tree.get("/brokers/topics/t")
    async with cluster._context.lock:
        growth = asyncio.create_task(cluster.topics.add_partitions("t", 2))
        await asyncio.sleep(0)
        cluster._election.lose()
    with pytest.raises(KafkaError) as caught:
        await growth
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert (await cluster_tree.get("/brokers/topics/t"))[0] == node


async def test_a_broker_that_was_deposed_while_it_waited_deletes_no_topic(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    """The next controller may have made another topic of that name, which this one has not read."""
    if not cluster_tree.is_shared:
        return  # it is never deposed
    await cluster.create_topic("t")
    async with cluster._context.lock:
        deletion = asyncio.create_task(cluster.delete_topic("t"))
        await asyncio.sleep(0)
        cluster._election.lose()
    with pytest.raises(KafkaError) as caught:
        await deletion
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert await cluster_tree.exists("/admin/delete_topics/t") is None


async def test_a_deletion_that_waited_leaves_the_next_topic_of_that_name(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    """Another broker was the controller meanwhile, and deleted the topic and made it anew."""
    topic = await cluster.create_topic("t")
    async with cluster._context.lock:
        deletion = asyncio.create_task(cluster.delete_topic("t", topic_id=topic.topic_id))
        await asyncio.sleep(0)
        next_topic = TopicImage("t", new_topic_id(), topic.partitions)
        await cluster._updater.apply_topic(next_topic)
    with pytest.raises(KafkaError) as caught:
        await deletion
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster_tree.exists("/admin/delete_topics/t") is None
