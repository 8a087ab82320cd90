"""Requests to another broker, which a minibroker of the test plays."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.transactions.broker_requests import BrokerRequests
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from minibroker.kafka.records.batch import iterate_headers
from tests.support.message_bytes import body_of
from tests.support.peer_clients import ScriptedBroker, peer_client
from tests.support.transactions import names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.transactions import World

ABSENT = TopicPartition("gone", 0)
T0 = TopicPartition("t", 0)


@asynccontextmanager
async def requests_to(host: str, port: int) -> AsyncIterator[BrokerRequests]:
    async with peer_client({7: (host, port)}) as client:
        yield BrokerRequests(client)


async def test_markers_arrive_and_codes_come_back(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 0, 1)
    for index in (0, 1):
        await world.produce(producer, b"a", index=index)
    marker = EndOfTransaction(*producer, 3, is_commit=False)
    async with requests_to(*world.running.address) as requests:
        codes = await requests.send_markers(7, marker, [*sorted(names(0, 1)), ABSENT])
    assert codes == {
        **dict.fromkeys(names(0, 1), ErrorCode.NONE),
        ABSENT: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    records = await world.fetch()
    assert len(records.aborted_transactions) == 1
    assert [record.is_control for _, record in iterate_headers(memoryview(records.records))] == [
        0,
        1,
    ]


async def test_the_newest_markers_carry_the_version_of_the_transaction(world: World) -> None:
    """With the second protocol an epoch seen before is a late marker's: it is refused."""
    producer = await world.begin()
    await world.add(producer, 0)
    await world.produce(producer, b"a")
    marker = EndOfTransaction(*producer, 0, is_commit=True, transaction_version=2)
    async with requests_to(*world.running.address) as requests:
        codes = await requests.send_markers(7, marker, [T0])
    assert codes == {T0: ErrorCode.INVALID_PRODUCER_EPOCH}


async def test_a_broker_that_is_not_there_is_tried_again_later(world: World) -> None:
    marker = EndOfTransaction(5, 0, 0, is_commit=True)
    failed = {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    async with requests_to(*world.running.address) as requests:
        assert await requests.send_markers(8, marker, [T0]) == failed
        await world.running.stop()
        assert await requests.send_markers(7, marker, [T0]) == failed


@pytest.mark.parametrize("body", [b"", b"\0\0\0\7", b"\0\7\0\0\0\0\0\0"])
async def test_an_answer_that_is_none_is_tried_again_later(body: bytes) -> None:
    async with ScriptedBroker(lambda *_: body) as broker:
        broker.versions[27] = (0, 0)
        async with requests_to(*broker.address) as requests:
            codes = await requests.send_markers(7, EndOfTransaction(5, 0, 0, is_commit=True), [T0])
    assert codes == {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_a_code_of_a_newer_kafka_is_an_unknown_error_of_its_partition_alone() -> None:
    answered = [
        WritableTxnMarkerPartitionResult(partition_index=0, error_code=0),
        WritableTxnMarkerPartitionResult(partition_index=1, error_code=9_999),
        WritableTxnMarkerPartitionResult(partition_index=2),  # nobody asked for it
    ]
    topic = WritableTxnMarkerTopicResult(name="t", partitions=answered)
    result = WritableTxnMarkerResult(producer_id=5, topics=[topic])
    body = body_of(WriteTxnMarkersResponse(markers=[result]), 1)
    async with ScriptedBroker(lambda *_: b"\0" + body) as broker:
        broker.versions[27] = (1, 1)
        async with requests_to(*broker.address) as requests:
            marker = EndOfTransaction(5, 0, 0, is_commit=True)
            codes = await requests.send_markers(7, marker, sorted(names(0, 1)))
    assert list(codes.values()) == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]


async def test_a_broker_that_cannot_verify_lets_batches_in() -> None:
    """Kafka does so beside releases before 3.5; a partition that has to be added is refused."""
    async with ScriptedBroker(lambda *_: None) as broker:
        broker.versions[24] = (0, 3)
        async with requests_to(*broker.address) as requests:
            for verify_only, code in ((True, ErrorCode.NONE), (False, ErrorCode.NETWORK_EXCEPTION)):
                codes = await requests.add_partitions(7, "x", 5, 0, [T0], verify_only=verify_only)
                assert codes == {T0: code}


async def test_a_coordinator_elsewhere_adds_and_verifies(world: World) -> None:
    producer = await world.begin()
    t1 = TopicPartition("t", 1)
    async with requests_to(*world.running.address) as requests:

        async def ask(*partitions: TopicPartition, epoch: int, verify_only: bool) -> Any:
            return await requests.add_partitions(
                7, "x", producer[0], epoch, list(partitions), verify_only=verify_only
            )

        assert await ask(T0, epoch=0, verify_only=False) == {T0: ErrorCode.NONE}
        assert await ask(T0, t1, epoch=0, verify_only=True) == {
            T0: ErrorCode.NONE,
            t1: ErrorCode.TRANSACTION_ABORTABLE,
        }
        assert await ask(T0, epoch=5, verify_only=True) == {T0: ErrorCode.PRODUCER_FENCED}
        await world.running.stop()
        assert await ask(T0, epoch=0, verify_only=True) == {T0: ErrorCode.NETWORK_EXCEPTION}
