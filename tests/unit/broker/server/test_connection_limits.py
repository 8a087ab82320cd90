"""Limits on connections: of the broker, of a listener, of an address."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.protocol.messages.create_topics import CreateTopicsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.in_process import InProcessBroker
    from tests.unit.broker.server.gate import Gate

    Serve = Callable[..., Awaitable[InProcessBroker]]

METADATA = MetadataRequest(topics=[])
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
