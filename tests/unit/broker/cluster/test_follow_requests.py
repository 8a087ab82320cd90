"""Brokers that are processes of their own: only the controller watches topics, and it tells all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    PartitionState,
    decode_state,
    encode_broker,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.requests import SentTopic
from minibroker.broker.cluster.sent_state import SentState
from minibroker.broker.cluster.shared import SharedTree
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, new_cluster, stop_following
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.shared import TreeSession

STATE = paths.partition_state("t", 0)


class ToldCluster:
    """Broker 0, the controller, and broker 1, which knows of partitions what a test tells it."""

    def __init__(self, directory: Path) -> None:
        home = SharedTree(directory / "metadata.db", ManualClock())
        self.trees = [home.session(), home.session()]
        self.controller, self.other = (
            new_cluster(tree, Recorder(), broker_id, has_controller_requests=True)
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
async def told_cluster(tmp_path: Path) -> AsyncIterator[ToldCluster]:
    new_world = ToldCluster(tmp_path)
    await new_world.start()
    yield new_world
    await new_world.other.close()
    await new_world.controller.close()


async def test_a_state_arrives_when_the_controller_tells_it_and_not_before(
    told_cluster: ToldCluster,
) -> None:
    await told_cluster.write(leader_epoch=4)
    await told_cluster.until_idle(told_cluster.other)
    assert state_at(told_cluster.other).leader_epoch == 0
    await told_cluster.tell("t")
    assert state_at(told_cluster.other).leader_epoch == 4
    assert told_cluster.other.requests.metadata_age_ms() is not None


async def test_a_new_topic_arrives_with_the_first_word_of_it(told_cluster: ToldCluster) -> None:
    await told_cluster.controller.create_topic("new", assignment={0: [0]}, configs={"a": "b"})
    await told_cluster.until_idle(told_cluster.other)
    assert "new" not in told_cluster.other.image.topics
    await told_cluster.tell("new")
    assert told_cluster.other.image.topics["new"].partitions[0].leader == 0
    assert told_cluster.other.config_of("topics", "new") == {"a": "b"}


async def test_a_topic_that_is_gone_from_the_tree_goes_though_nobody_tells(
    told_cluster: ToldCluster,
) -> None:
    await told_cluster.controller.create_topic("gone", assignment={0: [0]})
    await told_cluster.tell("gone")
    await told_cluster.controller.delete_topic("gone")
    await eventually(lambda: "gone" not in told_cluster.other.image.topics)


async def test_the_controller_alone_watches_topics(told_cluster: ToldCluster) -> None:
    assert set(told_cluster.controller._follower._watches) == {"t"}
    assert told_cluster.other._follower._watches == {}
    await told_cluster.other.become_controller()
    await eventually(lambda: not told_cluster.controller.is_controller)
    assert told_cluster.controller._follower._watches == {}
    assert set(told_cluster.other._follower._watches) == {"t"}


async def test_a_new_controller_decides_on_what_the_tree_has(told_cluster: ToldCluster) -> None:
    """Its own metadata are older."""
    await told_cluster.write(leader_epoch=4)
    assert state_at(told_cluster.other).leader_epoch == 0
    await told_cluster.controller.close()
    await eventually(
        lambda: told_cluster.other.is_controller and state_at(told_cluster.other).leader == 1
    )
    assert state_at(told_cluster.other).leader_epoch == 5
    assert set(told_cluster.other._follower._watches) == {"t"}


async def test_a_new_controller_tries_again_to_read_what_was_out_of_reach(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told_cluster.write(leader_epoch=4)
    tree = told_cluster.trees[1]
    get_many = tree.get_many
    failures = [CoordinationError("away")]

    async def once_away(names: list[str]) -> object:
        if failures and paths.topic("t") in names:
            raise failures.pop()
        return await get_many(names)

    monkeypatch.setattr(tree, "get_many", once_away)
    await told_cluster.controller.close()
    await eventually(
        lambda: told_cluster.other.is_controller and state_at(told_cluster.other).leader == 1
    )
    assert not failures
    assert state_at(told_cluster.other).leader_epoch == 5


async def test_known_partitions_are_told_though_an_unknown_topic_cannot_be_read(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told_cluster.controller.create_topic("new")
    await told_cluster.write(leader_epoch=4)
    tree = told_cluster.trees[1]
    get_many = tree.get_many

    async def away(names: list[str]) -> object:
        if paths.topic("new") in names:
            raise CoordinationError("away")
        return await get_many(names)

    with monkeypatch.context() as patched:
        patched.setattr(tree, "get_many", away)
        with pytest.raises(CoordinationError):
            await told_cluster.tell("new", "t")
    assert state_at(told_cluster.other).leader_epoch == 4
    await eventually(lambda: "new" in told_cluster.other.image.topics)  # nobody tells it again


async def test_a_told_topic_is_served_though_the_brokers_server_lags(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server behind the session of broker 1 has the topic only once it has caught up."""
    lag = Lag(told_cluster.trees[1], monkeypatch)
    await told_cluster.controller.create_topic("new", assignment={0: [0, 1]}, configs={"a": "b"})
    await told_cluster.tell("new")
    assert lag.syncs == 1
    assert told_cluster.other.image.topics["new"].partitions[0].leader == 0
    assert told_cluster.other.config_of("topics", "new") == {"a": "b"}


