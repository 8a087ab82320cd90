"""Logs that leave service: deleted, moved away, or without an owner."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.app import Broker
from minibroker.broker.cluster.codecs import encode_topic
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.cluster.tree import Delete
from minibroker.broker.partitions.leaving_logs import REMOVED_AT_ONCE, LogDeletion
from minibroker.broker.partitions.manager import DELETED_AT_ONCE
from minibroker.broker.storage import retention
from minibroker.broker.worker import AT_ONCE, Caller, Workers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicId, TopicPartition
from tests.support.evidence import MARKED
from tests.support.in_process import InProcessBroker, ManualClock, batch_of
from tests.support.logs import values_of
from tests.support.turns import Turns
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import World, code_of, partition_image

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.worker import Done


def deletion_of(world: World, count: int) -> LogDeletion:
    topic = world.create("t", *[partition_image()] * count)
    return LogDeletion(
        topic,
        world.manager.of_topic("t"),
        range(len(topic.partitions)),
        MARKED,
        logs=world.logs,
        delay_ms=5,
        on_failed=lambda _subject, _error: None,
    )


def test_a_step_takes_one_log(world: World) -> None:
    deletion = deletion_of(world, 3)
    counts = [len(world.logs.logs) for _ in deletion.steps()]
    assert counts == [2, 1, 0]


def test_few_timers_wait_for_the_files(world: World) -> None:
    count = 2 * REMOVED_AT_ONCE + 1
    list(deletion_of(world, count).steps())
    assert [delay_ms for delay_ms, _ in world.later] == [5] * 3
    path = world.logs.directories[0].path
    counts = []
    for _, remove in world.later:
        remove()
        counts.append(len(world.files.list_directories(path)))
    assert counts == [REMOVED_AT_ONCE + 1, 1, 0]


def test_a_disk_that_refuses_one_log_costs_no_other(world: World) -> None:
    deletion = deletion_of(world, 3)
    steps = deletion.steps()
    next(steps)
    world.files.fail_at = world.files.call_count + 1
    list(steps)
    assert isinstance(deletion.failure, StorageError)
    assert list(world.logs.logs) == [("t", 1)]


def test_the_end_is_told_after_every_directory(world: World) -> None:
    deletion = deletion_of(world, 2)
    done: list[bool] = []
    list(deletion.steps())
    deletion.settle(AT_ONCE.files, lambda: done.append(True))
    assert done == [True]
    assert deletion.failure is None


def test_a_topic_without_logs_here_has_nothing_to_settle(world: World) -> None:
    topic = world.create("t", partition_image(leader=5, replicas=(5,)))
    deletion = LogDeletion(
        topic,
        {},
        range(len(topic.partitions)),
        MARKED,
        logs=world.logs,
        delay_ms=5,
        on_failed=lambda _subject, _error: None,
    )
    done: list[bool] = []
    list(deletion.steps())
    deletion.settle(AT_ONCE.files, lambda: done.append(True))
    assert done == [True]
    assert world.later == []


def test_the_end_is_told_whatever_went_wrong(world: World) -> None:
    """The request that deletes the topic waits for it."""
    deletion = deletion_of(world, 1)
    list(deletion.steps())
    done: list[bool] = []

    class Refusing(Caller):
        def run_then(self, task: object, done: Done) -> None:
            done(OSError("a worker that cannot be asked"))

    deletion.settle(Workers.by(Refusing()).files, lambda: done.append(True))
    assert done == [True]
    assert isinstance(deletion.failure, StorageError)


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
    directories = world.files.list_directories(world.logs.directories[0].path)
    assert [name.endswith("-delete") for name in directories] == [True] * 3
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


async def test_a_directory_that_fails_while_a_topic_goes_is_no_business_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large topic goes in slices. The next one of its name has no log in the failed directory."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    (tmp_path / "other").mkdir()
    world = World(tmp_path, [str(tmp_path / "other")])
    topic = world.create("t", *[partition_image()] * (DELETED_AT_ONCE + 1))
    world.delete("t")
    world.image.hidden_topics["t"] = topic.topic_id
    lost = world.logs.fail_directory(str(tmp_path / "other"))
    assert lost
    world.manager.take_offline(lost)
    del world.image.hidden_topics["t"]
    other = TopicImage("t", TopicId(b"\2" * 16), topic.partitions)
    world.image.topics["t"] = world.image.topic_by_id[other.topic_id] = other
    world.manager.begin()
    world.manager.on_topic_created(other)
    assert world.manager.lost == []
    assert all(world.partition("t", index).is_leader for index in range(len(topic.partitions)))
    world.logs.close()


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
    world.image.hidden_topics["t"] = TopicId(bytes(15) + b"\7")
    assert await world.manager.delete_replicas("t", [0], MARKED) == {0: None}
    assert list(world.logs.logs) == [("t", 0)]
    world.image.hidden_topics["t"] = topic.topic_id
    assert await world.manager.delete_replicas("t", [0], MARKED) == {0: None}
    assert world.logs.logs == {}


@pytest.mark.parametrize("index", [1, 2], ids=["a replica", "a replica that was not here"])
async def test_a_replica_that_comes_back_before_its_turn_to_go_stays(
    world: World, monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    """Between two of the logs that a request deletes, another controller gives one back."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    replica = partition_image(leader=5, epoch=3, replicas=(0, 5))
    world.create("t", replica, replica, partition_image(leader=5, epoch=3, replicas=(5,)))
    deletion = asyncio.create_task(world.manager.delete_replicas("t", [0, 1, 2], MARKED))
    await asyncio.sleep(0)
    assert list(world.logs.logs) == [("t", 1)]
    world.change("t", index, partition_image(leader=5, epoch=4, replicas=(0, 5)))
    assert await deletion == {0: None, 3 - index: None}
    assert list(world.logs.logs) == [("t", index)]
    partition = world.manager.replica("t", index)
    assert partition is not None
    assert partition.has_log


