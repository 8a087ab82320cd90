"""The values of the metadata image."""

from __future__ import annotations

import asyncio

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.codecs import PartitionState, TopicAssignment
from minibroker.broker.cluster.image import (
    NO_LEADER,
    BrokerInfo,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from minibroker.broker.cluster.updates import STATES_PER_STEP, ImageUpdater, replace_partition
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from tests.support.cluster import Recorder
from tests.support.evidence import MARKED
from tests.support.images import partition_image
from tests.support.turns import Turns
from tests.support.waiting import eventually


def partition(leader: int = 1) -> PartitionImage:
    return partition_image(leader=leader, replicas=[1], isr=[1])


def test_partitions_are_equal_by_value_and_not_hashable() -> None:
    assert partition() == partition()
    assert partition() != partition(2)
    assert partition() != "partition"
    with pytest.raises(TypeError):
        hash(partition())
    assert "leader=1" in repr(partition())


@pytest.mark.parametrize(
    ("name", "is_internal"),
    [("__consumer_offsets", True), ("__transaction_state", True), ("__other", False), ("t", False)],
)
def test_internal_topics_are_known_by_name(name: str, is_internal: bool) -> None:
    topic = TopicImage(name, TopicId(bytes(16)), [])
    assert topic.is_internal is is_internal
    assert name in repr(topic)


def test_endpoint_of_a_listener() -> None:
    inside, outside = Endpoint("INSIDE", "a", 1), Endpoint("OUTSIDE", "b", 2)
    info = BrokerInfo(1, (inside, outside))
    assert info.endpoint("OUTSIDE") is outside
    assert info.endpoint("NONE") is None


# Notices to listeners for each change of the image; applying a change twice is silent.


ID_A, ID_B = TopicId(b"a" * 16), TopicId(b"b" * 16)


@pytest.fixture
def heard() -> Recorder:
    """The updater's listener."""
    return Recorder()


@pytest.fixture
async def updater(heard: Recorder) -> ImageUpdater:
    """An updater whose image knows brokers 1 and 2."""
    new_updater = ImageUpdater(MetadataImage())
    new_updater.listeners.append(heard)
    await new_updater.apply_brokers({1: BrokerInfo(1, ()), 2: BrokerInfo(2, ())})
    return new_updater


def topic(
    updater: ImageUpdater, topic_id: TopicId | None = ID_A, *leaders: int, epoch: int = 0
) -> TopicImage:
    replicas = {index: [1, 2] for index in range(len(leaders))}
    states = [(PartitionState(leader, epoch, [1, 2], 1), epoch) for leader in leaders]
    assignment = TopicAssignment(topic_id, replicas, {}, {})
    return TopicImage(
        "t", topic_id or ZERO_TOPIC_ID, list(updater.known_partitions("t", assignment, states))
    )


def test_new_partitions_with_the_same_replicas_share_one_image(updater: ImageUpdater) -> None:
    first, second, third = updater.new_partitions([[1], [2], [1]])
    assert first is third
    assert (first.replicas, second.replicas) == ([1], [2])
    assert (first.leader, first.partition_epoch) == (NO_LEADER, -1)


class FaultyListener(Recorder):
    """A listener that fails at every state of a partition."""

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        raise RuntimeError(f"cannot take {topic.name}-{partition}")


def test_a_fault_of_one_listener_costs_the_others_nothing(
    updater: ImageUpdater, heard: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    updater.apply_states(topic(updater, ID_A, 1, 1), [0, 1])
    updater.listeners.insert(0, FaultyListener())
    heard.take()
    updater.apply_states(topic(updater, ID_A, 2, 2), [0, 1])
    assert heard.take() == [("leadership", "t", 0), ("leadership", "t", 1)]
    assert "cannot take t-0" in caplog.text
    assert "cannot take t-1" in caplog.text


def test_states_of_a_few_partitions_are_told_and_no_others(
    updater: ImageUpdater, heard: Recorder
) -> None:
    updater.apply_states(topic(updater, ID_A, 1, 1), [0, 1])
    updater.apply_states(topic(updater, ID_A, 2, 2), [1])
    updater.apply_states(topic(updater, ID_A, 2, 2, 2), [2])
    assert heard.take() == [("created", "t", 2), ("leadership", "t", 1), ("added", "t", 2, 3)]
    assert len(updater.image.topics["t"].partitions) == 3


async def test_topic_is_told_once(updater: ImageUpdater, heard: Recorder) -> None:
    await updater.apply_topic(topic(updater, ID_A, 1, 2))
    await updater.apply_topic(topic(updater, ID_A, 1, 2))
    assert heard.take() == [("created", "t", 2)]
    assert updater.image.topic_by_id[ID_A] is updater.image.topics["t"]


async def test_only_partitions_that_changed_are_told(
    updater: ImageUpdater, heard: Recorder
) -> None:
    await updater.apply_topic(topic(updater, ID_A, 1, 2))
    await updater.apply_topic(topic(updater, ID_A, 1, 1, 2))
    assert heard.take()[1:] == [("added", "t", 2, 3), ("leadership", "t", 1)]


async def test_another_id_is_another_topic(updater: ImageUpdater, heard: Recorder) -> None:
    await updater.apply_topic(topic(updater, ID_A, 1))
    await updater.apply_topic(topic(updater, ID_B, 1))
    assert heard.take() == [("created", "t", 1), ("missing", "t"), ("created", "t", 1)]
    assert set(updater.image.topic_by_id) == {ID_B}


async def test_topic_that_gets_its_id_stays_the_same(
    updater: ImageUpdater, heard: Recorder
) -> None:
    """Its partitions are told: a follower fetches by the id."""
    await updater.apply_topic(topic(updater, None, 1))
    assert updater.image.topics["t"].topic_id == ZERO_TOPIC_ID
    assert updater.image.topic_by_id == {}
    await updater.apply_topic(topic(updater, ID_A, 1))
    assert heard.take() == [("created", "t", 1), ("leadership", "t", 0)]
    assert set(updater.image.topic_by_id) == {ID_A}


async def test_removal_takes_the_config_along(updater: ImageUpdater, heard: Recorder) -> None:
    updater.delete_topic("t", MARKED)
    await updater.apply_topic(topic(updater, ID_A, 1))
    updater.apply_config("topics", "t", {"a": "b"})
    updater.delete_topic("t", MARKED)
    assert heard.take() == [
        ("created", "t", 1),
        ("config", "topics", "t"),
        ("deleted", "t", MARKED.kind),
    ]
    assert updater.image.configs == {"topics": {}}


def test_config_of_a_topic_to_come_is_kept_silently(updater: ImageUpdater, heard: Recorder) -> None:
    updater.apply_config("topics", "t", {"a": "b"})
    assert heard.take() == []
    assert updater.image.configs["topics"]["t"] == {"a": "b"}


def test_config_is_told_when_it_differs(updater: ImageUpdater, heard: Recorder) -> None:
    for config in ({"a": "1"}, {"a": "1"}, {"a": "2"}, {}, {}):
        updater.apply_config("users", "u", config)
    assert heard.take() == [("config", "users", "u")] * 3
    assert updater.image.configs["users"] == {}


async def test_broker_that_leaves_makes_replicas_offline(
    updater: ImageUpdater, heard: Recorder
) -> None:
    await updater.apply_topic(topic(updater, ID_A, 1, 2))
    heard.take()
    assert await updater.apply_brokers({1: BrokerInfo(1, ())})
    assert updater.image.topics["t"].partitions[0].offline == [2]
    assert heard.take() == [("leadership", "t", 0), ("leadership", "t", 1)]
    assert not await updater.apply_brokers({1: BrokerInfo(1, (), "rack")})
    assert updater.image.brokers[1].rack == "rack"
    assert heard.take() == []
    assert await updater.apply_brokers({1: BrokerInfo(1, ()), 2: BrokerInfo(2, ())})
    assert updater.image.topics["t"].partitions[0].offline == []


def test_equal_lists_are_one_list(updater: ImageUpdater) -> None:
    topic_image = topic(updater, ID_A, 1, 1)
    assert topic_image.partitions[0].replicas is topic_image.partitions[1].replicas
    assert topic_image.partitions[0].adding is topic_image.partitions[1].offline


def test_new_neighbours_with_equal_values_are_one_image(updater: ImageUpdater) -> None:
    first, second, third, last = topic(updater, ID_A, 1, 1, 2, 1).partitions
    assert first is second
    assert (first.leader, third.leader) == (1, 2)
    assert last == first


def test_a_replica_that_failed_is_offline_in_its_partition_only(updater: ImageUpdater) -> None:
    updater.failed_replicas.add(2, [TopicPartition("t", 1)])
    partitions = topic(updater, ID_A, 1, 1, 1).partitions
    assert [partition.offline for partition in partitions] == [[], [2], []]


async def test_a_replica_that_fails_while_its_topic_goes_is_none_of_the_next_topic(
    updater: ImageUpdater,
) -> None:
    await updater.apply_topic(topic(updater, ID_A, 1))
    updater.begin_deletion(updater.image.topics["t"], MARKED)
    await updater.note_failed_replicas(2, [TopicPartition("t", 0)])
    updater.delete_topic("t", MARKED)
    assert topic(updater, ID_B, 1).partitions[0].offline == []


def test_partition_without_state(updater: ImageUpdater) -> None:
    assignment = TopicAssignment(ID_A, {0: [1, 9]}, {0: [9]}, {})
    (partition,) = updater.known_partitions("t", assignment, [None])
    assert (partition.leader, partition.isr, partition.offline, partition.adding) == (
        -1,
        [],
        [9],
        [9],
    )
    assert partition.partition_epoch == -1


def test_replace_partition_keeps_the_rest(updater: ImageUpdater) -> None:
    (first_image,) = topic(updater, ID_A, 1).partitions
    after = replace_partition(first_image, state=PartitionState(2, 5, [2], 3), partition_epoch=7)
    assert (after.leader, after.leader_epoch, after.isr) == (2, 5, [2])
    assert (after.controller_epoch, after.partition_epoch) == (3, 7)
    assert after.replicas is first_image.replicas
    assert replace_partition(first_image) == first_image


async def test_names_that_collide_in_metrics_are_known(updater: ImageUpdater) -> None:
    for name in ("a.b", "a_b", "ab"):
        await updater.apply_topic(TopicImage(name, ZERO_TOPIC_ID, []))
    assert updater.colliding_with("a.b") == ["a_b"]
    assert updater.colliding_with("ab") == []
    updater.delete_topic("a_b", MARKED)
    assert updater.colliding_with("a.b") == []
    updater.delete_topic("a.b", MARKED)
    assert updater.colliding_with("a_b") == []


async def test_waiting_for_a_topic(updater: ImageUpdater) -> None:
    arrived = asyncio.ensure_future(
        updater.wait_for_topic("t", lambda topic_image: topic_image is not None, 10)
    )
    led = asyncio.ensure_future(
        updater.wait_for_topic(
            "t", lambda topic_image: bool(topic_image and topic_image.partitions[0].leader == 2), 10
        )
    )
    await asyncio.sleep(0)
    await updater.apply_topic(topic(updater, ID_A, 1))
    await arrived
    assert not led.done()
    await updater.apply_topic(topic(updater, ID_A, 2, epoch=1))
    await led
    removal = asyncio.ensure_future(
        updater.wait_for_topic("t", lambda topic_image: topic_image is None, 10)
    )
    await asyncio.sleep(0)
    updater.delete_topic("t", MARKED)
    await removal
    with pytest.raises(TimeoutError):
        await updater.wait_for_topic("t", lambda topic_image: topic_image is not None, 0.01)
    assert updater._waiters == []


async def test_a_large_topic_comes_a_few_partitions_at_a_time(
    updater: ImageUpdater, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there at once, and its partitions get their leaders one step after the other."""
    count = 10 * STATES_PER_STEP
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    applied = asyncio.create_task(updater.apply_topic(topic(updater, ID_A, *[1] * count)))
    await eventually(lambda: "t" in updater.image.topics)
    partitions = updater.image.topics["t"].partitions
    assert [state.leader for state in partitions] == [1] * 4 + [NO_LEADER] * (count - 4)
    await applied
    assert turns.stop() >= count
    assert [state.leader for state in updater.image.topics["t"].partitions] == [1] * count
    events = [("leadership", "t", index) for index in range(STATES_PER_STEP, count)]
    assert heard.take() == [("created", "t", count), *events]


async def test_work_that_is_broken_off_goes_on_where_it_was(
    updater: ImageUpdater, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listeners have heard of each partition that the image has, and hear of the others later."""
    count = 10 * STATES_PER_STEP
    await updater.apply_topic(topic(updater, ID_A, *[1] * count))
    heard.take()
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    leaders = topic(updater, ID_A, *[2] * count, epoch=1)
    applied = asyncio.create_task(updater.apply_topic(leaders))
    await eventually(lambda: updater.image.topics["t"].partitions[STATES_PER_STEP].leader == 2)
    applied.cancel()
    await asyncio.gather(applied, return_exceptions=True)
    moved = sum(state.leader == 2 for state in updater.image.topics["t"].partitions)
    assert moved < count
    assert heard.take() == [("leadership", "t", index) for index in range(moved)]
    await updater.apply_topic(leaders)
    assert heard.take() == [("leadership", "t", index) for index in range(moved, count)]


async def test_others_have_their_turn_while_a_broker_leaves(
    updater: ImageUpdater, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 10 * STATES_PER_STEP
    await updater.apply_topic(topic(updater, ID_A, *[1] * count))
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    turns = Turns()
    assert await updater.apply_brokers({1: BrokerInfo(1, ())})
    assert turns.stop() >= count
    assert all(state.offline == [2] for state in updater.image.topics["t"].partitions)
