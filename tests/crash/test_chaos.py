"""kill -9 at any step of mixed work: what a reader of committed records finds afterwards.

The work is that of `chaos_load`. After each kill a broker starts on the same directories. A client
ends the open transactions and reads every partition over the wire, as a consumer with
`isolation.level=read_committed` does. Then each acknowledged record and each record of a committed
transaction is there once, at its offset and in order; none of an aborted transaction is, and none
before the log's start. `MINIBROKER_CHAOS=100` runs 100 rounds.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import Broker
from minibroker.broker.storage import names
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.record import decode_records
from tests.crash.chaos_load import (
    LOG_DIRECTORIES,
    NAMES,
    PLAIN,
    TRANSACTIONAL_IDS,
    init_producer,
    offset_of,
    settings_of,
)
from tests.crash.nursery import Nursery
from tests.support.in_process import InProcessBroker
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.in_process import RawClient

ROUNDS = int(os.environ.get("MINIBROKER_CHAOS", "12"))
READ_COMMITTED = 1


@dataclass
class SentRecord:
    """A record that was sent. `fate`: whether readers must (yes), may (maybe) or must not (no) find
    it.
    """

    value: int
    fate: str
    offset: int | None = None


@dataclass
class Partition:
    """The records of one partition in the order in which they were sent, and its start.

    A start that DeleteRecords set is durable with the next checkpoint: a kill may take it, as one
    of Kafka. Only its last offset is known for sure after a start.
    """

    records: dict[int, SentRecord] = field(default_factory=dict)
    start_min: int = 0
    start_max: int = 0


@dataclass
class Topic:
    """The partitions of a topic. `is_certain` is False while a request is not answered."""

    partitions: list[Partition]
    is_certain: bool = False
    is_leaving: bool = False
    count_max: int = 0


class World:
    """All topics, from the reports of the brokers."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.transactions: dict[str, list[SentRecord]] = {}

    def note(self, word: str, *rest: str) -> None:
        """Take one line of a report."""
        getattr(self, f"_{word}")(*rest)

    def _begin(self, action: str, name: str, *rest: str) -> None:
        if action == "create":
            count = int(rest[0])
            self.topics[name] = Topic([Partition() for _ in range(count)], count_max=count)
            return
        topic = self.topics[name]
        if action == "grow":
            topic.count_max = int(rest[0])
        elif action == "delete":
            topic.is_leaving = True
        else:
            partition = topic.partitions[int(rest[0])]
            partition.start_max = max(partition.start_max, int(rest[1]))

    def _done(self, action: str, name: str, *rest: str) -> None:
        topic = self.topics[name]
        if action == "create":
            topic.is_certain = True
        elif action == "grow":
            topic.partitions.append(Partition())
        elif action == "delete":
            del self.topics[name]

    def _send(self, number: str, name: str, index: str, value: str) -> None:
        record = SentRecord(int(value), "maybe" if int(number) == PLAIN else "no")
        self.topics[name].partitions[int(index)].records[record.value] = record
        if int(number) != PLAIN:
            self.transactions.setdefault(number, []).append(record)

    def _wrote(self, name: str, index: str, value: str, offset: str) -> None:
        record = self.topics[name].partitions[int(index)].records[int(value)]
        record.offset = int(offset)
        if record.fate == "maybe":
            record.fate = "yes"

    def _ending(self, number: str, outcome: str) -> None:
        for record in self.transactions[number]:
            record.fate = "maybe" if outcome == "commit" else "no"

    def _ended(self, number: str, outcome: str) -> None:
        for record in self.transactions.pop(number):
            record.fate = "yes" if outcome == "commit" else "no"

    def forget_transactions(self) -> None:
        """Forget those that were open: somebody aborts them."""
        self.transactions.clear()


def live_and_die(nursery: Nursery, world: World, directory: Path, seed: int) -> None:
    """Let a broker work on `directory` until it kills itself; take its reports."""
    nursery.fork(directory, seed)
    while words := nursery.report():
        if words[0] == "gone":
            assert words == ["gone", "1"], "the broker ended by itself"
            return
        world.note(*words)


