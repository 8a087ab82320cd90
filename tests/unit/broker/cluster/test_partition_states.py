"""Partition states that somebody else writes at the same time; over both homes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import PartitionState, encode_state, encode_topic
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.partition_states import WRITE_ATTEMPTS_MAX
from minibroker.broker.cluster.tree import Set
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from tests.support.cluster import Recorder, add_broker, add_topic_of_kafka, new_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Operation, Tree

OTHER = 2
STATE = paths.partition_state("t", 0)


@pytest.fixture
async def two_replicas(cluster: Cluster, cluster_tree: Tree) -> Cluster:
    """Broker 0, the controller, and a topic that it leads and broker 2 has a replica of."""
    await add_broker(cluster, cluster_tree, OTHER)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [OTHER, 0], leader=0)
    return cluster


def write_before(
    monkeypatch: pytest.MonkeyPatch, tree: Tree, state: PartitionState, times: int = 1
) -> None:
    """Have somebody else write this state of `t-0` right before this broker does."""
    multi = tree.multi
    states = [state] * times

    async def after_another(operations: Sequence[Operation]) -> list[str | int]:
        if states and any(operation.path == STATE for operation in operations):
            await multi([Set(STATE, encode_state(states.pop()))])
        return await multi(operations)

    monkeypatch.setattr(tree, "multi", after_another)


async def state_in(tree: Tree) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((await tree.get(STATE))[0])
    return state


async def test_an_election_that_loses_against_a_write_is_decided_again(
    two_replicas: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_before(monkeypatch, cluster_tree, PartitionState(0, 7, [0, OTHER], 1))
    await two_replicas.leadership.elect("t", 0, unclean=False)
    state = await state_in(cluster_tree)
    assert (state["leader"], state["leader_epoch"], state["isr"]) == (OTHER, 8, [0, OTHER])
    partition = two_replicas.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (OTHER, 8, 2)


async def test_an_election_that_another_write_made_needless(
    two_replicas: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_before(monkeypatch, cluster_tree, PartitionState(OTHER, 7, [OTHER], 1))
    with pytest.raises(KafkaError) as refused:
        await two_replicas.leadership.elect("t", 0, unclean=False)
    assert refused.value.code == ErrorCode.ELECTION_NOT_NEEDED
    partition = two_replicas.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch) == (OTHER, 7)


async def test_a_reassignment_that_loses_against_a_write_is_decided_again(
    two_replicas: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 2 left the ISR meanwhile, so the move to it is not done at once."""
    write_before(monkeypatch, cluster_tree, PartitionState(0, 7, [0], 1))
    await two_replicas.reassignments.alter("t", 0, [OTHER])
    partition = two_replicas.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.isr) == (0, 8, [0])
    assert (partition.replicas, partition.removing) == ([OTHER, 0], [0])
    assert (await state_in(cluster_tree))["leader_epoch"] == 8


async def test_states_that_change_at_every_try_are_given_up(
    two_replicas: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PartitionState(0, 7, [0, OTHER], 1)
    # More often than it tries: the controller writes, too, once it has seen the other broker.
    write_before(monkeypatch, cluster_tree, other, times=10 * WRITE_ATTEMPTS_MAX)
    with pytest.raises(CoordinationError, match="states of topic t changed during each of 10"):
        await two_replicas.leadership.elect("t", 0, unclean=False)
    assert (await state_in(cluster_tree))["leader"] == 0


async def test_a_partition_whose_creation_broke_off_before_its_state(
    new_tree: Callable[[], Tree],
) -> None:
    """Kafka makes the nodes one by one."""
    tree = new_tree()
    await tree.open()
    topic = encode_topic(new_topic_id(), [[0], [0]])
    await tree.create(paths.topic("t"), topic, make_parents=True)
    await tree.create(paths.partition("t", 0), make_parents=True)
    await tree.close()
    cluster = new_cluster(new_tree(), Recorder())
    await cluster.start()
    assert [partition.leader for partition in cluster.image.topics["t"].partitions] == [0, 0]
    await cluster.close()


async def test_a_change_that_breaks_off_has_no_more_steps(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listeners that hold what they tell release it then."""
    multi = cluster_tree.multi

    async def fail_at_the_end(operations: Sequence[Operation]) -> list[str | int]:
        if any(operation.path == paths.partition_state("t", 59) for operation in operations):
            raise CoordinationError("the tree is away")
        return await multi(operations)

    monkeypatch.setattr(cluster_tree, "multi", fail_at_the_end)
    with pytest.raises(CoordinationError):
        await cluster.create_topic("t", 60)
    created, begin, *led, end = heard.take()
    assert (begin, end) == (("steps begin",), ("steps end",))
    assert created == ("created", "t", 60)
    assert 50 <= len(led) < 60
