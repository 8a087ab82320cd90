"""Limits on requests and tasks; idle connections."""

from __future__ import annotations

import asyncio
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import produce as produce_handler
from minibroker.kafka.protocol.messages.create_topics import CreateTopicsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.support.record_requests import fetch_from, produce_values
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.in_process import InProcessBroker
    from tests.unit.broker.server.gate import Gate

    Serve = Callable[..., Awaitable[InProcessBroker]]

METADATA = MetadataRequest(topics=[])


# Connections.


async def test_the_count_of_connections_follows(serve: Serve) -> None:
    running = await serve()
    metrics = running.broker.services.metrics
    async with await running.connect() as client:
        await client.call(METADATA, 9)
        assert metrics.connections == 1
    await eventually(lambda: metrics.connections == 0)
    assert not running.server.connections.limits._per_host


async def test_a_silent_connection_is_closed_after_its_idle_time(serve: Serve) -> None:
    running = await serve(
        **{"connections.max.idle.ms": "30", "connection.failed.authentication.delay.ms": "10"}
    )
    async with await running.connect() as client:
        assert await client.is_closed_by_broker()


async def test_idle_time_counts_from_the_last_request(serve: Serve) -> None:
    running = await serve(**{"connections.max.idle.ms": "600000"})
    async with await running.connect() as old, await running.connect() as young:
        await old.call(METADATA, 9)
        host, port = old.writer.get_extra_info("sockname")[:2]
        await young.call(METADATA, 9)
        for connection in running.server.connections:
            if connection.address == f"{host}:{port}":
                connection.last_active_s -= 601
        running.server.connections._close_idle()
        assert await old.is_closed_by_broker()
        await young.call(METADATA, 9)


async def test_a_connection_whose_request_waits_is_closed_after_its_idle_time(
    serve: Serve,
) -> None:
    running = await serve(**{"connections.max.idle.ms": "600000"})
    await running.create_topic("t")
    async with await running.connect() as client:
        client.send(fetch_from("t", max_wait_ms=60_000_000), 11)
        await eventually(lambda: running.partitions.get("t", 0).waiters)
        (connection,) = running.server.connections
        connection.last_active_s -= 599
        running.server.connections._close_idle()
        assert list(running.server.connections) == [connection]
        connection.last_active_s -= 2
        running.server.connections._close_idle()
        assert await client.is_closed_by_broker()
        await eventually(lambda: not running.partitions.get("t", 0).waiters)


async def test_work_of_an_idle_connection_that_has_begun_goes_on(serve: Serve, gate: Gate) -> None:
    running = await serve(**{"connections.max.idle.ms": "600000"})
    async with await running.connect() as client:
        client.send(CreateTopicsRequest(), 5)
        await eventually(lambda: gate.waiting)
        (connection,) = running.server.connections
        task = connection._task
        connection.last_active_s -= 601
        running.server.connections._close_idle()
        assert await client.is_closed_by_broker()
        assert not task.done()
        gate.open()
        await eventually(task.done)
        assert not task.cancelled()


async def test_an_idle_peer_that_takes_nothing_loses_its_place(serve: Serve) -> None:
    running = await serve(**{"connections.max.idle.ms": "600000"})
    await running.create_topic("t")
    client = await running.connect()
    await client.call(produce_values("t", bytes(900_000)), 9)
    (connection,) = running.server.connections
    client.reader._transport.pause_reading()  # type: ignore[attr-defined]
    while not connection._is_paused:
        client.send(fetch_from("t"), 11)
        await asyncio.sleep(0)
    await eventually(lambda: not connection.is_taking())  # what the kernel took is gone
    connection.last_active_s -= 601
    running.server.connections._close_idle()
    await eventually(lambda: not running.server.connections)
    await client.close()


async def test_a_slow_reader_that_takes_its_answers_is_not_idle(serve: Serve) -> None:
    running = await serve(**{"connections.max.idle.ms": "600000"})
    await running.create_topic("t")
    async with await running.connect() as client:
        await client.call(produce_values("t", bytes(900_000)), 9)
        (connection,) = running.server.connections
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        while not connection._is_paused:
            client.send(fetch_from("t"), 11)
            await asyncio.sleep(0)
        await eventually(lambda: not connection.is_taking())
        unsent = connection._count_unsent()
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(2):
            await client.receive_frame()
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await eventually(lambda: connection._count_unsent() < unsent)
        connection.last_active_s -= 601
        running.server.connections._close_idle()
        assert list(running.server.connections) == [connection]
        assert connection.last_active_s > running.server.connections.loop.time() - 600


