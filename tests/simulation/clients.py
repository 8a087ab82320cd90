"""Clients of a run: producers with acks=all, which note what is acknowledged, and a reader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.cluster.image import Endpoint
from minibroker.errors import MinibrokerError
from minibroker.peers.connection import PeerConnection
from minibroker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from minibroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.records.batch import iterate_headers
from minibroker.records.builder import build_batch
from minibroker.records.record import Record, decode_records
from tests.simulation.loop import START_MS
from tests.simulation.network import FIRST_PORT

if TYPE_CHECKING:
    from tests.simulation.world import World

PRODUCERS = 2
TIMEOUT_S = 2.0
PRODUCE_VERSION, FETCH_VERSION = 9, 12


class Clients:
    """The clients of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.acknowledged: list[tuple[int, bytes]] = []
        """Offset and value of each record whose append was acknowledged."""
        self.seen: dict[int, bytes] = {}
        """Offset → value of each record that a consumer read."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def begin(self) -> None:
        """Produce and consume until `stop`."""
        loop = self._world.loop
        self._tasks = [loop.create_task(self._produce(number)) for number in range(PRODUCERS)]
        self._tasks.append(loop.create_task(self._consume()))

    def stop(self) -> None:
        """Send nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _connect(self, broker_id: int) -> PeerConnection:
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", FIRST_PORT + broker_id)
        return await PeerConnection.open(endpoint)

    def _leader(self, number: int) -> int:
        """Return the broker to ask: the leader in the tree, now and then any other."""
        chance = self._world.network.chance("leader", number)
        state = self._world.state
        if state is None or state.leader < 0 or chance.random() < 0.1:
            return chance.randrange(len(self._world.hosts))
        return state.leader

    async def _produce(self, number: int) -> None:
        """Send batches, each with values of its own, one after the other."""
        chance = self._world.network.chance("producer", number)
        sent = 0
        while True:
            connection = None
            try:
                broker_id = self._leader(number)
                async with asyncio.timeout(TIMEOUT_S):
                    connection = await self._connect(broker_id)
                while True:
                    values = []
                    for _ in range(chance.randrange(1, 4)):
                        sent += 1
                        values.append(b"%d-%d " % (number, sent) * chance.randrange(1, 30))
                    async with asyncio.timeout(TIMEOUT_S):
                        is_done = await self._send(connection, values, chance.choice([-1, -1, 1]))
                    await self._world.loop.pass_time(chance.uniform(0, 0.1))
                    if not is_done:
                        break
            except (OSError, MinibrokerError):
                await self._world.loop.pass_time(chance.uniform(0.01, 0.2))
            finally:
                if connection is not None:
                    connection.close()

    async def _send(self, connection: PeerConnection, values: list[bytes], acks: int) -> bool:
        """Send one batch; return whether it was acknowledged."""
        records = [Record(0, START_MS, None, value) for value in values]
        data = PartitionProduceData(index=0, records=memoryview(build_batch(records)))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="t", partition_data=[data])],
        )
        answer = await connection.call(request, ProduceResponse, PRODUCE_VERSION)
        found = answer.responses[0].partition_responses[0]
        if found.error_code:
            return False
        if acks == -1:
            self.acknowledged += enumerate(values, found.base_offset)
        return True

    async def _consume(self) -> None:
        """Read from the start to the end, again and again."""
        chance = self._world.network.chance("consumer")
        offset = 0
        while True:
            connection = None
            try:
                broker_id = self._leader(PRODUCERS)
                async with asyncio.timeout(TIMEOUT_S):
                    connection = await self._connect(broker_id)
                while True:
                    async with asyncio.timeout(TIMEOUT_S):
                        offset = await self._read(connection, offset)
                    await self._world.loop.pass_time(chance.uniform(0, 0.2))
                    if chance.random() < 0.1:
                        offset = 0
                        break
            except (OSError, MinibrokerError):
                await self._world.loop.pass_time(chance.uniform(0.01, 0.2))
            finally:
                if connection is not None:
                    connection.close()

    async def _read(self, connection: PeerConnection, offset: int) -> int:
        """Read from `offset`; return where to go on. Raises MinibrokerError."""
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic="t",
                    partitions=[
                        FetchPartition(
                            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
            ],
        )
        answer = await connection.call(request, FetchResponse, FETCH_VERSION)
        found = answer.responses[0].partitions[0]
        if found.error_code:
            raise ConnectionError(f"error {found.error_code}")
        records = memoryview(bytes(found.records or b""))
        for position, header in iterate_headers(records):
            for record in decode_records(records[position:]):
                if record.offset >= offset:
                    known = self.seen.setdefault(record.offset, record.value or b"")
                    assert known == record.value, (
                        f"a consumer read {known!r} at offset {record.offset}, then"
                        f" {record.value!r}"
                    )
            offset = header.last_offset + 1
        return offset
