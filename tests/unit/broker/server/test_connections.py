"""Limits on requests and tasks; idle connections."""

from __future__ import annotations

import asyncio
import logging
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import produce as produce_handler
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.create_topics import CreateTopicsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.support.in_process import InProcessBroker, ManualClock, Serve
from tests.support.record_requests import fetch_from, produce_values
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.name_server import SlowNameServer
    from tests.unit.broker.server.gate import Gate


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
    await eventually(lambda: running.server.connections._tasks_running == 0)
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
        lambda: any(c.connection.receive_buffer.lacks_memory for c in running.server.connections)
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
    may_answer = asyncio.Event()
    records: list[bytes] = []

    async def handle(context: Any, request: ProduceRequest) -> ProduceResponse:
        await may_answer.wait()
        data = request.topic_data[0].partition_data[0].records
        assert data is not None
        records.append(bytes(data))
        return ProduceResponse()

    monkeypatch.setattr(produce_handler, "handle", handle)
    running = await serve()
    request = produce_values("t", b"mine")
    request.transactional_id = "t"  # which takes no short way
    original = request.topic_data[0].partition_data[0].records
    assert original is not None
    async with await running.connect() as producer, await running.connect() as other:
        producer.send(request, 9)
        await eventually(lambda: any(c.connection.is_busy for c in running.server.connections))
        await other.call(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 249)]), 9)
        may_answer.set()
        await producer.receive()
    assert records == [bytes(original)]


# Limits on connections: of the broker, of a listener, of an address.


TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,EXTRA://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
}


async def test_max_connections_leaves_the_next_one_waiting_until_another_closes(
    serve: Serve,
) -> None:
    running = await serve(**{"max.connections": "2"})
    first, second = await running.connect(), await running.connect()
    await first.call(METADATA, 9)
    await second.call(METADATA, 9)
    third = await running.connect()
    third.send(METADATA, 9)
    await first.call(METADATA, 9)
    assert len(running.server.connections) == 2
    await second.close()
    await third.receive()
    assert len(running.server.connections) == 2
    await first.close()
    await third.close()


async def test_a_larger_max_connections_lets_the_waiting_in(serve: Serve) -> None:
    running = await serve(**{"max.connections": "1"})
    async with await running.connect() as first, await running.connect() as second:
        await first.call(METADATA, 9)
        second.send(METADATA, 9)
        await first.call(METADATA, 9)
        assert len(running.server.connections) == 1
        await running.broker.cluster.alter_config("brokers", "0", {"max.connections": "2"})
        await second.receive()


async def test_a_listener_has_a_limit_of_its_own(serve: Serve) -> None:
    limit = {"listener.name.extra.max.connections": "1"}
    running = await serve(**TWO_LISTENERS, **limit)
    async with await running.connect(listener="EXTRA") as first:
        await first.call(METADATA, 9)
        async with (
            await running.connect(listener="EXTRA") as second,
            await running.connect() as own,
        ):
            second.send(METADATA, 9)
            await own.call(METADATA, 9)
            assert len(running.server.connections) == 2
            await running.broker.cluster.alter_config("brokers", "0", dict.fromkeys(limit, "2"))
            await second.receive()


async def test_the_listener_between_brokers_takes_the_place_that_is_unused_for_longest(
    serve: Serve,
) -> None:
    limits = {"max.connections": "2", "listener.name.plaintext.max.connections": "3"}
    running = await serve(**TWO_LISTENERS, **limits)
    first, second = await running.connect(listener="EXTRA"), await running.connect(listener="EXTRA")
    for client in (first, second):
        await client.call(METADATA, 9)
    host, port = second.writer.get_extra_info("sockname")[:2]
    for connection in running.server.connections:
        if connection.address == f"{host}:{port}":
            connection.last_active_s -= 1
    third = await running.connect()
    await third.call(METADATA, 9)
    assert await second.is_closed_by_broker()
    await first.call(METADATA, 9)
    fourth, fifth = await running.connect(), await running.connect()
    for client in (fourth, fifth):
        await client.call(METADATA, 9)
    assert await first.is_closed_by_broker()
    for client in (third, fourth, fifth):  # beyond the broker's limit, and protected
        await client.call(METADATA, 9)
    sixth = await running.connect()  # beyond the listener's own
    sixth.send(METADATA, 9)
    await third.call(METADATA, 9)
    assert len(running.server.connections) == 3
    await third.close()
    await sixth.receive()
    for client in (first, second, fourth, fifth, sixth):
        await client.close()