async def test_no_timer_runs_while_nobody_is_connected(serve: Serve) -> None:
    running = await serve(**{"connections.max.idle.ms": "600000"})
    assert running.server.connections._idle_timer is None
    async with await running.connect() as client:
        await client.call(METADATA, 9)
        assert running.server.connections._idle_timer is not None
    await eventually(lambda: not running.server.connections)
    running.server.connections._close_idle()
    assert running.server.connections._idle_timer is None


# Tasks.


async def test_queued_max_requests_bounds_the_tasks(serve: Serve, gate: Gate) -> None:
    running = await serve(**{"queued.max.requests": "2"})
    clients = [await running.connect() for _ in range(5)]
    for client in clients:
        client.send(CreateTopicsRequest(), 5)
    await eventually(
        lambda: gate.waiting == 2 and len(running.server.connections._tasks_queued) == 3
    )
    gate.open()
    for client in clients:
        await client.receive()
    assert gate.most == 2
    assert running.server.connections._tasks_running == 0
    for client in clients:
        await client.close()


async def test_a_client_that_goes_while_it_is_queued_does_not_hold_up_the_next(
    serve: Serve, gate: Gate
) -> None:
    running = await serve(**{"queued.max.requests": "1"})
    first, second, third = [await running.connect() for _ in range(3)]
    first.send(CreateTopicsRequest(), 5)
    await eventually(lambda: gate.waiting == 1)
    second.send(CreateTopicsRequest(), 5)
    await eventually(lambda: len(running.server.connections._tasks_queued) == 1)
    third.send(CreateTopicsRequest(), 5)
    await eventually(lambda: len(running.server.connections._tasks_queued) == 2)
    second.writer.transport.abort()
    await eventually(lambda: len(running.server.connections) == 2)
    gate.open()
    await first.receive()
    await third.receive()
    assert gate.handled == 2
    await first.close()
    await third.close()


async def test_quick_requests_need_no_place(serve: Serve, gate: Gate) -> None:
    running = await serve(**{"queued.max.requests": "1"})
    async with await running.connect() as blocked, await running.connect() as client:
        blocked.send(CreateTopicsRequest(), 5)
        await eventually(lambda: gate.waiting == 1)
        await client.call(METADATA, 9)
        gate.open()
        await blocked.receive()


# Memory for requests.


async def test_queued_max_request_bytes_mutes_clients_when_memory_is_used_up(
    serve: Serve,
) -> None:
    limits = {"socket.request.max.bytes": "100000", "queued.max.request.bytes": "100000"}
    running = await serve(**limits)
    memory = running.server.connections.memory
    first, second, small = [await running.connect() for _ in range(3)]
    half = pack(">i", 90_000) + b"\xff" * 45_000
    for client in (first, second):
        client.writer.write(half)
        await client.writer.drain()
    await eventually(lambda: memory.free == 100_000 - 2 * 90_004)  # one request beyond the limit
    small.send(METADATA, 9)
    await eventually(
        lambda: any(c.connection.received.lacks_memory for c in running.server.connections)
    )
    await first.close()
    assert (await small.receive()).brokers[0].node_id == 0
    second.writer.write(b"\xff" * 45_000)
    assert await second.is_closed_by_broker()  # there is no API of key -1
    await eventually(lambda: memory.free == 100_000)
    await second.close()
    await small.close()


async def test_records_of_a_produce_that_waits_are_not_written_over_by_other_connections(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = asyncio.Event()
    records: list[bytes] = []

    async def handle(context: Any, request: ProduceRequest) -> ProduceResponse:
        await opened.wait()
        kept = request.topic_data[0].partition_data[0].records
        assert kept is not None
        records.append(bytes(kept))
        return ProduceResponse()

    monkeypatch.setattr(produce_handler, "handle", handle)
    running = await serve()
    request = produce_values("t", b"mine")
    request.transactional_id = "t"  # which takes no short way
    sent = request.topic_data[0].partition_data[0].records
    assert sent is not None
    async with await running.connect() as producer, await running.connect() as other:
        producer.send(request, 9)
        await eventually(lambda: any(c.connection.is_busy for c in running.server.connections))
        await other.call(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 249)]), 9)
        opened.set()
        await producer.receive()
    assert records == [bytes(sent)]


# The stop.
