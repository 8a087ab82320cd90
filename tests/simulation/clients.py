"""Clients of a run: producers with acks=all, which note what is acknowledged, readers, and what
deletes records.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from minibroker.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record, decode_records
from tests.simulation.connections import FAILURES, Connections, RefusedError
from tests.simulation.loop import START_MS
from tests.simulation.plan import BRIEF_PARTITIONS, BRIEF_TOPIC, TOPIC, UNCLEAN_TOPIC
from tests.simulation.transactions import CommittedReader, TransactionalProducer, Transactions

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tests.simulation.world import World

PRODUCERS = 2
PRODUCE_VERSION, FETCH_VERSION, LIST_OFFSETS_VERSION, DELETE_RECORDS_VERSION = 9, 12, 5, 2
EARLIEST = -2
DELETE_TIMEOUT_MS = 1000


class Clients:
    """The clients of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        plan = world.plan
        self.partitions = [TopicPartition(TOPIC, index) for index in range(plan.partition_count)]
        """Those in which nothing is lost."""
        self._others: list[TopicPartition] = []
        if plan.has_unclean_topic:
            self._others.append(TopicPartition(UNCLEAN_TOPIC, 0))
        if plan.has_brief_topic:
            self._others += [
                TopicPartition(BRIEF_TOPIC, index) for index in range(BRIEF_PARTITIONS)
            ]
        self.acknowledged: dict[TopicPartition, list[tuple[int, bytes]]] = defaultdict(list)
        """Offset and value of each record whose append was acknowledged."""
        self.values: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        """Offset → value of each record that a consumer read."""
        self.transactions = Transactions()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Produce and consume until `stop`."""
        world = self._world
        for number in range(PRODUCERS):
            self._start(self._produce(number))
        self._start(self._consume())
        if world.plan.deletes_records:
            self._start(self._delete_records())
        if world.plan.has_transactions:
            self._start(TransactionalProducer(world, self.transactions, self.partitions, 0).run())
            self._start(TransactionalProducer(world, self.transactions, self.partitions, 1).run())
            self._start(CommittedReader(world, self.transactions, self.partitions).run())

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._world.loop.create_task(work)
        task.add_done_callback(self._world.note_end)
        self._tasks.append(task)

    def stop(self) -> None:
        """Send nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _produce(self, number: int) -> None:
        """Send batches, each with values of its own, one after the other."""
        connections = Connections(self._world, f"producer {number}")
        chance = connections.chance
        record_number = 0
        while True:
            places = self.partitions
            if self._others and chance.random() < 0.3:
                places = self._others
            name = chance.choice(places)
            values = []
            for _ in range(chance.randrange(1, 4)):
                record_number += 1
                values.append(b"%d-%d " % (number, record_number) * chance.randrange(1, 30))
            try:
                await self._send(connections, name, values, chance.choice([-1, -1, 1]))
            except FAILURES:
                await connections.rest(0.01, 0.2)
            await connections.rest(0, 0.1)

    async def _send(
        self, connections: Connections, name: TopicPartition, values: list[bytes], acks: int
    ) -> None:
        """Send one batch, and note that it was acknowledged. Raises FAILURES."""
        records = [Record(0, START_MS, None, value) for value in values]
        data = PartitionProduceData(index=name.partition, records=memoryview(build_batch(records)))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=name.topic, partition_data=[data])],
        )
        leader = connections.leader_of(name)
        answer = await connections.call(leader, request, ProduceResponse, PRODUCE_VERSION)
        partition = answer.responses[0].partition_responses[0]
        if partition.error_code:
            raise RefusedError(partition.error_code)
        if acks == -1:
            self.acknowledged[name] += enumerate(values, partition.base_offset)

    async def _consume(self) -> None:
        """Read from the start to the end, again and again."""
        connections = Connections(self._world, "consumer")
        chance = connections.chance
        offsets = dict.fromkeys(self.partitions, 0)
        while True:
            name = chance.choice(self.partitions)
            try:
                offsets[name] = await self._read(connections, name, offsets[name])
            except FAILURES:
                await connections.rest(0.01, 0.2)
            await connections.rest(0, 0.2)
            if chance.random() < 0.1:
                offsets[name] = 0

    async def _read(self, connections: Connections, name: TopicPartition, offset: int) -> int:
        """Read from `offset`; return where to go on. Raises FAILURES."""
        try:
            answer = await fetch(connections, name, offset)
        except RefusedError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return await start_of(connections, name)
        records = memoryview(bytes(answer.records or b""))
        values = self.values[name]
        for position, header in iterate_headers(records):
            if not header.is_control:
                for record in decode_records(records[position:]):
                    if record.offset >= offset:
                        value = values.setdefault(record.offset, record.value or b"")
                        assert value == record.value, (
                            f"a consumer read {value!r} at offset {record.offset} of {name}, then"
                            f" {record.value!r}"
                        )
            offset = header.last_offset + 1
        return offset

    async def _delete_records(self) -> None:
        """Delete the first records of a partition now and then."""
        connections = Connections(self._world, "deletions")
        chance = connections.chance
        while True:
            await connections.rest(0.1, 1.5)
            name = chance.choice(self.partitions)
            values = self.values[name]
            if not values:
                continue
            offset = chance.choice([-1, chance.choice(sorted(values))])
            with suppress(*FAILURES):
                await delete_records(self._world, connections, name, offset)


async def delete_records(
    world: World, connections: Connections, name: TopicPartition, offset: int
) -> None:
    """Delete the records of a partition below `offset`, -1: below its high watermark.

    Checks the logs of the ISR then. Raises AssertionError, FAILURES.
    """
    part = DeleteRecordsPartition(partition_index=name.partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name.topic, partitions=[part])],
        timeout_ms=DELETE_TIMEOUT_MS,
    )
    deletion = world.rules.begin_deletion(name)
    leader = connections.leader_of(name)
    answer = await connections.call(leader, request, DeleteRecordsResponse, DELETE_RECORDS_VERSION)
    result = answer.topics[0].partitions[0]
    if result.error_code:
        raise RefusedError(result.error_code)
    world.note(f"{name}: records below {result.low_watermark} are deleted")
    world.rules.confirm_deletion(deletion, offset, result.low_watermark)


async def fetch(
    connections: Connections, name: TopicPartition, offset: int, isolation_level: int = 0
) -> PartitionData:
    """Return what a consumer gets of one partition. Raises FAILURES, RefusedError."""
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        topics=[
            FetchTopic(
                topic=name.topic,
                partitions=[
                    FetchPartition(
                        partition=name.partition, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
    leader = connections.leader_of(name)
    answer = await connections.call(leader, request, FetchResponse, FETCH_VERSION)
    partition: PartitionData = answer.responses[0].partitions[0]
    if partition.error_code:
        raise RefusedError(partition.error_code)
    return partition


async def start_of(connections: Connections, name: TopicPartition) -> int:
    """Return where a partition begins. Raises FAILURES, RefusedError."""
    part = ListOffsetsPartition(partition_index=name.partition, timestamp=EARLIEST)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name.topic, partitions=[part])]
    )
    answer = await connections.call(
        connections.leader_of(name), request, ListOffsetsResponse, LIST_OFFSETS_VERSION
    )
    partition = answer.topics[0].partitions[0]
    if partition.error_code:
        raise RefusedError(partition.error_code)
    offset: int = partition.offset
    return offset