async def test_a_deletion_is_known_though_the_brokers_server_lags(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = Lag(told_cluster.trees[1], monkeypatch)
    assert not await told_cluster.other.requests.is_being_deleted("t")
    await told_cluster.trees[0].create(paths.delete_topic("t"))
    lag.is_late = True
    assert await told_cluster.other.requests.is_being_deleted("t")


async def test_a_mark_of_an_earlier_topic_does_not_delete_its_namesake(
    told_cluster: ToldCluster,
) -> None:
    await told_cluster.trees[0].create(paths.delete_topic("t"))
    assert await told_cluster.other.requests.is_being_deleted("t")
    state = await told_cluster.trees[0].get(paths.topic("t"))
    await told_cluster.trees[0].set(paths.topic("t"), encode_topic(new_topic_id(), [[0, 1]]))
    assert not await told_cluster.other.requests.is_being_deleted("t")
    await told_cluster.trees[0].set(paths.topic("t"), state[0])
    assert await told_cluster.other.requests.is_being_deleted("t")


async def test_a_told_topic_is_read_again_until_the_tree_has_it(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is the one that was told: nobody tells it a second time."""
    lag = Lag(told_cluster.trees[1], monkeypatch, catches_up=False)
    await told_cluster.controller.create_topic("new", assignment={0: [0, 1]}, configs={"a": "b"})
    await told_cluster.tell("new")
    assert "new" not in told_cluster.other.image.topics
    await told_cluster.tell("new")
    assert set(told_cluster.other.requests._expected_topics) == {"new"}
    looks = lag.looks
    await eventually(lambda: lag.looks > looks)
    lag.is_late = False
    await eventually(lambda: "new" in told_cluster.other.image.topics)
    await told_cluster.until_idle(told_cluster.other)
    assert told_cluster.other.image.topics["new"].partitions[0].leader == 0
    assert told_cluster.other.config_of("topics", "new") == {"a": "b"}
    assert told_cluster.other.requests._expected_topics == {}


@pytest.mark.parametrize("word", ["deleted", "another controller"])
async def test_a_told_topic_is_expected_until_its_controller_says_otherwise(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    Lag(told_cluster.trees[1], monkeypatch, catches_up=False)
    topic = await told_cluster.controller.create_topic("new", assignment={0: [0, 1]})
    await told_cluster.tell("new")
    assert set(told_cluster.other.requests._expected_topics) == {"new"}
    image = told_cluster.controller.image
    going = [SentTopic("new", topic.topic_id, {}, {0})] if word == "deleted" else []
    await told_cluster.other.requests.take_metadata(
        controller_id=0,
        controller_epoch=image.controller_epoch + (not going),
        broker_ids=list(image.brokers),
        topics=going,
    )
    assert told_cluster.other.requests._expected_topics == {}


async def test_a_topic_that_is_made_again_while_it_is_read_has_no_state_of_the_next_one(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node is read, then the states of its partitions. Broker 1 leads the next topic only."""
    controller, other = told_cluster.controller, told_cluster.other
    await controller.create_topic("new", assignment={0: [0]})
    get_many = told_cluster.trees[1].get_many
    next_topics = []

    async def and_make_again(names: list[str]) -> object:
        nodes = await get_many(names)
        if paths.topic("new") in names and not next_topics:
            await controller.delete_topic("new")
            next_topics.append(await controller.create_topic("new", assignment={0: [1]}))
        return nodes

    monkeypatch.setattr(told_cluster.trees[1], "get_many", and_make_again)
    await told_cluster.tell("new")
    assert "new" not in other.image.topics
    await eventually(lambda: "new" in other.image.topics)
    assert other.image.topics["new"].topic_id == next_topics[0].topic_id
    assert other.image.topics["new"].partitions[0].leader == 1


class Lag:
    """A server of the tree that does not have the topic `new`, nor the mark of a deletion, until it
    catches up.
    """

    def __init__(
        self, tree: TreeSession, monkeypatch: pytest.MonkeyPatch, *, catches_up: bool = True
    ) -> None:
        self.is_late = True
        self.syncs = self.looks = 0
        get_many = tree.get_many

        async def late_get_many(names: list[str]) -> list[object]:
            values: list[object] = list(await get_many(names))
            self.looks += paths.topic("new") in names
            if self.is_late:
                values = [
                    None if "/topics/new" in path or "delete_topics" in path else value
                    for path, value in zip(names, values, strict=True)
                ]
            return values

        async def sync() -> None:
            self.syncs += 1
            self.is_late = self.is_late and not catches_up

        monkeypatch.setattr(tree, "get_many", late_get_many)
        monkeypatch.setattr(tree, "sync", sync)


async def change_isr(cluster: Cluster, isr: list[int]) -> bool:
    state = state_at(cluster)
    return await cluster.leadership.change_isr(
        TopicPartition("t", 0),
        isr,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
    )


async def test_only_a_controller_of_kafka_is_notified_of_an_isr(told_cluster: ToldCluster) -> None:
    """It deletes the notification; minibroker watches the state itself."""
    assert await change_isr(told_cluster.other, [0])
    await eventually(lambda: state_at(told_cluster.controller).isr == [0])
    assert await told_cluster.trees[1].children(paths.ISR_CHANGES) == []
    brokers = told_cluster.other.image.brokers
    told_cluster.other.image.brokers = {**brokers, 0: brokers[0]._replace(is_minibroker=False)}
    assert await change_isr(told_cluster.other, [0, 1])
    assert len(await told_cluster.trees[1].children(paths.ISR_CHANGES)) == 1


async def test_an_isr_without_its_notification_is_not_written(
    told_cluster: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller of Kafka would tell nobody: the leader finds the state written, and goes on."""
    cluster, tree = told_cluster.other, told_cluster.trees[1]
    brokers = cluster.image.brokers
    cluster.image.brokers = {**brokers, 0: brokers[0]._replace(is_minibroker=False)}

    async def refuse(*_: object, **__: object) -> str:
        raise CoordinationError("away")

    with monkeypatch.context() as away:
        away.setattr(tree, "create", refuse)
        away.setattr(tree, "multi", refuse)
        with pytest.raises(CoordinationError):
            await change_isr(cluster, [0])
    assert decode_state(STATE, (await tree.get(STATE))[0]).isr == [0, 1]
    assert await change_isr(cluster, [0])
    assert len(await tree.children(paths.ISR_CHANGES)) == 1


async def test_a_leader_whose_state_is_gone_writes_no_isr(told_cluster: ToldCluster) -> None:
    """The state that somebody makes then is not overwritten."""
    await stop_following(told_cluster.controller)
    cluster, tree = told_cluster.other, told_cluster.trees[1]
    await tree.delete(STATE)
    assert not await change_isr(cluster, [0])
    await tree.create(STATE, encode_state(PartitionState(1, 9, [1], 1)))
    assert not await change_isr(cluster, [0])
    assert decode_state(STATE, (await tree.get(STATE))[0]).leader_epoch == 9


async def test_partitions_of_a_restarted_controller_get_a_new_leader_epoch(
    told_cluster: ToldCluster,
) -> None:
    """It lost power, say. Its successor sees it gone and back at once."""
    old = told_cluster.other.image.brokers[0]
    async with told_cluster.other._context.lock:
        await told_cluster.controller.close()
        await told_cluster.trees[1].create(paths.broker(0), encode_broker(old, 0), ephemeral=True)
    await eventually(
        lambda: told_cluster.other.is_controller and state_at(told_cluster.other).leader == 1
    )
    assert state_at(told_cluster.other).leader_epoch == 1
    await eventually(lambda: 0 in told_cluster.other.image.brokers)
