"""Leader election: the pure rule, then what the controller writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.cluster.codecs import PartitionState
from minibroker.cluster.controller import (
    new_topic_id,
    next_state,
    preferred_state,
    unclean_state,
)
from minibroker.cluster.image import NO_LEADER, PartitionImage
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.ids import topic_id_to_text
from tests.support.cluster import Recorder, add_broker, add_topic_of_kafka, new_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.tree import Tree


def partition(leader: int, isr: list[int], *, epoch: int = 4, known: bool = True) -> PartitionImage:
    return PartitionImage(
        leader=leader,
        leader_epoch=epoch,
        replicas=[1, 2, 3],
        isr=isr,
        adding=[],
        removing=[],
        offline=[],
        controller_epoch=1,
        partition_epoch=0 if known else -1,
    )


@pytest.mark.parametrize(
    ("before", "alive", "after"),
    [
        # A new partition: the first live replica leads and is alone in sync, as nobody follows.
        (partition(NO_LEADER, [], known=False), {1, 2, 3}, PartitionState(1, 0, [1], 9)),
        (partition(NO_LEADER, [], known=False), {3, 2}, PartitionState(2, 0, [2], 9)),
        (partition(NO_LEADER, [], known=False), {5}, None),
        # Nothing to do.
        (partition(1, [1]), {1, 2, 3}, None),
        (partition(2, [2]), {2, 3}, None),
        # Kafka's brokers left followers in sync: nobody follows any more, so they leave the ISR.
        (partition(1, [1, 2, 3]), {1, 2, 3}, PartitionState(1, 5, [1], 9)),
        (partition(1, [1, 2, 3]), {1, 3}, PartitionState(1, 5, [1], 9)),
        # The leader is gone: the next of the assignment that is in sync leads.
        (partition(1, [3, 1, 2]), {2, 3}, PartitionState(2, 5, [2], 9)),
        (partition(1, [1, 3]), {2, 3}, PartitionState(3, 5, [3], 9)),
        # Nobody in sync is left: no leader; the ISR remembers who may lead again.
        (partition(1, [1]), {2, 3}, PartitionState(NO_LEADER, 5, [1], 9)),
        (partition(NO_LEADER, [1]), {2, 3}, None),
        (partition(NO_LEADER, [1]), {1, 2}, PartitionState(1, 5, [1], 9)),
    ],
)
def test_next_state(before: PartitionImage, alive: set[int], after: PartitionState | None) -> None:
    assert next_state(before, alive, 9) == after


def test_topic_ids_are_random_uuids_whose_text_starts_well() -> None:
    ids = {new_topic_id() for _ in range(2000)}
    assert len(ids) == 2000
    assert not any(topic_id_to_text(one).startswith("-") for one in ids)
    assert all(one[6] >> 4 == 4 and one[8] >> 6 == 2 for one in ids)


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


def test_the_preferred_leader_is_the_first_replica_if_it_is_in_sync() -> None:
    assert preferred_state(partition(2, [2, 1]), {1, 2}, 7) == PartitionState(1, 5, [2, 1], 7)
    for before, alive, code in (
        (partition(1, [1, 2]), {1, 2}, ErrorCode.ELECTION_NOT_NEEDED),
        (partition(2, [2]), {1, 2}, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (partition(2, [2, 1]), {2}, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ):
        with pytest.raises(KafkaError) as refused:
            preferred_state(before, alive, 7)
        assert refused.value.code == code


def test_an_unclean_election_takes_who_is_alive_and_rather_who_is_in_sync() -> None:
    assert unclean_state(partition(NO_LEADER, [2]), {1, 2}, 7) == PartitionState(2, 5, [2], 7)
    assert unclean_state(partition(NO_LEADER, [2]), {1}, 7) == PartitionState(1, 5, [1], 7)
    assert unclean_state(partition(2, [2]), {1}, 7) == PartitionState(1, 5, [1], 7)
    for before, alive, code in (
        (partition(1, [1]), {1, 2}, ErrorCode.ELECTION_NOT_NEEDED),
        (partition(NO_LEADER, [1]), {4}, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        with pytest.raises(KafkaError) as refused:
            unclean_state(before, alive, 7)
        assert refused.value.code == code


async def test_elections_are_written_and_told(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [2, 0], leader=0)
    await cluster.elect_leader("t", 0, unclean=False)
    elected = cluster.image.topics["t"].partitions[0]
    assert (elected.leader, elected.leader_epoch, elected.isr) == (2, 1, [2, 0])
    state = json.loads((await cluster_tree.get("/brokers/topics/t/partitions/0/state"))[0])
    assert (state["leader"], state["leader_epoch"]) == (2, 1)
    assert heard.take()[-1] == ("leadership", "t", 0)
    with pytest.raises(KafkaError) as refused:
        await cluster.elect_leader("t", 1, unclean=False)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
