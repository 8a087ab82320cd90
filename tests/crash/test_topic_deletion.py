"""kill -9 at any step while topics are made, filled, deleted and made again under their names.

After each kill a broker starts on the same directories. Every topic that was answered is there and
has what was answered, every deleted one is gone, a name that is free serves at once, and no log is
left without a topic. `MINIBROKER_CRASHES=300` makes it 300 rounds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.app import Broker
from minibroker.config.broker import BrokerConfig
from minibroker.storage import names
from tests.crash.topic_load import KEPT, NAMES, produce, settings_of, value_of
from tests.support.in_process import InProcessBroker
from tests.support.logs import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.in_process import RawClient
    from tests.support.peers import ZooKeeper

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("MINIBROKER_CRASHES", "30"))
ROUNDS_OF_ZOOKEEPER = max(4, ROUNDS // 10)


@dataclass
class Topic:
    """What was asked of one topic, and answered."""

    partitions: int
    sent: dict[int, list[bytes]] = field(default_factory=dict)
    answered: dict[int, int] = field(default_factory=dict)
    is_made: bool = False
    is_leaving: bool = False


class World:
    """Which topics there must be, from what the brokers reported."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}

    def note(self, line: str) -> None:
        moment, action, name, life, *rest = line.split()
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
                topic.answered[index] = len(topic.sent[index])
            else:
                sent = topic.sent.setdefault(index, [])
                sent.append(value_of(int(life), int(rest[1])))


class Nursery:
    """Where the brokers come from: forked, so that a kill costs no start of Python."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.topic_load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def live_and_die(self, world: World, directory: Path, seed: int, zookeeper: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{directory} {seed} {zookeeper}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("gone"):
                assert line == "gone 1\n", "the broker ended by itself"
                return
            world.note(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


class Restarted(InProcessBroker):
    """The broker that starts after a kill."""

    def __init__(self, directory: Path, zookeeper: str | None) -> None:
        super().__init__(directory, settings_of(directory, zookeeper))

    async def __aenter__(self) -> Restarted:
        self.broker = Broker(BrokerConfig(self.settings))
        await self.broker.start()
        self.is_running = True
        return self

    async def die(self) -> None:
        self.is_running = False
        await self.broker.abandon()


def check_topics(world: World, broker: Broker) -> None:
    """What was answered is there; nothing else is, but for what was under way."""
    image = broker.cluster.image
    for name in NAMES:
        topic = world.topics.get(name)
        known = image.topics.get(name)
        if topic is None or known is None:
            assert known is None, f"{name} is back"
            assert topic is None or not topic.is_made or topic.is_leaving, f"{name} is lost"
            world.topics.pop(name, None)
            continue
        topic.is_made, topic.is_leaving = True, False
        assert len(known.partitions) == topic.partitions
        for index in range(topic.partitions):
            values = values_of(broker.partitions.get(name, index).log)
            sent = topic.sent.get(index, [])
            assert topic.answered.get(index, 0) <= len(values)
            assert values == sent[: len(values)]
            topic.sent[index], topic.answered[index] = list(values), len(values)


async def make_what_is_free(world: World, broker: Restarted, client: RawClient) -> None:
    """Every name serves at once, and a new topic has nothing but what is sent to it."""
    for name in NAMES:
        if name not in world.topics:
            await broker.create_topic(name, 2)
            world.topics[name] = Topic(2, is_made=True)
        topic = world.topics[name]
        value = b"after %d" % len(topic.sent.get(0, []))
        await produce(client, name, 0, value)
        topic.sent.setdefault(0, []).append(value)
        topic.answered[0] = len(topic.sent[0])
        assert values_of(broker.partitions.get(name, 0).log) == topic.sent[0]


def check_directories(world: World, directory: Path) -> None:
    """Every log has a topic, every partition one log, and nothing is on its way out."""
    found = [
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
    assert sorted(found) == sorted(expected)


async def rounds(
    nursery: Nursery, directory: Path, count: int, seed: int, zookeeper: str | None
) -> None:
    chance = random.Random(seed)
    world = World()
    for _ in range(count):
        nursery.live_and_die(world, directory, chance.randrange(1 << 30), zookeeper or "-")
        async with Restarted(directory, zookeeper) as broker:
            check_topics(world, broker.broker)
            async with await broker.connect() as client:
                await make_what_is_free(world, broker, client)
            if chance.random() < 0.5:
                await broker.die()
            else:
                await broker.stop()
        check_directories(world, directory)
    assert world.topics[KEPT].sent[0]


async def test_a_kill_at_any_step(nursery: Nursery, tmp_path: Path) -> None:
    await rounds(nursery, tmp_path, ROUNDS, 9, None)


@pytest.mark.java
async def test_a_kill_at_any_step_with_zookeeper(
    nursery: Nursery, tmp_path: Path, zookeeper: ZooKeeper
) -> None:
    await rounds(
        nursery, tmp_path, ROUNDS_OF_ZOOKEEPER, 10, f"{zookeeper.connect}/killed-deletions"
    )
