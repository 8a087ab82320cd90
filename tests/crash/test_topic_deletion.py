"""kill -9 at any step while topics are created, filled, deleted and created again.

After each kill a broker starts on the same directories. Every acknowledged topic is there with its
acknowledged records, every deleted one is gone, a free name can be used at once, and no log is left
without a topic. `MINIBROKER_CRASHES=300` runs 300 rounds.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import Broker
from minibroker.broker.storage import names
from tests.crash.nursery import Nursery
from tests.crash.topic_load import LASTING, NAMES, produce, settings_of, value_of
from tests.support.in_process import InProcessBroker
from tests.support.logs import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.in_process import RawClient
    from tests.support.peers import ZooKeeper

ROUNDS = int(os.environ.get("MINIBROKER_CRASHES", "30"))
ROUNDS_OF_ZOOKEEPER = max(4, ROUNDS // 10)


@dataclass
class Topic:
    """Requests about one topic, and their answers."""

    partitions: int
    values: dict[int, list[bytes]] = field(default_factory=dict)
    answered: dict[int, int] = field(default_factory=dict)
    is_made: bool = False
    is_leaving: bool = False


class World:
    """The topics that must exist, from the reports of the brokers."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}

    def note(self, words: list[str]) -> None:
        moment, action, name, life, *rest = words
        is_done = moment == "done"
        if action == "create":
            if is_done:
                self.topics[name].is_made = True
            else:
                self.topics[name] = Topic(int(rest[0]))
        elif action == "delete":
            self.topics[name].is_leaving = True
            if is_done:
                del self.topics[name]
        else:
            topic, index = self.topics[name], int(rest[0])
            if is_done:
                topic.answered[index] = len(topic.values[index])
            else:
                values = topic.values.setdefault(index, [])
                values.append(value_of(int(life), int(rest[1])))


def live_and_die(
    nursery: Nursery, world: World, directory: Path, seed: int, zookeeper: str
) -> None:
    """Let a broker work on `directory` until it kills itself; record its reports."""
    nursery.fork(directory, seed, zookeeper)
    while words := nursery.report():
        if words[0] == "gone":
            assert words == ["gone", "1"], "the broker ended by itself"
            return
        world.note(words)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.crash.topic_load") as started:
        yield started


def check_topics(world: World, broker: Broker) -> None:
    """Check that acknowledged topics exist, and no others but those of requests in flight."""
    image = broker.cluster.image
    for name in NAMES:
        topic = world.topics.get(name)
        topic_metadata = image.topics.get(name)
        if topic is None or topic_metadata is None:
            assert topic_metadata is None, f"{name} is back"
            assert topic is None or not topic.is_made or topic.is_leaving, f"{name} is lost"
            world.topics.pop(name, None)
            continue
        topic.is_made, topic.is_leaving = True, False
        assert len(topic_metadata.partitions) == topic.partitions
        for index in range(topic.partitions):
            values = values_of(broker.partitions.get(name, index).log)
            sent_values = topic.values.get(index, [])
            assert topic.answered.get(index, 0) <= len(values)
            assert values == sent_values[: len(values)]
            topic.values[index], topic.answered[index] = list(values), len(values)


async def make_what_is_free(world: World, broker: InProcessBroker, client: RawClient) -> None:
    """Create a topic of every free name; it has only the records that are sent to it."""
    for name in NAMES:
        if name not in world.topics:
            await broker.create_topic(name, 2)
            world.topics[name] = Topic(2, is_made=True)
        topic = world.topics[name]
        value = b"after %d" % len(topic.values.get(0, []))
        await produce(client, name, 0, value)
        topic.values.setdefault(0, []).append(value)
        topic.answered[0] = len(topic.values[0])
        assert values_of(broker.partitions.get(name, 0).log) == topic.values[0]


def check_directories(world: World, directory: Path) -> None:
    """Check that every log has a topic, every partition one log, and none is marked deleted."""
    paths = [
        name
        for log_directory in ("one", "two")
        for path in (directory / log_directory).iterdir()
        if path.is_dir()
        for name in [path.name]
    ]
    expected = [
        names.partition_directory(name, index)
        for name, topic in world.topics.items()
        for index in range(topic.partitions)
    ]
    assert sorted(paths) == sorted(expected)


async def rounds(
    nursery: Nursery, directory: Path, count: int, seed: int, zookeeper: str | None
) -> None:
    chance = random.Random(seed)
    world = World()
    for _ in range(count):
        live_and_die(nursery, world, directory, chance.randrange(1 << 30), zookeeper or "-")
        async with InProcessBroker(directory, settings_of(directory, zookeeper)) as broker:
            check_topics(world, broker.broker)
            async with await broker.connect() as client:
                await make_what_is_free(world, broker, client)
            if chance.random() < 0.5:
                await broker.die()
            else:
                await broker.stop()
        check_directories(world, directory)
    assert world.topics[LASTING].values[0]


async def test_a_kill_at_any_step(nursery: Nursery, tmp_path: Path) -> None:
    await rounds(nursery, tmp_path, ROUNDS, 9, None)


@pytest.mark.java
async def test_a_kill_at_any_step_with_zookeeper(
    nursery: Nursery, tmp_path: Path, zookeeper: ZooKeeper
) -> None:
    await rounds(
        nursery, tmp_path, ROUNDS_OF_ZOOKEEPER, 10, f"{zookeeper.connect}/killed-deletions"
    )
