"""A broker that creates, fills and deletes topics until it kills itself at one of its steps.

A step is a call that changes a file or the metadata tree. The broker kills itself before one of
them: some steps after its start, or after it began to create, fill or delete a topic. So each step
of a deletion is met, and each state between two steps.

As a program it is a nursery: for each line `DIRECTORY SEED ZOOKEEPER` on stdin (`-`: the embedded
tree) it forks a broker. The broker reports on stdout what it begins and what was answered:
`begin create NAME LIFE PARTITIONS`, `done create NAME LIFE PARTITIONS`, likewise `delete` and
`produce` (with the partition, and the record's number in it). LIFE numbers the topics of one name.
The nursery ends with `gone 1` where the broker was killed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from inspect import getattr_static
from itertools import count
from typing import TYPE_CHECKING, Any

from minibroker.broker.app import Broker
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.storage.files import Files
from minibroker.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minibroker.kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.crash.nursery import fork_for_each_line
from tests.support.in_process import RawClient, batch_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LASTING = "kept"
NAMES = ["a", "b", LASTING]
WIDE_PARTITIONS = 260
"""More partitions than one transaction of the tree deletes."""
ACTIONS_MAX = 14
STEPS = {"start": 60, "create": 40, "produce": 12, "delete": 20}
WIDE_STEPS = 1_200
CHANGES = (
    "pwritev",
    "truncate",
    "sync",
    "replace",
    "link",
    "remove",
    "make_directory",
    "remove_directory",
    "sync_directory",
)


def settings_of(directory: str | Path, zookeeper: str | None) -> dict[str, str]:
    """Return settings for the brokers that are killed and for the one that checks afterwards."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": f"{directory}/one,{directory}/two",
        "auto.create.topics.enable": "false",
        "log.segment.delete.delay.ms": "0",
        "zookeeper.session.timeout.ms": "6000",
    }
    return settings if zookeeper is None else {**settings, "zookeeper.connect": zookeeper}


def value_of(life: int, number: int) -> bytes:
    return b"%d/%d" % (life, number)


class Mortal:
    """Counts steps and kills the process at one of them."""

    def __init__(self) -> None:
        self._steps = count(1)
        self._last = 0
        self.dies_at = -1

    def step(self) -> None:
        self._last = next(self._steps)
        if self._last == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, steps: int) -> None:
        """Kill the process after this many steps."""
        self.dies_at = self._last + steps

    def watch(self, kind: type, names: tuple[str, ...]) -> None:
        """Count every call of these methods as a step."""
        for name in names:
            stepping = self._stepping(getattr(kind, name))
            is_static = isinstance(getattr_static(kind, name), staticmethod)
            setattr(kind, name, staticmethod(stepping) if is_static else stepping)

    def _stepping(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return method(*args, **kwargs)

        return call


class MortalFiles(Files):
    """The real files, whose methods may be replaced."""


class Life:
    """One broker and its client."""

    def __init__(self, client: RawClient, chance: random.Random, mortal: Mortal) -> None:
        self.client = client
        self.chance = chance
        self.mortal = mortal
        self.partitions: dict[str, int] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        self.lives: dict[str, int] = {}

    def report(self, *words: object) -> None:
        os.write(1, " ".join(map(str, words)).encode() + b"\n")

    async def turn(self, name: str, action: str) -> None:
        partitions = self.partitions.get(name)
        if action == "create" and partitions is None:
            await self._create(name)
        elif action == "delete" and partitions is not None and name != LASTING:
            await self._delete(name)
        elif partitions is not None:
            await self._produce(name, self.chance.randrange(partitions))

    async def _create(self, name: str) -> None:
        wide = name != LASTING and self.chance.random() < 0.1
        partitions = WIDE_PARTITIONS if wide else self.chance.randrange(1, 4)
        self.lives[name] = life = self.chance.randrange(1 << 40)
        self.report("begin", "create", name, life, partitions)
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = await self.client.call(CreateTopicsRequest(topics=[topic]), 4)
        assert [topic.error_code for topic in answer.topics] == [0]
        self.report("done", "create", name, life, partitions)
        self.partitions[name] = partitions
        self.numbers = {key: number for key, number in self.numbers.items() if key[0] != name}

    async def _delete(self, name: str) -> None:
        self.report("begin", "delete", name, self.lives[name], 0)
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        answer = await self.client.call(request, 4)
        assert [response.error_code for response in answer.responses] == [0]
        self.report("done", "delete", name, self.lives[name], 0)
        del self.partitions[name]

    async def _produce(self, name: str, index: int) -> None:
        number = self.numbers.get((name, index), 0)
        self.numbers[name, index] = number + 1
        life = self.lives[name]
        self.report("begin", "produce", name, life, index, number)
        await produce(self.client, name, index, value_of(life, number))
        self.report("done", "produce", name, life, index, number)


async def produce(client: RawClient, name: str, index: int, value: bytes) -> None:
    """Send one record with acks=all; it must be accepted."""
    data = PartitionProduceData(index=index, records=memoryview(batch_of(value)))
    topics = [TopicProduceData(name=name, partition_data=[data])]
    answer = await client.call(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), 7)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def _live(directory: str, seed: int, zookeeper: str | None) -> None:
    """Work until the killing step; kill a broker that never reaches it at the end."""
    chance = random.Random(seed)
    mortal = Mortal()
    mortal.watch(MortalFiles, CHANGES)
    tree = EmbeddedTree if zookeeper is None else ZooKeeperTree
    mortal.watch(tree, ("create", "delete", "flush", "multi", "set"))
    moment = chance.choice(["start", "create", "produce", "delete", "delete", "delete"])
    if moment == "start":
        mortal.arm(chance.randrange(1, STEPS[moment]))
    broker = Broker(BrokerConfig(settings_of(directory, zookeeper)), files=MortalFiles())
    await broker.start()
    client = RawClient(*await asyncio.open_connection(*broker.address), "load")
    life = Life(client, chance, mortal)
    for name, topic in broker.cluster.image.topics.items():
        life.partitions[name] = len(topic.partitions)
        life.lives[name] = chance.randrange(1 << 40)
    for _ in range(ACTIONS_MAX):
        name = chance.choice(NAMES)
        action = chance.choice(["create", "produce", "produce", "delete"])
        if action == moment and mortal.dies_at < 0:
            is_wide = life.partitions.get(name) == WIDE_PARTITIONS
            mortal.arm(chance.randrange(1, WIDE_STEPS if is_wide else STEPS[moment]))
        await life.turn(name, action)
    os.kill(os.getpid(), signal.SIGKILL)


def _work(directory: str, seed: str, zookeeper: str) -> None:
    asyncio.run(_live(directory, int(seed), None if zookeeper == "-" else zookeeper))


if __name__ == "__main__":
    fork_for_each_line(_work)
