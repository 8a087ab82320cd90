"""Logs that no topic owns, at a start or later: named, kept whole, never in a new topic's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker import slices
from minibroker.broker.app import Broker
from minibroker.broker.cluster.codecs import encode_topic
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.cluster.tree import Delete
from minibroker.broker.partitions.manager import DELETED_AT_ONCE
from minibroker.broker.storage import retention
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicId, TopicPartition
from tests.support.in_process import InProcessBroker, ManualClock, batch_of
from tests.support.logs import values_of
from tests.support.turns import Turns
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import code_of, partition_image

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.broker.partitions.conftest import World

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
    gone = [*reversed(await tree.subtree(f"/brokers/topics/{name}")), f"/config/topics/{name}"]
    await tree.multi([Delete(node) for node in gone])
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
        found = running.broker.logs.get("forgotten", 0)
        assert found is not None
        assert values_of(found) == [b"old", b"older than a week soon"]


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
    before = world.partition()
    before.advance_high_watermark(1)
    rules = before.log.config
    topic = withdraw(world)
    assert not before.has_log
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
    before = list(world.manager.of_topic("t").values())
    turns = Turns()
    topic = withdraw(world)
    assert any(partition.has_log for partition in before)
    await eventually(lambda: not any(partition.has_log for partition in before))
    assert turns.stop() >= count - 1
    world.create("t", *[partition_image()] * count)
    before = list(world.manager.of_topic("t").values())
    withdraw(world)
    world.image.topics["t"] = world.image.topic_by_id[topic.topic_id] = topic
    world.manager.on_topic_created(topic)
    assert not any(partition.has_log for partition in before)
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