def test_a_topic_of_the_same_name_begins_empty(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    world.delete("t")
    world.create("t")
    assert world.partition().log_end_offset == 0


DAY_MS = 86_400_000
SETTINGS = {"log.segment.bytes": "1048576"}


class Claim:
    """An answer to Produce, as far as a partition is interested in it."""

    error_code = 0
    base_offset = log_append_time_ms = log_start_offset = -1


def append(broker: Broker, name: str, value: bytes) -> None:
    partition = broker.partitions.get(name, 0)
    batch = memoryview(batch_of(value, timestamp=broker.clock.now_ms()))
    partition.append(batch, -1, broker.clock.now_ms(), Claim())
    broker.partitions.commit()


async def open_tree(path: Path) -> EmbeddedTree:
    """The tree of a broker that does not run."""
    tree = EmbeddedTree(path / "data/minibroker-metadata.db", ManualClock())
    await tree.open()
    return tree


async def forget_topic(path: Path, name: str) -> None:
    """Let the tree know nothing of a topic, as when it was deleted by somebody else."""
    tree = await open_tree(path)
    paths = [*reversed(await tree.subtree(f"/brokers/topics/{name}")), f"/config/topics/{name}"]
    await tree.multi([Delete(node) for node in paths])
    await tree.close()


@pytest.fixture
async def forgotten(tmp_path: Path) -> Path:
    """A broker's directory with the logs of two topics, of which its tree knows `known` only."""
    async with InProcessBroker(tmp_path, SETTINGS, clock=ManualClock()) as running:
        for name in ("forgotten", "known"):
            await running.create_topic(name)
            append(running.broker, name, b"old")
            # Retention could take it: it is closed, and its topic keeps records for ever.
            running.partitions.get(name, 0).log.roll()
            append(running.broker, name, b"older than a week soon")
    await forget_topic(tmp_path, "forgotten")
    return tmp_path


async def test_a_log_without_a_topic_is_named_and_kept_whole(
    forgotten: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    async with InProcessBroker(forgotten, SETTINGS, clock=clock) as running:
        logs = running.broker.logs
        assert "forgotten" not in running.broker.cluster.image.topics
        assert "no topic of this cluster owns 1 of the logs" in caplog.text
        assert str(forgotten / "data/forgotten-0") in caplog.text
        assert "known-0" not in caplog.text
        clock.advance(30 * DAY_MS)
        for name, segments_left in (("known", 1), ("forgotten", 2)):
            log = logs.get(name, 0)
            assert log is not None
            retention.delete_old_segments(log, log.log_end_offset, clock.now_ms())
            assert len(log.segments) == segments_left
    async with InProcessBroker(forgotten, SETTINGS, clock=ManualClock()) as running:
        kept_log = running.broker.logs.get("forgotten", 0)
        assert kept_log is not None
        assert values_of(kept_log) == [b"old", b"older than a week soon"]


async def test_a_topic_of_its_name_begins_empty_and_serves_at_once(forgotten: Path) -> None:
    async with InProcessBroker(forgotten, SETTINGS, clock=ManualClock()) as running:
        await running.create_topic("forgotten")
        append(running.broker, "forgotten", b"new")
        assert values_of(running.partitions.get("forgotten", 0).log) == [b"new"]
    async with InProcessBroker(forgotten, SETTINGS, clock=ManualClock()) as running:
        assert values_of(running.partitions.get("forgotten", 0).log) == [b"new"]
        assert values_of(running.partitions.get("known", 0).log)[0] == b"old"
    (stray,) = (forgotten / "data").glob("forgotten-0.*-stray")
    assert b"old" in (stray / "00000000000000000000.log").read_bytes()


async def test_a_topic_that_was_made_again_meanwhile_serves_from_the_start(
    forgotten: Path,
) -> None:
    """The tree has its name, with another id than the log."""
    tree = await open_tree(forgotten)
    await tree.set("/brokers/topics/known", encode_topic(new_topic_id(), [[0]]))
    await tree.close()
    async with InProcessBroker(forgotten, SETTINGS, clock=ManualClock()) as running:
        assert values_of(running.partitions.get("known", 0).log) == []
        append(running.broker, "known", b"new")
    (stray,) = (forgotten / "data").glob("known-0.*-stray")
    assert b"old" in (stray / "00000000000000000000.log").read_bytes()


def withdraw(world: World, name: str = "t") -> TopicImage:
    """Let the metadata have a topic no more, and say nothing of a deletion."""
    topic = world.image.topics.pop(name)
    del world.image.topic_by_id[topic.topic_id]
    world.manager.on_topic_missing(topic)
    return topic


def test_the_log_of_a_missing_topic_is_kept_and_not_served(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    directory = world.partition().log.directory
    withdraw(world)
    assert code_of(world, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.files.exists(directory)
    assert world.later == []
    assert "topic t is not in the metadata any more" in caplog.text
    log = world.logs.get("t", 0)
    assert log is not None
    log.roll()
    world.clock.advance(30 * DAY_MS)
    retention.delete_old_segments(log, log.log_end_offset, world.clock.now_ms())
    assert values_of(log) == [b"x"]


def test_a_topic_that_comes_back_is_served_from_its_log(world: World) -> None:
    world.create("t", partition_image(replicas=(0, 1), isr=(0,)))
    world.append(b"x")
    world.manager.commit()
    partition = world.partition()
    partition.advance_high_watermark(1)
    rules = partition.log.config
    topic = withdraw(world)
    assert not partition.has_log
    assert world.logs.get("t", 0).config is not rules  # type: ignore[union-attr]
    world.image.topics["t"] = world.image.topic_by_id[topic.topic_id] = topic
    world.manager.on_topic_created(topic)
    after = world.partition()
    assert values_of(after.log) == [b"x"]
    assert after.high_watermark == 1
    assert after.log.config.retention_ms == rules.retention_ms
    world.append(b"y")
    world.manager.commit()
    assert values_of(after.log) == [b"x", b"y"]


async def test_a_large_topic_goes_missing_in_slices_and_may_come_back_before_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    count = 5 * DELETED_AT_ONCE
    world.create("t", *[partition_image()] * count)
    partitions = list(world.manager.of_topic("t").values())
    turns = Turns()
    topic = withdraw(world)
    assert any(partition.has_log for partition in partitions)
    await eventually(lambda: not any(partition.has_log for partition in partitions))
    assert turns.stop() >= count - 1
    world.create("t", *[partition_image()] * count)
    partitions = list(world.manager.of_topic("t").values())
    withdraw(world)
    world.image.topics["t"] = world.image.topic_by_id[topic.topic_id] = topic
    world.manager.on_topic_created(topic)
    assert not any(partition.has_log for partition in partitions)
    assert all(partition.has_log for partition in world.manager.of_topic("t").values())
    assert len(world.logs.logs) == count


def test_another_topic_of_the_name_moves_the_log_of_the_missing_one_aside(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    withdraw(world)
    other = TopicImage("t", TopicId(b"\2" * 16), [partition_image()])
    world.image.topics["t"] = world.image.topic_by_id[other.topic_id] = other
    world.manager.on_topic_created(other)
    assert values_of(world.partition().log) == []
    names = world.files.list_directories(world.logs.directories[0].path)
    assert sorted(name.rpartition("-")[2] for name in names) == ["0", "stray"]


def test_a_lost_partition_stays_lost_while_its_topic_is_missing(world: World) -> None:
    """Its log may be in the offline directory: it must not begin anew in another one."""
    world.create("t")
    world.manager.take_offline([TopicPartition("t", 0)])
    topic = withdraw(world)
    world.image.topics["t"] = world.image.topic_by_id[topic.topic_id] = topic
    world.manager.on_topic_created(topic)
    assert code_of(world, "t", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    withdraw(world)
    other = TopicImage("t", TopicId(b"\2" * 16), [partition_image()])
    world.image.topics["t"] = world.image.topic_by_id[other.topic_id] = other
    world.manager.on_topic_created(other)
    assert world.partition().is_leader
