"""Brokers that are processes of their own: only the controller watches topics, and it tells all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.cluster import paths
from minibroker.cluster.codecs import (
    PartitionState,
    decode_state,
    encode_broker,
    encode_state,
)
from minibroker.cluster.requests import SentTopic
from minibroker.cluster.shared import SharedTree
from minibroker.cluster.updates import SentState
from minibroker.errors import CoordinationError
from minibroker.ids import TopicPartition
from tests.support.cluster import Recorder, new_cluster
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.image import PartitionImage

STATE = paths.partition_state("t", 0)


class Told:
    """Broker 0, the controller, and broker 1, which knows of partitions what a test tells it."""

    def __init__(self, directory: Path) -> None:
        home = SharedTree(directory / "metadata.db", ManualClock())
        self.trees = [home.session(), home.session()]
        self.controller, self.other = (
            new_cluster(tree, Recorder(), broker_id, is_told=True)
            for broker_id, tree in enumerate(self.trees)
        )

    async def start(self) -> None:
        await self.controller.start()
        await self.other.start()
        await eventually(lambda: 1 in self.controller.image.brokers)
        await self.controller.create_topic("t", assignment={0: [0, 1]})
        await self.tell("t")
        await self.until_idle(self.other)

    async def tell(self, *names: str) -> None:
        """Send the controller's states of these topics to the other broker."""
        image = self.controller.image
        await self.other.requests.take_metadata(
            controller_id=image.controller_id,
            controller_epoch=image.controller_epoch,
            broker_ids=list(image.brokers),
            topics=[
                SentTopic(
                    name,
                    image.topics[name].topic_id,
                    {
                        index: SentState(
                            PartitionState(
                                state.leader, state.leader_epoch, state.isr, state.controller_epoch
                            ),
                            state.partition_epoch,
                            state.replicas,
                        )
                        for index, state in enumerate(image.topics[name].partitions)
                    },
                )
                for name in names
            ],
        )

    async def write(self, leader_epoch: int) -> None:
        """Write a state of `t` that only the tree has; the controller sees it."""
        data, _ = await self.trees[0].get(STATE)
        state = decode_state(STATE, data)._replace(leader_epoch=leader_epoch)
        await self.trees[0].set(STATE, encode_state(state))
        await eventually(lambda: state_at(self.controller).leader_epoch == leader_epoch)

    async def until_idle(self, cluster: Cluster) -> None:
        """Return when the broker has followed everything that its watches told of."""
        await asyncio.sleep(0)  # watches of this turn have called back
        await eventually(lambda: not cluster._follower._dirty)
        async with cluster._context.lock:
            return


def state_at(cluster: Cluster) -> PartitionImage:
    return cluster.image.topics["t"].partitions[0]


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Told]:
    made = Told(tmp_path)
    await made.start()
    yield made
    await made.other.close()
    await made.controller.close()


async def test_a_state_arrives_when_the_controller_tells_it_and_not_before(told: Told) -> None:
    await told.write(leader_epoch=4)
    await told.until_idle(told.other)
    assert state_at(told.other).leader_epoch == 0
    await told.tell("t")
    assert state_at(told.other).leader_epoch == 4
    assert told.other.requests.metadata_age_ms() is not None


async def test_a_new_topic_arrives_with_the_first_word_of_it(told: Told) -> None:
    await told.controller.create_topic("new", assignment={0: [0]}, configs={"a": "b"})
    await told.until_idle(told.other)
    assert "new" not in told.other.image.topics
    await told.tell("new")
    assert told.other.image.topics["new"].partitions[0].leader == 0
    assert told.other.config_of("topics", "new") == {"a": "b"}


async def test_a_topic_that_is_gone_from_the_tree_goes_though_nobody_tells(told: Told) -> None:
    await told.controller.create_topic("gone", assignment={0: [0]})
    await told.tell("gone")
    await told.controller.delete_topic("gone")
    await eventually(lambda: "gone" not in told.other.image.topics)


async def test_the_controller_alone_watches_topics(told: Told) -> None:
    assert set(told.controller._follower._watches) == {"t"}
    assert told.other._follower._watches == {}
    await told.other.become_controller()
    await eventually(lambda: not told.controller.is_controller)
    assert told.controller._follower._watches == {}
    assert set(told.other._follower._watches) == {"t"}


async def test_a_new_controller_decides_on_what_the_tree_has(told: Told) -> None:
    """Its own metadata are older."""
    await told.write(leader_epoch=4)
    assert state_at(told.other).leader_epoch == 0
    await told.controller.close()
    await eventually(lambda: told.other.is_controller and state_at(told.other).leader == 1)
    assert state_at(told.other).leader_epoch == 5
    assert set(told.other._follower._watches) == {"t"}


async def test_a_new_controller_tries_again_to_read_what_was_out_of_reach(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told.write(leader_epoch=4)
    tree = told.trees[1]
    get_many = tree.get_many
    failures = [CoordinationError("away")]

    async def once_away(asked: list[str]) -> object:
        if failures and paths.topic("t") in asked:
            raise failures.pop()
        return await get_many(asked)

    monkeypatch.setattr(tree, "get_many", once_away)
    await told.controller.close()
    await eventually(lambda: told.other.is_controller and state_at(told.other).leader == 1)
    assert not failures
    assert state_at(told.other).leader_epoch == 5


async def test_known_partitions_are_told_though_an_unknown_topic_cannot_be_read(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told.controller.create_topic("new")
    await told.write(leader_epoch=4)
    tree = told.trees[1]
    get_many = tree.get_many

    async def away(asked: list[str]) -> object:
        if paths.topic("new") in asked:
            raise CoordinationError("away")
        return await get_many(asked)

    with monkeypatch.context() as patched:
        patched.setattr(tree, "get_many", away)
        with pytest.raises(CoordinationError):
            await told.tell("new", "t")
    assert state_at(told.other).leader_epoch == 4
    await told.tell("new", "t")
    assert "new" in told.other.image.topics


async def change_isr(cluster: Cluster, isr: list[int]) -> bool:
    state = state_at(cluster)
    return await cluster.leadership.change_isr(
        TopicPartition("t", 0),
        isr,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
    )


async def test_only_a_controller_of_kafka_is_notified_of_an_isr(told: Told) -> None:
    """It deletes the notification; minibroker watches the state itself."""
    assert await change_isr(told.other, [0])
    await eventually(lambda: state_at(told.controller).isr == [0])
    assert await told.trees[1].children(paths.ISR_CHANGES) == []
    brokers = told.other.image.brokers
    told.other.image.brokers = {**brokers, 0: brokers[0]._replace(is_minibroker=False)}
    assert await change_isr(told.other, [0, 1])
    assert len(await told.trees[1].children(paths.ISR_CHANGES)) == 1


async def test_partitions_of_a_restarted_controller_get_a_new_leader_epoch(told: Told) -> None:
    """It lost power, say. Its successor sees it gone and back at once."""
    old = told.other.image.brokers[0]
    async with told.other._context.lock:
        await told.controller.close()
        await told.trees[1].create(paths.broker(0), encode_broker(old, 0), ephemeral=True)
    await eventually(lambda: told.other.is_controller and state_at(told.other).leader == 1)
    assert state_at(told.other).leader_epoch == 1
    await eventually(lambda: 0 in told.other.image.brokers)
