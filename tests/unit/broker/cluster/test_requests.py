"""A controller's requests and the tree feed one image, in any order: it never goes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    PartitionState,
    encode_config,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.requests import LEADER_DURING_DELETE, SentTopic
from minibroker.broker.cluster.sent_state import SentState
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import Create, Delete, Set
from minibroker.broker.evidence import EvidenceKind
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId
from tests.support.cluster import Recorder, add_broker, new_cluster, stop_following
from tests.support.in_process import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import PartitionImage

EPOCH = 7


@pytest.fixture
def heard() -> Recorder:
    """The listener of `cluster`."""
    return Recorder()


@pytest.fixture
async def cluster(tmp_path: Path, heard: Recorder) -> AsyncIterator[Cluster]:
    """A cluster of brokers 0 (this one) and 1 that follows no watches: the test says when it
    reads. It has the topic `t`, with one partition on both.
    """
    tree = SharedTree(tmp_path / "metadata.db", SystemClock()).session()
    started = new_cluster(tree, heard)
    await started.start()
    await stop_following(started)
    await add_broker(started, tree, 1)
    await started.create_topic("t", assignment={0: [0, 1]})
    heard.take()
    yield started
    await started.close()


def partition_of(cluster: Cluster, name: str = "t") -> PartitionImage:
    return cluster.image.topics[name].partitions[0]


def change_to(
    leader: int, epoch: int, version: int, *, isr: tuple[int, ...] = (0, 1), **more: list[int]
) -> SentState:
    return SentState(PartitionState(leader, epoch, [*isr], EPOCH), version, [0, 1], **more)


async def update(
    cluster: Cluster,
    states: dict[int, SentState],
    *,
    name: str = "t",
    topic_id: TopicId | None = None,
    epoch: int = EPOCH,
    brokers: tuple[int, ...] = (0, 1),
) -> None:
    """Have the cluster take an UpdateMetadata request about one topic."""
    topic_image = cluster.image.topics.get(name)
    id_in_use = topic_id or (topic_image.topic_id if topic_image else TopicId(ZERO_TOPIC_ID))
    going = {n for n, change in states.items() if change.state.leader == LEADER_DURING_DELETE}
    living = {n: change for n, change in states.items() if n not in going}
    await cluster.requests.take_metadata(
        controller_id=1,
        controller_epoch=epoch,
        broker_ids=brokers,
        topics=[SentTopic(name, id_in_use, living, going)],
    )


async def read(cluster: Cluster, name: str = "t") -> None:
    """Read a topic from the tree, as after a watch."""
    async with cluster._context.lock:
        await cluster._follower.read_topics([name])


async def test_a_newer_state_is_taken_once_and_an_older_one_never(
    cluster: Cluster, heard: Recorder
) -> None:
    await update(cluster, {0: change_to(1, 3, 5)})
    await update(cluster, {0: change_to(1, 3, 5)})
    assert heard.take() == [("leadership", "t", 0)]
    await update(cluster, {0: change_to(0, 2, 9)})
    await update(cluster, {0: change_to(1, 3, 4, isr=(1,))})
    assert heard.take() == []
    await update(cluster, {0: change_to(1, 3, 6, isr=(1,))})
    after = partition_of(cluster)
    assert (after.leader, after.leader_epoch, after.partition_epoch, after.isr) == (1, 3, 6, [1])
    assert heard.take() == [("leadership", "t", 0)]


async def test_the_tree_brings_back_no_older_state(cluster: Cluster, heard: Recorder) -> None:
    await update(cluster, {0: change_to(1, 3, 5)})
    heard.take()
    await read(cluster)
    assert (partition_of(cluster).leader_epoch, heard.take()) == (3, [])
    path = paths.partition_state("t", 0)
    state = PartitionState(0, 4, [0], EPOCH)
    await cluster.tree.multi([Set(path, encode_state(state), -1)])
    await read(cluster)
    assert (partition_of(cluster).leader_epoch, partition_of(cluster).isr) == (4, [0])


async def test_an_assignment_that_was_read_before_undoes_no_request(cluster: Cluster) -> None:
    """Kafka writes the end of a reassignment to the tree after it told the brokers."""
    await read(cluster)
    moved = SentState(PartitionState(1, 3, [1], EPOCH), 5, [1])
    await update(cluster, {0: moved})
    await cluster.tree.multi(
        [Set(paths.partition_state("t", 0), encode_state(PartitionState(1, 4, [1], EPOCH)), -1)]
    )
    await read(cluster)
    assert (partition_of(cluster).leader_epoch, partition_of(cluster).replicas) == (4, [1])
    topic_id = cluster.image.topics["t"].topic_id
    await cluster.tree.multi([Set(paths.topic("t"), encode_topic(topic_id, [[1, 0]]), -1)])
    await read(cluster)
    assert partition_of(cluster).replicas == [1, 0]


async def test_a_deposed_controller_is_refused(cluster: Cluster) -> None:
    await update(cluster, {0: change_to(1, 3, 5)}, epoch=EPOCH)
    assert (cluster.image.controller_id, cluster.image.controller_epoch) == (1, EPOCH)
    with pytest.raises(KafkaError) as caught:
        await update(cluster, {0: change_to(0, 9, 9)}, epoch=EPOCH - 1)
    assert caught.value.code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert partition_of(cluster).leader == 1
    assert cluster.requests.epoch == EPOCH


async def test_a_request_for_an_earlier_registration_is_refused(cluster: Cluster) -> None:
    ours = cluster.this_broker.epoch
    for epoch in (-1, ours, ours + 1):
        cluster.requests.check_broker_epoch(epoch, is_kraft=False)
    with pytest.raises(KafkaError) as caught:
        cluster.requests.check_broker_epoch(ours - 1, is_kraft=False)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError) as caught:
        cluster.requests.check_broker_epoch(ours, is_kraft=True)
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_topic_that_is_deleted_stays_out_until_another_one_has_its_name(
    cluster: Cluster, heard: Recorder
) -> None:
    topic_id = cluster.image.topics["t"].topic_id
    await update(cluster, {0: change_to(LEADER_DURING_DELETE, -2, 0)})
    assert heard.take() == [("deleted", "t", EvidenceKind.LEADER_DURING_DELETE)]
    await read(cluster)
    await update(cluster, {0: change_to(1, 9, 9)}, topic_id=topic_id)
    assert "t" not in cluster.image.topics
    again = new_topic_id()
    await cluster.tree.multi([Set(paths.topic("t"), encode_topic(again, [[0, 1]]), -1)])
    await update(cluster, {0: change_to(1, 0, 1)}, topic_id=again)
    assert cluster.image.topics["t"].topic_id == again
    assert heard.take()[0] == ("created", "t", 1)


async def test_a_deletion_counts_when_all_partitions_are_named(cluster: Cluster) -> None:
    await cluster.topics.add_partitions("t", 2, [[0, 1]])
    await update(cluster, {0: change_to(LEADER_DURING_DELETE, -2, 0)})
    assert len(cluster.image.topics["t"].partitions) == 2
    await update(cluster, {n: change_to(LEADER_DURING_DELETE, -2, 0) for n in range(2)})
    assert "t" not in cluster.image.topics


async def test_a_deleted_topic_without_nodes_is_forgotten(cluster: Cluster) -> None:
    topic = cluster.image.topics["t"]
    await update(cluster, {0: change_to(LEADER_DURING_DELETE, -2, 0)})
    nodes = [paths.partition_state("t", 0), paths.partition("t", 0), paths.partitions("t")]
    await cluster.tree.multi([Delete(path) for path in [*nodes, paths.topic("t")]])
    await read(cluster)
    await cluster._updater.apply_topic(topic)
    assert "t" in cluster.image.topics


async def test_an_unknown_topic_is_read_with_its_configuration(
    cluster: Cluster, heard: Recorder
) -> None:
    topic_id = new_topic_id()
    state = PartitionState(1, 0, [0, 1], EPOCH)
    await cluster.tree.multi(
        [
            Create(paths.topic("new"), encode_topic(topic_id, [[0, 1]])),
            Create(paths.partitions("new")),
            Create(paths.partition("new", 0)),
            Create(paths.partition_state("new", 0), encode_state(state)),
            Create(paths.config("topics", "new"), encode_config({"retention.ms": "1"})),
        ]
    )
    await update(cluster, {0: change_to(1, 0, 0)}, name="new", topic_id=topic_id)
    assert partition_of(cluster, "new").leader == 1
    assert heard.take() == [("created", "new", 1)]


async def test_offline_replicas_of_a_request_are_those_on_failed_disks(cluster: Cluster) -> None:
    await update(cluster, {0: change_to(0, 3, 5, isr=(0,), offline=[1])})
    assert partition_of(cluster).offline == [1]
    await update(cluster, {0: change_to(0, 3, 5, isr=(0,), offline=[])})
    assert partition_of(cluster).offline == []


async def test_other_brokers_than_known_are_looked_up(cluster: Cluster) -> None:
    cluster._follower._dirty.clear()
    await update(cluster, {}, brokers=(0, 1))
    assert not cluster._follower._dirty
    await update(cluster, {}, brokers=(0, 1, 2))
    assert cluster._follower._dirty == {"brokers"}


async def test_the_age_counts_from_the_last_update(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(cluster._context, "clock", clock)
    assert cluster.requests.metadata_age_ms() is None
    await update(cluster, {})
    clock.advance(700)
    assert cluster.requests.metadata_age_ms() == 700
    await update(cluster, {})
    assert cluster.requests.metadata_age_ms() == 0


async def test_a_controller_that_the_tree_deposed_is_refused(cluster: Cluster) -> None:
    """A minibroker that is elected sends no request to minibrokers."""
    cluster.image.controller_epoch = EPOCH + 1
    with pytest.raises(KafkaError) as caught:
        await update(cluster, {0: change_to(0, 9, 9)})
    assert caught.value.code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert partition_of(cluster).leader_epoch == 0


async def test_a_topic_without_an_id_is_read_again_when_the_controller_has_given_it_one(
    cluster: Cluster, heard: Recorder
) -> None:
    topic_id = cluster.image.topics["t"].topic_id
    old = b'{"version":1,"partitions":{"0":[0,1]}}'
    cluster._election.lose()
    cluster._updater.withdraw_topic("t")
    await cluster.tree.multi([Set(paths.topic("t"), old, -1)])
    await read(cluster)
    assert cluster.image.topics["t"].topic_id == ZERO_TOPIC_ID
    heard.take()
    state = partition_of(cluster)
    change = change_to(state.leader, state.leader_epoch, state.partition_epoch)
    await cluster.tree.multi([Set(paths.topic("t"), encode_topic(topic_id, [[0, 1]]), -1)])
    await update(cluster, {0: change}, topic_id=topic_id)
    assert cluster.image.topics["t"].topic_id == topic_id
    assert heard.take() == [("leadership", "t", 0)]


async def test_another_controller_may_come_while_expected_topics_are_applied(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first request comes while the cluster's lock is held, and all is told anew."""
    requests = cluster.requests
    for name in ("u", "v"):
        topic = await cluster.create_topic(name, assignment={0: [0, 1]})
        requests._expect(SentTopic(name, topic.topic_id, {0: change_to(1, 3, 5)}))
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    applying = asyncio.create_task(requests._apply_expected(["u", "v"]))
    await asyncio.sleep(0)
    requests.check_controller_epoch(1, EPOCH)
    await applying
    assert requests._expected_topics == {}
    assert sorted(partition_of(cluster, name).leader_epoch for name in ("u", "v")) == [0, 3]
