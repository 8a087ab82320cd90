"""Logs of topics and replicas that go: at once, in slices, durably, and where a disk refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.partitions.leaving_logs import REMOVED_AT_ONCE
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicId, TopicPartition
from tests.support.evidence import MARKED
from tests.support.turns import Turns
from tests.unit.broker.partitions.conftest import code_of, partition_image

if TYPE_CHECKING:
    from tests.unit.broker.partitions.conftest import World


def test_each_deletion_of_a_log_is_a_line_that_names_the_evidence(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world.create("t", partition_image(), partition_image())
    directories = [world.partition("t", index).log.directory for index in range(2)]
    world.delete("t")
    assert [record.getMessage() for record in caplog.records] == [
        f"log {directory} is deleted: {MARKED}" for directory in directories
    ]


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
    await world.manager.delete_logs(topic, MARKED)
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
    await world.manager.delete_logs(topic, MARKED)
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
    world.manager.deletions.end(are_finished=are_finished)
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
            await world.manager.delete_logs(topic, MARKED)
    (error,) = refused
    assert error.is_lasting
    assert (await world.manager.delete_replicas("t", [1], MARKED))[1] is error
    world.create("t")
    world.delete("t")
    await world.manager.delete_logs(topic, MARKED)


async def test_a_replica_in_a_failed_directory_is_not_deleted(world: World) -> None:
    world.create("t", partition_image(), partition_image())
    world.manager.take_offline([TopicPartition("t", 1)])
    world.delete("t")
    errors = await world.manager.delete_replicas("t", [0, 1], MARKED)
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
    world.manager.on_topic_deleted(other, MARKED)
    assert list(world.logs.logs) == [("t", 0)]


async def test_a_request_to_delete_an_earlier_topic_leaves_the_log_of_its_namesake(
    world: World,
) -> None:
    """ZooKeeper is an older copy, say, with the mark of a topic that was made again since."""
    topic = world.create("t")
    world.manager.on_topic_missing(topic)
    del world.image.topics["t"]
    world.image.leaving["t"] = TopicId(bytes(15) + b"\7")
    assert await world.manager.delete_replicas("t", [0], MARKED) == {0: None}
    assert list(world.logs.logs) == [("t", 0)]
    world.image.leaving["t"] = topic.topic_id
    assert await world.manager.delete_replicas("t", [0], MARKED) == {0: None}
    assert world.logs.logs == {}


def test_a_topic_of_the_same_name_begins_empty(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    world.delete("t")
    world.create("t")
    assert world.partition().log_end_offset == 0
