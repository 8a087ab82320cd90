"""Requests to another broker, which a minibroker of the test plays."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.cluster.image import BrokerInfo, Endpoint
from minibroker.error_codes import ErrorCode
from minibroker.ids import TopicPartition
from minibroker.partitions.markers import EndOfTransaction
from minibroker.records.batch import iterate_headers
from minibroker.transactions.peers import BrokerRequests
from tests.support.transactions import names

if TYPE_CHECKING:
    from tests.support.transactions import World

GONE = TopicPartition("gone", 0)
T0 = TopicPartition("t", 0)


def requests_to(host: str, port: int) -> BrokerRequests:
    broker = BrokerInfo(7, (Endpoint("PLAINTEXT", host, port),))
    cluster: Any = SimpleNamespace(image=SimpleNamespace(brokers={7: broker}))
    return BrokerRequests(cluster, "PLAINTEXT")


async def test_markers_arrive_and_codes_come_back(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, 0, 1)
    for index in (0, 1):
        await world.produce(producer, b"a", index=index)
    marker = EndOfTransaction(*producer, 3, is_commit=False)
    requests = requests_to(*world.running.address)
    codes = await requests.send_markers(7, marker, [*sorted(names(0, 1)), GONE])
    assert codes == {
        **dict.fromkeys(names(0, 1), ErrorCode.NONE),
        GONE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    found = await world.fetch()
    assert len(found.aborted_transactions) == 1
    assert [one.is_control for _, one in iterate_headers(memoryview(found.records))] == [0, 1]


async def test_a_broker_that_is_not_there_is_tried_again_later(world: World) -> None:
    requests = requests_to(*world.running.address)
    marker = EndOfTransaction(5, 0, 0, is_commit=True)
    failed = {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert await requests.send_markers(8, marker, [T0]) == failed
    await world.running.stop()
    assert await requests.send_markers(7, marker, [T0]) == failed


@pytest.mark.parametrize(
    "answer", [b"", b"\0\0\0\1", b"\x7f\0\0\0", b"\0\0\0\x06\0\0\0\1\0\7", b"\0\0\0\3abc"]
)
async def test_an_answer_that_is_none_is_tried_again_later(answer: bytes) -> None:
    async def serve(incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        await incoming.read(1)
        outgoing.write(answer)
        outgoing.close()
        await outgoing.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        requests = requests_to(*server.sockets[0].getsockname()[:2])
        codes = await requests.send_markers(7, EndOfTransaction(5, 0, 0, is_commit=True), [T0])
    assert codes == {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_a_coordinator_elsewhere_adds_and_verifies(world: World) -> None:
    producer = await world.begin()
    requests = requests_to(*world.running.address)

    async def ask(*partitions: TopicPartition, epoch: int, verify_only: bool) -> Any:
        return await requests.add_partitions(
            7, "x", producer[0], epoch, list(partitions), verify_only=verify_only
        )

    t1 = TopicPartition("t", 1)
    assert await ask(T0, epoch=0, verify_only=False) == {T0: ErrorCode.NONE}
    assert await ask(T0, t1, epoch=0, verify_only=True) == {
        T0: ErrorCode.NONE,
        t1: ErrorCode.TRANSACTION_ABORTABLE,
    }
    assert await ask(T0, epoch=5, verify_only=True) == {T0: ErrorCode.PRODUCER_FENCED}
    await world.running.stop()
    assert await ask(T0, epoch=0, verify_only=True) == {T0: ErrorCode.NETWORK_EXCEPTION}
