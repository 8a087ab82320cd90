"""Finding partitions, following the cluster, and appends that the disk refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker import slices
from minibroker.cluster.image import TopicImage
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, StorageError
from minibroker.ids import TopicId, TopicPartition
from minibroker.partitions.log_deletion import REMOVED_AT_ONCE
from minibroker.partitions.role import Follower, Leader
from tests.support.in_process import START_MS, batch_of
from tests.support.turns import Turns
from tests.unit.partitions.conftest import Claim, partition_image

if TYPE_CHECKING:
    from tests.unit.partitions.conftest import World


def code_of(world: World, name: str, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        world.manager.get(name, index)
    return caught.value.code


# Finding.


def test_a_partition_led_here_is_found(world: World) -> None:
    world.create("t", partition_image(), partition_image())
    assert str(world.manager.get("t", 1)) == "t-1"
    assert world.manager.find("t", 1) is world.manager.get("t", 1)
    assert list(world.manager.of_topic("t")) == [0, 1]


def test_a_partition_that_does_not_exist_is_unknown(world: World) -> None:
    world.create("t")
    assert code_of(world, "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(world, "t", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(world, "u", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.find("u", 0) is None
    assert world.manager.of_topic("u") == {}


def test_a_partition_led_elsewhere_is_not_ours(world: World) -> None:
    world.create("t", partition_image(leader=5), partition_image())
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.manager.find("t", 0) is None
    world.manager.get("t", 1)


@pytest.mark.parametrize(
    ("believed", "expected"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_follower_compares_the_leader_epoch_first(
    world: World, believed: int, expected: ErrorCode
) -> None:
    world.create("t", partition_image(epoch=1))
    world.change("t", 0, partition_image(leader=5, epoch=2))
    with pytest.raises(KafkaError) as caught:
        world.manager.get("t", 0, believed)
    assert caught.value.code == expected


def test_a_broker_without_the_partition_compares_no_leader_epoch(world: World) -> None:
    world.create("t", partition_image(leader=5, epoch=2, replicas=(5,)))
    with pytest.raises(KafkaError) as caught:
        world.manager.get("t", 0, 1)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Following the cluster.


def test_leadership_comes_and_goes(world: World) -> None:
    world.create("t", partition_image(leader=5))
    world.change("t", 0, partition_image(epoch=1))
    world.append(b"x")
    world.manager.commit()
    world.change("t", 0, partition_image(leader=5, epoch=2))
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.change("t", 0, partition_image(epoch=3))
    assert world.partition().log_end_offset == 1
    assert world.partition().leader_epoch == 3


def test_a_new_epoch_of_the_same_leader_keeps_the_partition(world: World) -> None:
    world.create("t")
    before = world.partition()
    world.change("t", 0, partition_image(epoch=4, isr=(0, 1)))
    assert world.partition() is before
    assert isinstance(before.role, Leader)
    assert (before.leader_epoch, before.role.metadata_isr) == (4, [0, 1])


def test_added_partitions_are_made(world: World) -> None:
    world.create("t")
    topic = world.image.topics["t"]
    topic.partitions.extend([partition_image(), partition_image(leader=5)])
    world.manager.on_partitions_added(topic, 1)
    assert list(world.manager.of_topic("t")) == [0, 1]


def test_a_deleted_topic_is_gone_at_once_and_its_files_later(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    directory = world.partition().log.directory
    world.delete("t")
    assert code_of(world, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.files.exists(directory)
    ((delay_ms, task),) = world.later
    assert delay_ms == 60_000
    task()
    (data,) = world.logs.directories
    assert world.files.exists(data.path)
    assert data.path in directory


async def test_the_logs_of_a_topic_that_has_left_go_durably(world: World) -> None:
    topic = world.create("t", partition_image(), partition_image(), partition_image())
    world.append(b"x")
    for directory in world.logs.directories:
        world.logs.settle_deletion(directory.path, [])
    world.delete("t")
    await world.manager.delete_logs(topic)
    assert code_of(world, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ((delay_ms, remove),) = world.later
    assert delay_ms == 60_000
    world.files.power_cut()
    left = world.files.list_directories(world.logs.directories[0].path)
    assert [name.endswith("-delete") for name in left] == [True] * 3
    assert len(world.later) == 1
    remove()
    assert world.files.list_directories(world.logs.directories[0].path) == []


async def test_others_have_their_turn_while_the_logs_of_a_large_topic_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slices of no length, everybody else has a turn after each log."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    topic = world.create("t", *[partition_image()] * 100)
    turns = Turns()
    await world.manager.delete_logs(topic)
    assert turns.stop() >= 100
    assert world.logs.logs == {}


async def test_a_large_topic_that_another_broker_deleted_goes_in_slices(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic of the same name that comes before the end finds nothing of it."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    count = 3 * REMOVED_AT_ONCE + 1
    world.create("t", *[partition_image()] * count)
    world.append(b"x")
    world.manager.commit()
    world.delete("t")
    assert code_of(world, "t", count - 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(world.logs.logs) == count - 1
    world.create("t", partition_image())
    assert list(world.logs.logs) == [("t", 0)]
    assert world.partition().log_end_offset == 0
    assert len(world.later) == 4
    for _, remove in world.later:
        remove()
    assert world.files.list_directories(world.logs.directories[0].path) == ["t-0"]


@pytest.mark.parametrize(("are_finished", "left_count"), [(True, 0), (False, 19)])
async def test_no_log_goes_after_the_logs_are_closed(
    world: World, monkeypatch: pytest.MonkeyPatch, are_finished: bool, left_count: int
) -> None:
    """A stop finishes a deletion that is under way; a process that dies leaves the rest."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    world.create("t", *[partition_image()] * 20)
    world.delete("t")
    world.manager.end_deletions(are_finished=are_finished)
    for _ in range(25):  # more turns than logs
        await asyncio.sleep(0)
    assert len(world.logs.logs) == left_count


