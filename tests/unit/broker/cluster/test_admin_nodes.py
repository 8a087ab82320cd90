"""Nodes by which old tools, and brokers with a bad disk, ask the controller for something."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import encode_log_dir_event
from minibroker.broker.cluster.shared import SharedTree
from minibroker.clock import SystemClock
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, add_broker, add_topic_of_kafka, new_cluster
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster

MOVES = paths.REASSIGN_PARTITIONS
ELECTION = paths.PREFERRED_ELECTION


class AskedCluster:
    """The controller, broker 0, beside the brokers 1 and 2, and what is asked of it."""

    def __init__(self, directory: Path) -> None:
        self.home = SharedTree(directory / "metadata.db", SystemClock())
        self.tree = self.home.session()
        self.broker_ids: list[int] = []
        self.cluster = self.new_cluster(0)

    def new_cluster(self, broker_id: int) -> Cluster:
        tree = self.tree if broker_id == 0 else self.home.session()
        cluster = new_cluster(tree, Recorder(), broker_id)
        cluster.have_replicas_asked(self.broker_ids.append)
        return cluster

    def leader(self, topic: str) -> int:
        return self.cluster.image.topics[topic].partitions[0].leader

    def replicas(self, topic: str) -> list[int]:
        return self.cluster.image.topics[topic].partitions[0].replicas

    async def write(self, path: str, value: Any) -> None:
        """Make a node, as a tool does."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        await self.tree.create(path, data)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(60):
            while not await holds():  # noqa: ASYNC110  nobody is told
                await asyncio.sleep(0)

    async def until_gone(self, path: str) -> None:
        async def is_gone() -> bool:
            return await self.tree.exists(path) is None

        await self.until(is_gone)

    async def until_left(self, **moves: list[int]) -> None:
        """Wait until the node has these moves alone."""

        async def is_so() -> bool:
            return await self.moves() == moves

        await self.until(is_so)

    async def moves(self) -> dict[str, list[int]]:
        """Return topic → target of the moves that the node still has."""
        data, _ = await self.tree.get(MOVES)
        return {move["topic"]: move["replicas"] for move in json.loads(data)["partitions"]}


@pytest.fixture
async def asked_cluster(tmp_path: Path) -> AsyncIterator[AskedCluster]:
    new_world = AskedCluster(tmp_path)
    await new_world.cluster.start()
    for broker_id in (1, 2):
        await add_broker(new_world.cluster, new_world.tree, broker_id)
    yield new_world
    await new_world.cluster.close()


def election(*names: tuple[str, int]) -> dict[str, Any]:
    return {"version": 1, "partitions": [{"topic": t, "partition": p} for t, p in names]}


def reassignment(**targets: list[int]) -> dict[str, Any]:
    moves = [{"topic": t, "partition": 0, "replicas": replicas} for t, replicas in targets.items()]
    return {"version": 1, "partitions": moves}


async def test_listed_partitions_get_their_preferred_leader(asked_cluster: AskedCluster) -> None:
    cluster, tree = asked_cluster.cluster, asked_cluster.tree
    await add_topic_of_kafka(cluster, tree, "moves", [1, 0], leader=0)
    await add_topic_of_kafka(cluster, tree, "not_in_sync", [1, 0], leader=0, isr=[0])
    await add_topic_of_kafka(cluster, tree, "not_listed", [1, 0], leader=0)
    names = ("moves", 0), ("moves", 7), ("not_in_sync", 0), ("unknown", 0)
    await asked_cluster.write(ELECTION, election(*names))
    await asked_cluster.until_gone(ELECTION)
    assert asked_cluster.leader("moves") == 1
    assert (asked_cluster.leader("not_in_sync"), asked_cluster.leader("not_listed")) == (0, 0)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"partitions": [{"topic": "t"}]}'])
async def test_an_election_that_cannot_be_read_is_dropped(
    asked_cluster: AskedCluster, data: bytes
) -> None:
    await asked_cluster.write(ELECTION, data)
    await asked_cluster.until_gone(ELECTION)