async def test_work_in_hand_goes_on_where_a_smaller_limit_closes_its_connection(
    serve: Serve, gate: Gate
) -> None:
    running = await serve()
    async with await running.connect() as old, await running.connect() as young:
        old.send(CreateTopicsRequest(), 5)
        await eventually(lambda: gate.waiting)
        await young.call(METADATA, 9)
        await running.broker.cluster.alter_config("brokers", "0", {"max.connections": "1"})
        assert await old.is_closed_by_broker()
        gate.open()
        await eventually(lambda: gate.handled)
        await young.call(METADATA, 9)


async def test_max_connections_per_ip_closes_one_too_many(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(**{"max.connections.per.ip": "1"})
    first = await running.connect()
    await first.call(METADATA, 9)
    second = await running.connect()
    assert await second.is_closed_by_broker()
    await first.call(METADATA, 9)
    assert running.broker.services.metrics.refused_connections == 1
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert "127.0.0.1" in record.getMessage()
    assert "max.connections.per.ip" in record.getMessage()
    await first.close()
    await eventually(lambda: not running.server.connections)
    third = await running.connect()
    await third.call(METADATA, 9)
    await second.close()
    await third.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_an_override_beats_max_connections_per_ip(serve: Serve, name: str) -> None:
    running = await serve(
        **{"max.connections.per.ip": "0", "max.connections.per.ip.overrides": f"{name}:1"}
    )
    first, second = await running.connect(), await running.connect()
    await first.call(METADATA, 9)
    assert await second.is_closed_by_broker()
    await first.close()
    await second.close()


async def test_a_slow_name_server_delays_new_connections_alone(
    serve: Serve, name_server: SlowNameServer
) -> None:
    """A name is looked up beside the loop, once per value; nobody comes in past its limit."""
    running = await serve()
    dynamic = running.broker.services.dynamic
    async with await running.connect() as early, await running.connect() as late:
        await early.call(METADATA, 9)
        await late.call(METADATA, 9)
        dynamic.set_cluster_default({"max.connections.per.ip.overrides": "slow:3"})
        third, fourth = await running.connect(), await running.connect()
        third.send(METADATA, 9)
        await eventually(lambda: name_server.names == ["slow"])
        await early.call(METADATA, 9)
        assert running.broker.services.metrics.connections == 2
        name_server.may_answer.set()
        await third.receive()
        assert await fourth.is_closed_by_broker()
        dynamic.set_cluster_default(
            {"max.connections.per.ip.overrides": "slow:3", "num.partitions": "2"}
        )
        fifth = await running.connect()
        assert await fifth.is_closed_by_broker()
        assert name_server.names == ["slow"]
        for client in (third, fourth, fifth):
            await client.close()


# Connections over a rate: closed unserved (by address), or let in later (by the broker).


VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")


async def open_and_ask(running: InProcessBroker) -> None:
    async with await running.connect() as client:
        await client.call(VERSIONS, 3)


async def refusal(running: InProcessBroker) -> None:
    """Wait until a connection is taken that will not be served."""
    async with asyncio.timeout(60):
        while not running.server._sockets[0]._refused_clients:  # noqa: ASYNC110  the kernel's own time
            await asyncio.sleep(0)


async def test_a_connection_over_the_rate_of_its_address_is_closed_unserved(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with InProcessBroker(
        tmp_path, {"quota.window.num": "2", "quota.window.size.seconds": "1"}, clock=clock
    ) as running:
        quotas = running.broker.services.quotas
        quotas.on_config_changed("ips", "127.0.0.1", {"connection_creation_rate": "3"})
        for _ in range(3):
            await open_and_ask(running)
        async with await running.connect() as refused:
            refused.send(VERSIONS, 3)
            await refusal(running)
            clock.advance(1000)
            assert await refused.is_closed_by_broker()
        clock.advance(1000)
        await open_and_ask(running)


async def test_stopping_closes_connections_that_wait_to_be_closed(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = {"quota.window.num": "2", "quota.window.size.seconds": "600"}
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        quotas = running.broker.services.quotas
        quotas.on_config_changed("ips", "<default>", {"connection_creation_rate": "0.0001"})
        client = await running.connect()
        await refusal(running)
    assert await client.is_closed_by_broker()
    await client.close()


async def test_the_brokers_own_rate_holds_accepting_back(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = {
        "quota.window.num": "2",
        "quota.window.size.seconds": "1",
        "max.connection.creation.rate": "2",
    }
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        for _ in range(2):
            await open_and_ask(running)
        timers = running.broker.timers
        idle = len(timers)
        answer = asyncio.ensure_future(open_and_ask(running))
        async with asyncio.timeout(60):
            while len(timers) == idle:  # noqa: ASYNC110  the kernel's own time
                await asyncio.sleep(0)
        clock.advance(499)  # (3 - 2) / 2 of a window are waited for
        assert len(timers) > idle
        clock.advance(1)
        await answer
