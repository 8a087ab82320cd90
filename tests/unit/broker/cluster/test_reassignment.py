"""Moving partitions: assignments on their way, what is refused, and what the tree then holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.reassignment import (
    ReplicaAssignment,
    check_keeps_in_sync,
    check_target,
    current_assignment,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, add_broker, add_topic_of_kafka, code_of, stop_following

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Tree

OTHER = 2
THIRD = 3


@pytest.fixture
async def two_brokers(cluster: Cluster, cluster_tree: Tree) -> Cluster:
    """Broker 0, which is the controller, and broker 2, of which only the registration is there."""
    await add_broker(cluster, cluster_tree, OTHER)
    return cluster


@pytest.mark.parametrize(
    ("origin", "target", "expected"),
    [
        ([1, 2, 3], [4, 5, 6], ReplicaAssignment([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])),
        ([1, 2], [2, 3], ReplicaAssignment([2, 3, 1], [3], [1])),
        ([1, 2], [2, 1], ReplicaAssignment([2, 1], [], [])),
        ([1, 2], [2], ReplicaAssignment([2, 1], [], [1])),
        ([1], [1], ReplicaAssignment([1], [], [])),
    ],
)
def test_an_assignment_on_its_way(
    origin: list[int], target: list[int], expected: ReplicaAssignment
) -> None:
    moving = ReplicaAssignment(origin, [], []).move_to(target)
    assert moving == expected
    assert moving.target == target
    assert sorted(moving.origin) == sorted(origin)
    back = moving.move_to(moving.origin)
    assert not back.is_under_way
    assert sorted(back.replicas) == sorted(origin)


@pytest.mark.parametrize("target", [[], [0, 0], [-1], [0, 7], [7]])
def test_targets_that_cannot_be_had(target: list[int]) -> None:
    with pytest.raises(KafkaError) as refused:
        check_target(target, ReplicaAssignment([0], [], []), {0, 1})
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_dead_broker_may_stay_where_it_is() -> None:
    check_target([7, 0], ReplicaAssignment([0, 7], [], []), {0, 1})


@pytest.mark.parametrize("isr", [[0], [0, 1], []])
def test_a_move_is_replaced_while_a_replica_that_stays_is_in_sync(isr: list[int]) -> None:
    check_keeps_in_sync(TopicPartition("t", 0), isr, ReplicaAssignment([0], [], []))


def test_the_only_replicas_in_sync_stay() -> None:
    moving = ReplicaAssignment([0, 3], [], [])
    with pytest.raises(KafkaError) as refused:
        check_keeps_in_sync(TopicPartition("t", 0), [1, 2], moving)
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_a_move_to_where_nobody_follows_stays_under_way_and_can_be_taken_back(
    two_brokers: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    cluster = two_brokers
    await cluster.create_topic("t", assignment={0: [0], 1: [0]})
    heard.take()
    await cluster.reassignments.alter("t", 1, [OTHER])
    partition = cluster.image.topics["t"].partitions[1]
    assert current_assignment(partition) == ([OTHER, 0], [OTHER], [0])
    assert (partition.leader, partition.leader_epoch, partition.isr) == (0, 1, [0])
    assert heard.take() == [("leadership", "t", 1)]
    node = json.loads((await cluster_tree.get("/brokers/topics/t"))[0])
    assert node["partitions"] == {"0": [0], "1": [OTHER, 0]}
    assert (node["adding_replicas"], node["removing_replicas"]) == ({"1": [OTHER]}, {"1": [0]})
    await cluster.reassignments.alter("t", 1, None)
    partition = cluster.image.topics["t"].partitions[1]
    assert current_assignment(partition) == ([0], [], [])
    assert (partition.leader, partition.leader_epoch) == (0, 2)
    node = json.loads((await cluster_tree.get("/brokers/topics/t"))[0])
    assert (node["adding_replicas"], node["removing_replicas"]) == ({}, {})


async def test_a_move_to_replicas_in_sync_is_done_at_once(
    two_brokers: Cluster, cluster_tree: Tree
) -> None:
    cluster = two_brokers
    await add_topic_of_kafka(cluster, cluster_tree, "t", [0, OTHER])
    await cluster.reassignments.alter("t", 0, [OTHER])
    partition = cluster.image.topics["t"].partitions[0]
    assert current_assignment(partition) == ([OTHER], [], [])
    # One epoch for the new leader, one because the former leader leaves the ISR.
    assert (partition.leader, partition.leader_epoch, partition.isr) == (OTHER, 2, [OTHER])
    state = json.loads((await cluster_tree.get("/brokers/topics/t/partitions/0/state"))[0])
    assert (state["leader"], state["leader_epoch"], state["isr"]) == (OTHER, 2, [OTHER])
    assert partition.partition_epoch == 1


@pytest.fixture
async def alone_in_sync(two_brokers: Cluster, cluster_tree: Tree) -> Cluster:
    """Topic t moves from broker 0 to brokers 2 and 0; the new replica alone is in sync."""
    cluster = two_brokers
    await cluster.create_topic("t", assignment={0: [0]})
    await cluster.reassignments.alter("t", 0, [OTHER, 0])
    await stop_following(cluster)
    await change_isr(cluster, [OTHER])
    return cluster


@pytest.mark.parametrize("target", [None, [0]])
async def test_the_only_replica_in_sync_is_not_taken_away(
    alone_in_sync: Cluster, target: list[int] | None
) -> None:
    first_image = alone_in_sync.image.topics["t"].partitions[0]
    with pytest.raises(KafkaError) as refused:
        await alone_in_sync.reassignments.alter("t", 0, target)
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert alone_in_sync.image.topics["t"].partitions[0] == first_image


@pytest.fixture
async def three_brokers(two_brokers: Cluster, cluster_tree: Tree) -> Cluster:
    """Broker 0 and the registrations of brokers 2 and 3."""
    await add_broker(two_brokers, cluster_tree, THIRD)
    return two_brokers


async def begin_move(cluster: Cluster) -> None:
    """Begin the move of topic t from brokers 0 and 3 to brokers 2, 0 and 3; 3 falls behind."""
    await cluster.create_topic("t", assignment={0: [0, THIRD]})
    await cluster.reassignments.alter("t", 0, [OTHER, 0, THIRD])
    await stop_following(cluster)
    await change_isr(cluster, [0, OTHER])


async def change_isr(cluster: Cluster, isr: list[int]) -> None:
    """Write the ISR of partition t-0 as its leader does."""
    partition = cluster.image.topics["t"].partitions[0]
    assert await cluster.leadership.change_isr(
        TopicPartition("t", 0),
        isr,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )


async def test_a_replica_of_a_move_that_ends_leaves_the_isr_with_the_same_write(
    three_brokers: Cluster, cluster_tree: Tree
) -> None:
    """The leader would not count it any more, and acks=all would have one copy less."""
    cluster = three_brokers
    await begin_move(cluster)
    epoch = cluster.image.topics["t"].partitions[0].leader_epoch
    await cluster.reassignments.alter("t", 0, None)
    state = json.loads((await cluster_tree.get("/brokers/topics/t/partitions/0/state"))[0])
    # One epoch for the assignment, one for the replica that leaves the ISR, as in Kafka 3.9.
    assert (state["leader"], state["leader_epoch"], state["isr"]) == (0, epoch + 2, [0])


async def test_a_leader_of_a_move_that_ends_hands_over(three_brokers: Cluster) -> None:
    cluster = three_brokers
    await begin_move(cluster)
    await cluster.leadership.elect("t", 0, unclean=False)
    assert cluster.image.topics["t"].partitions[0].leader == OTHER
    await cluster.reassignments.alter("t", 0, None)
    partition = cluster.image.topics["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.replicas) == (0, [0], [0, THIRD])


async def test_where_all_in_sync_go_another_leads_if_the_topic_allows_that(
    three_brokers: Cluster,
) -> None:
    cluster = three_brokers
    cluster._controller.allows_unclean = lambda _topic: True
    await begin_move(cluster)
    await cluster.leadership.elect("t", 0, unclean=False)
    await change_isr(cluster, [OTHER])
    await cluster.reassignments.alter("t", 0, None)
    partition = cluster.image.topics["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.replicas) == (0, [0], [0, THIRD])


async def test_wrong_requests_are_refused(two_brokers: Cluster) -> None:
    cluster = two_brokers
    await cluster.create_topic("t", assignment={0: [0]})

    async def code(*move: object, may_change_count: bool = True) -> ErrorCode:
        with pytest.raises(KafkaError) as refused:
            await cluster.reassignments.alter(*move, may_change_count=may_change_count)  # type: ignore[arg-type]
        return code_of(refused)[0]

    assert await code("t", 0, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert await code("u", 0, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert await code("u", 0, [0]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await code("t", 1, [0]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await code("u", 0, [9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    wider = await code("t", 0, [0, OTHER], may_change_count=False)
    assert wider == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_a_new_replica_is_under_way_until_it_is_in_sync(
    two_brokers: Cluster, cluster_tree: Tree
) -> None:
    cluster = two_brokers
    await cluster.create_topic("t", assignment={0: [0]})
    await cluster.reassignments.alter("t", 0, [OTHER, 0])
    partition = cluster.image.topics["t"].partitions[0]
    assert current_assignment(partition) == ([OTHER, 0], [OTHER], [])
    assert partition.isr == [0]
    await stop_following(cluster)
    joined = await cluster.leadership.change_isr(
        TopicPartition("t", 0),
        [0, OTHER],
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    assert joined
    async with cluster._context.lock:
        await cluster.reassignments.finish("t")
    partition = cluster.image.topics["t"].partitions[0]
    assert current_assignment(partition) == ([OTHER, 0], [], [])
    assert (partition.leader, sorted(partition.isr)) == (0, [0, OTHER])
    node = json.loads((await cluster_tree.get("/brokers/topics/t"))[0])
    assert (node["partitions"], node["adding_replicas"]) == ({"0": [OTHER, 0]}, {})