@pytest.mark.parametrize("call", [1, 3])
async def test_a_disk_that_does_not_let_go_of_a_log_keeps_the_topic_s_mark(
    world: World, call: int
) -> None:
    """The first call renames a directory, the third syncs the names of both."""
    topic = world.create("t", partition_image(), partition_image())
    refused: list[StorageError] = []
    world.manager.on_storage_error = refused.append
    world.files.fail_at = world.files.call_count + call
    world.delete("t")
    for _ in range(2):  # the next controller asks again
        with pytest.raises(StorageError):
            await world.manager.delete_logs(topic)
    (error,) = refused
    assert error.is_lasting
    assert (await world.manager.delete_replicas("t", [1]))[1] is error
    world.create("t")
    world.delete("t")
    await world.manager.delete_logs(topic)


async def test_a_replica_in_a_failed_directory_is_not_deleted(world: World) -> None:
    world.create("t", partition_image(), partition_image())
    world.manager.take_offline([TopicPartition("t", 1)])
    world.delete("t")
    errors = await world.manager.delete_replicas("t", [0, 1])
    assert errors[0] is None
    assert isinstance(errors[1], StorageError)


def test_a_log_that_nobody_leads_goes_with_its_topic(world: World) -> None:
    world.create("t")
    world.change("t", 0, partition_image(leader=-1))
    world.delete("t")
    assert world.logs.logs == {}


def test_the_log_of_a_namesake_stays(world: World) -> None:
    """Its topic is not the one that is deleted, and this broker never led that."""
    world.create("t")
    world.change("t", 0, partition_image(leader=5))
    other = TopicImage("t", TopicId(bytes(15) + b"\7"), [partition_image(leader=5)])
    world.manager.on_topic_deleted(other)
    assert list(world.logs.logs) == [("t", 0)]