async def test_listed_moves_begin_and_leave_the_node_when_they_are_over(
    asked_cluster: AskedCluster,
) -> None:
    cluster, tree = asked_cluster.cluster, asked_cluster.tree
    await add_topic_of_kafka(cluster, tree, "waits", [0])
    await add_topic_of_kafka(cluster, tree, "later", [0])
    await add_topic_of_kafka(cluster, tree, "ready", [0, 1])
    targets = {"waits": [5], "later": [2], "ready": [1, 0], "empty": [], "unknown": [1]}
    await asked_cluster.write(MOVES, reassignment(**targets))  # broker 5 is dead: it is waited for
    await eventually(lambda: asked_cluster.replicas("later") == [2, 0])
    await eventually(lambda: asked_cluster.replicas("ready") == [1, 0])
    await asked_cluster.until_left(waits=[5], later=[2])
    partition = cluster.image.topics["later"].partitions[0]
    assert await cluster.leadership.change_isr(
        TopicPartition("later", 0),
        [0, 2],
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    await eventually(lambda: asked_cluster.replicas("later") == [2])
    await asked_cluster.until_left(waits=[5])
    await cluster.reassignments.alter("waits", 0, None)  # another request takes it back
    await asked_cluster.until_gone(MOVES)
    assert asked_cluster.replicas("waits") == [0]


async def test_a_reassignment_that_cannot_be_read_stays(
    asked_cluster: AskedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    await asked_cluster.write(MOVES, b'{"partitions": 7}')
    await eventually(lambda: MOVES in caplog.text)
    assert await asked_cluster.tree.exists(MOVES)
    await asked_cluster.tree.delete(MOVES)
    await add_topic_of_kafka(asked_cluster.cluster, asked_cluster.tree, "t", [0])
    await asked_cluster.write(MOVES, reassignment(t=[1]))
    await eventually(lambda: asked_cluster.replicas("t") == [1, 0])


async def test_a_new_controller_does_what_the_nodes_say(asked_cluster: AskedCluster) -> None:
    second = asked_cluster.new_cluster(3)
    await second.start()
    await second.become_controller()
    await asked_cluster.cluster._follower.close()
    await second.close()
    assert not await asked_cluster.tree.exists(paths.CONTROLLER)
    await add_topic_of_kafka(asked_cluster.cluster, asked_cluster.tree, "moving", [0])
    await add_topic_of_kafka(asked_cluster.cluster, asked_cluster.tree, "led", [1, 0], leader=0)
    await asked_cluster.write(MOVES, reassignment(moving=[1]))
    await asked_cluster.write(ELECTION, election(("led", 0)))
    third = asked_cluster.new_cluster(4)
    await third.start()
    assert third.is_controller
    await eventually(lambda: third.image.topics["moving"].partitions[0].replicas == [1, 0])
    await eventually(lambda: third.image.topics["led"].partitions[0].leader == 1)
    await asked_cluster.until_gone(ELECTION)
    assert await asked_cluster.moves() == {"moving": [1]}
    await third.close()


async def test_a_broker_with_a_failed_log_directory_is_asked_for_its_replicas(
    asked_cluster: AskedCluster,
) -> None:
    for data in (encode_log_dir_event(2), encode_log_dir_event(0), b"?"):
        await asked_cluster.tree.create(paths.LOG_DIR_EVENT, data, sequence=True)

    async def are_read() -> bool:
        return await asked_cluster.tree.children(paths.LOG_DIR_EVENTS) == []

    await asked_cluster.until(are_read)
    assert asked_cluster.broker_ids == [2]


async def test_a_new_controller_hears_of_the_directories_that_failed_before(
    asked_cluster: AskedCluster,
) -> None:
    second = asked_cluster.new_cluster(3)
    await second.start()
    topic = await asked_cluster.cluster.create_topic("t", assignment={0: [3]})
    await eventually(lambda: "t" in second.image.topics)
    await second.leadership.replicas_failed([TopicPartition(topic.name, 0)])
    await eventually(lambda: asked_cluster.broker_ids == [3])
    third = asked_cluster.new_cluster(4)
    await third.start()
    asked_cluster.broker_ids.clear()
    await third.become_controller()
    await eventually(lambda: asked_cluster.broker_ids == [3])
    await third.close()
    await second.close()
