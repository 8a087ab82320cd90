"""A broker in the test's loop with a clock of its own, and short calls for transactions.

async with transactional_world(tmp_path) as world:
    producer = await world.begin()
    await world.add(producer, 0)
    await world.produce(producer, b"a")
    await world.end(producer)
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.kafka.protocol.messages.list_transactions import ListTransactionsRequest
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import TIMEOUT_S, InProcessBroker, ManualClock, RawClient, batch_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.transactions.coordinator import TransactionCoordinator
    from minibroker.broker.transactions.state import TransactionMetadata

SETTINGS = {"transaction.state.log.num.partitions": "3"}
TIMEOUT_MS = 60_000
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS}


class World:
    """One broker with topic `t` of two partitions, one raw client."""

    def __init__(self, running: InProcessBroker, client: RawClient, clock: ManualClock) -> None:
        self.running = running
        self.client = client
        self.clock = clock

    @property
    def coordinator(self) -> TransactionCoordinator:
        return self.running.broker.services.transactions

    def state(self, transactional_id: str = "x") -> TransactionMetadata:
        return self.coordinator.describe(transactional_id)

    async def init(self, transactional_id: str = "x", version: int = 4, **fields: Any) -> Any:
        fields.setdefault("transaction_timeout_ms", TIMEOUT_MS)
        request = InitProducerIdRequest(transactional_id=transactional_id, **fields)
        return await self.client.call(request, version)

    async def begin(self, transactional_id: str = "x") -> tuple[int, int]:
        """Begin a session, return producer id and epoch; wait while the coordinator is busy."""
        async with asyncio.timeout(TIMEOUT_S):
            while (answer := await self.init(transactional_id)).error_code in NOT_YET:
                continue
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    async def load(self) -> None:
        """Wait until the coordinator has loaded all of its partitions."""
        async with asyncio.timeout(TIMEOUT_S):
            while (await self.client.call(ListTransactionsRequest(), 0)).error_code in NOT_YET:
                continue

    def add_request(
        self, producer: tuple[int, int], *indexes: int, transactional_id: str = "x"
    ) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=list(indexes))],
        )

    async def add(
        self,
        producer: tuple[int, int],
        *indexes: int,
        transactional_id: str = "x",
        version: int = 3,
    ) -> list[ErrorCode]:
        """Add partitions and return a code for each."""
        request = self.add_request(producer, *indexes, transactional_id=transactional_id)
        return self.codes(await self.client.call(request, version))

    @staticmethod
    def codes(answer: Any) -> list[ErrorCode]:
        """Return the error codes of an AddPartitionsToTxn answer."""
        return [
            ErrorCode(result.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        ]

    async def produce(
        self,
        producer: tuple[int, int],
        *values: bytes,
        sequence: int = 0,
        index: int = 0,
        version: int = 9,
        transactional_id: str | None = "x",
        **header: Any,
    ) -> ErrorCode:
        batch = batch_of(
            *values,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
            timestamp=self.clock.now_ms(),
            **header,
        )
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="t", partition_data=[PartitionProduceData(index=index, records=batch)]
                )
            ],
        )
        answer = await self.client.call(request, version)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def end_request(
        self, producer: tuple[int, int], *, commit: bool = True, transactional_id: str = "x"
    ) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )

    async def end(
        self,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        version: int = 4,
        transactional_id: str = "x",
    ) -> Any:
        request = self.end_request(producer, commit=commit, transactional_id=transactional_id)
        return await self.client.call(request, version)

    def fetch_request(self, offset: int = 0, **fields: Any) -> FetchRequest:
        """Return a request for partition 0, or `index`; for committed records or `isolation` 0."""
        part = FetchPartition(
            partition=fields.pop("index", 0), fetch_offset=offset, partition_max_bytes=1 << 20
        )
        return FetchRequest(
            max_wait_ms=fields.pop("max_wait_ms", 0),
            min_bytes=fields.pop("min_bytes", 0),
            max_bytes=1 << 20,
            isolation_level=fields.pop("isolation", 1),
            topics=[FetchTopic(topic="t", partitions=[part])],
        )

    async def fetch(
        self, offset: int = 0, *, client: RawClient | None = None, **fields: Any
    ) -> Any:
        """Return the partition's data; `fields` as `fetch_request` takes them."""
        request = self.fetch_request(offset, **fields)
        answer = await (client or self.client).call(request, 11)
        return answer.responses[0].partitions[0]


def names(*indexes: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("t", index) for index in indexes)


@asynccontextmanager
async def transactional_world(directory: Path, **settings: str) -> AsyncIterator[World]:
    """Yield a broker with topic `t` and `__transaction_state`."""
    clock = ManualClock()
    async with (
        InProcessBroker(directory, {**SETTINGS, **settings}, clock=clock) as running,
        await running.connect() as client,
    ):
        await running.create_topic("t", 2)
        await running.broker.services.transactions.journal.ensure_topic()
        yield World(running, client, clock)


class DeafSender:
    """A sender that never brings markers."""

    def add(self, *_: object) -> None:
        pass

    async def close(self) -> None:
        pass