async def read_committed(
    client: RawClient, name: str, index: int, start: int
) -> list[tuple[int, int]]:
    """Return offset and value of each committed record from `start` on, as a consumer finds them.

    Wait until no transaction is open.
    """
    places: list[tuple[int, int]] = []
    aborting: set[int] = set()
    offset, end = start, -1
    async with asyncio.timeout(60):
        while offset != end:
            part = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                isolation_level=READ_COMMITTED,
                topics=[FetchTopic(topic=name, partitions=[part])],
            )
            data = (await client.call(request, 11)).responses[0].partitions[0]
            assert data.error_code == 0
            end = data.high_watermark
            aborted = sorted(
                (entry.first_offset, entry.producer_id) for entry in data.aborted_transactions or ()
            )
            records = memoryview(data.records or b"")
            for position, header in iterate_headers(records):
                while aborted and aborted[0][0] <= header.last_offset:
                    aborting.add(aborted.pop(0)[1])
                batch = records[position : position + header.size_bytes]
                if header.is_control:
                    marker = read_marker(batch, 0, header)
                    if marker is not None and not marker.is_commit:
                        aborting.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborting):
                    places += [
                        (record.offset, int(record.value or b"-1"))
                        for record in decode_records(batch)
                        if record.offset >= offset
                    ]
                offset = header.last_offset + 1
    return places


def check_partition(
    place: str, partition: Partition, start: int, places: list[tuple[int, int]]
) -> None:
    """Check what was read of a partition, and take it for certain from now on."""
    assert partition.start_min <= start <= partition.start_max, place
    order = {value: number for number, value in enumerate(partition.records)}
    positions = [order.get(value, -1) for _, value in places]
    assert -1 not in positions, f"{place}: {places} has a record that nobody sent"
    assert positions == sorted(set(positions)), f"{place}: {places} has one twice, or out of order"
    values = {value for _, value in places}
    for offset, value in places:
        record = partition.records[value]
        assert record.fate != "no", f"{place}: {value} at {offset} was aborted"
        assert record.offset in {None, offset}, f"{place}: {value} is at {offset}"
        assert offset >= start, f"{place}: {value} at {offset} was deleted"
        record.fate, record.offset = "yes", offset
    for record in partition.records.values():
        if record.fate == "yes" and record.value not in values:
            assert record.offset is not None
            assert record.offset < start, f"{place}: {record} is lost"
    partition.records = {
        value: record for value, record in partition.records.items() if value in values
    }
    partition.start_min = partition.start_max = start


async def check(world: World, broker: Broker, client: RawClient) -> None:
    """Check every topic, and forget what is not certain."""
    for transactional_id in TRANSACTIONAL_IDS:
        await init_producer(client, transactional_id)
    world.forget_transactions()
    for name in NAMES:
        topic, topic_metadata = world.topics.get(name), broker.cluster.image.topics.get(name)
        if topic is None or topic_metadata is None:
            assert topic_metadata is None, f"{name} is back"
            assert topic is None or not topic.is_certain or topic.is_leaving, f"{name} is lost"
            world.topics.pop(name, None)
            continue
        topic.is_certain, topic.is_leaving = True, False
        assert len(topic.partitions) <= len(topic_metadata.partitions) <= topic.count_max
        while len(topic.partitions) < len(topic_metadata.partitions):
            topic.partitions.append(Partition())
        topic.count_max = len(topic.partitions)
        for index, partition in enumerate(topic.partitions):
            start = await offset_of(client, name, index, -2)
            places = await read_committed(client, name, index, start)
            check_partition(f"{name}-{index}", partition, start, places)


def check_directories(world: World, directory: Path) -> None:
    """Check that every partition has one log, and that nothing of a move or a deletion is left."""
    paths = [
        path.name
        for log_directory in LOG_DIRECTORIES
        for path in (directory / log_directory).iterdir()
        if path.is_dir() and not path.name.startswith("__")
    ]
    expected = [
        names.partition_directory(name, index)
        for name, topic in world.topics.items()
        for index in range(len(topic.partitions))
    ]
    assert sorted(paths) == sorted(expected)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.crash.chaos_load") as started:
        yield started


async def test_readers_of_committed_records_find_what_was_committed(
    nursery: Nursery, tmp_path: Path
) -> None:
    chance = random.Random(int(os.environ.get("MINIBROKER_CHAOS_SEED", "1")))
    world = World()
    read_count = 0
    for _ in range(ROUNDS):
        live_and_die(nursery, world, tmp_path, chance.randrange(1 << 30))
        async with InProcessBroker(tmp_path, settings_of(tmp_path)) as broker:
            async with await broker.connect() as client:
                await check(world, broker.broker, client)
            moves = broker.broker.services.log_moves
            await eventually(
                lambda moves=moves: (
                    not any(  # type: ignore[misc]
                        moves.in_directory(f"{tmp_path}/{name}") for name in LOG_DIRECTORIES
                    )
                )
            )
            if chance.random() < 0.5:
                await broker.die()
            else:
                await broker.stop()
                check_directories(world, tmp_path)
        read_count += sum(
            len(partition.records)
            for topic in world.topics.values()
            for partition in topic.partitions
        )
    assert read_count