def test_a_topic_of_the_same_name_begins_empty(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    world.delete("t")
    world.create("t")
    assert world.partition().log_end_offset == 0


def test_appends_before_a_deletion_are_still_answered(world: World) -> None:
    world.create("t")
    claim = world.append(b"x")
    world.delete("t")
    assert claim.error_code == 0
    assert world.manager.appends.staged == []


def test_a_log_that_cannot_be_made_is_offline_and_others_are_not(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_log = world.logs.create_log

    def failing(topic: str, *args: object) -> object:
        if topic == "bad":
            raise StorageError("no room")
        return create_log(topic, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(world.logs, "create_log", failing, raising=True)
    world.create("bad")
    world.create("good")
    assert code_of(world, "bad", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    world.manager.get("good", 0)
    assert "bad-0" in caplog.text
    monkeypatch.setattr(world.logs, "create_log", create_log)
    world.change("bad", 0, partition_image(epoch=1))
    world.manager.get("bad", 0)


def test_a_topics_configuration_reaches_its_logs_at_once(world: World) -> None:
    world.create("t")
    world.create("u")
    world.dynamic.set_topic("t", {"max.message.bytes": "100"})
    with pytest.raises(KafkaError) as caught:
        world.append(b"x" * 200)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    world.append(b"x" * 200, name="u")
    world.dynamic.set_topic("t", {})
    world.append(b"x" * 200)


def test_a_brokers_default_reaches_every_log(world: World) -> None:
    world.create("t")
    world.create("u")
    world.dynamic.set_broker({"message.max.bytes": "100"})
    for name in ("t", "u"):
        with pytest.raises(KafkaError):
            world.append(b"x" * 200, name=name)


# Roles.


def test_a_partition_led_elsewhere_follows_with_the_log_that_it_has(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    led = world.partition()
    world.change("t", 0, partition_image(leader=5, epoch=1))
    assert world.manager.replica("t", 0) is led
    assert led.role == Follower(1, 0, 5)
    assert (led.high_watermark, led.log_end_offset) == (1, 1)
    assert world.manager.high_watermark_of(TopicPartition("t", 0)) == 1
    assert world.manager.of_topic("t") == {}


def test_a_follower_without_a_log_makes_one(world: World) -> None:
    world.create("t", partition_image(leader=5))
    follower = world.manager.replica("t", 0)
    assert follower is not None
    assert follower.role == Follower(0, 0, 5)
    assert list(world.logs.logs) == [("t", 0)]


def test_a_log_goes_when_the_broker_has_no_replica_any_more(world: World) -> None:
    world.create("t", partition_image(leader=5, epoch=1))
    world.change("t", 0, partition_image(leader=5, epoch=2, replicas=(5,)))
    assert world.manager.replica("t", 0) is None
    assert world.logs.logs == {}


def test_a_follower_takes_no_append_and_shows_readers_nothing_new(world: World) -> None:
    world.create("t")
    led = world.partition()
    world.change("t", 0, partition_image(leader=5, epoch=1))
    with pytest.raises(KafkaError) as caught:
        led.append(memoryview(batch_of(b"x")), 1, START_MS, Claim())
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    led.log.append_as_leader(memoryview(batch_of(b"x")), 1, START_MS)
    led.log.write_staged()
    led.advance_high_watermark(led.log_end_offset)
    assert led.high_watermark == 0
    world.change("t", 0, partition_image(epoch=2))
    assert (world.partition().high_watermark, led.high_watermark) == (1, 1)


def test_an_older_leader_epoch_is_refused(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.create("t", partition_image(epoch=4))
    world.change("t", 0, partition_image(leader=5, epoch=3))
    assert world.partition().leader_epoch == 4
    world.change("t", 0, partition_image(leader=5, epoch=5))
    world.change("t", 0, partition_image(epoch=4))
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert caplog.text.count("is older than") == 2


def test_an_older_state_of_the_same_epoch_is_refused(world: World) -> None:
    world.create("t", partition_image(partition_epoch=3))
    world.change("t", 0, partition_image(isr=(0, 1), partition_epoch=2))
    role = world.partition().role
    assert isinstance(role, Leader)
    assert role.metadata_isr == [0]


def test_a_replica_that_was_moved_away_is_forgotten(world: World) -> None:
    world.create("t")
    world.change("t", 0, partition_image(leader=5, epoch=1, replicas=(5,)))
    assert world.manager.replica("t", 0) is None
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("checkpointed", "expected"), [(1, 1), (9, 2), (None, 0)])
def test_a_follower_begins_with_the_checkpointed_high_watermark(
    world: World, checkpointed: int | None, expected: int
) -> None:
    """It is capped at the log's end; a leader of one replica goes on to the end."""
    world.create("t")
    world.append(b"x", b"y")
    world.manager.commit()
    world.manager._topics.clear()  # as after a start
    if checkpointed is not None:
        world.logs.high_watermarks[TopicPartition("t", 0)] = checkpointed
    world.change("t", 0, partition_image(leader=5, epoch=2))
    replica = world.manager.replica("t", 0)
    assert replica is not None
    assert replica.high_watermark == expected
    world.change("t", 0, partition_image(epoch=3))
    assert replica.high_watermark == 2


def test_a_follower_learns_its_topics_configuration(world: World) -> None:
    world.create("t")
    led = world.partition()
    world.change("t", 0, partition_image(leader=5, epoch=1))
    world.dynamic.set_topic("t", {"max.message.bytes": "100"})
    assert led.log.config.max_message_bytes == 100
