"""The clean stop."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.server import server as server_module
from minibroker.kafka.protocol.messages.create_topics import CreateTopicsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import ManualClock, Serve
from tests.support.record_requests import fetch_from
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.unit.broker.server.gate import Gate

METADATA = MetadataRequest(topics=[])


async def test_a_stop_answers_the_request_in_hand(serve: Serve, gate: Gate) -> None:
    running = await serve()
    client = await running.connect()
    client.send(CreateTopicsRequest(), 5)
    client.send(METADATA, 9)
    await eventually(lambda: gate.waiting == 1)
    stopping = asyncio.create_task(running.stop())
    await eventually(lambda: any(c.connection.is_ending for c in running.server.connections))
    gate.open()
    await client.receive()
    assert await client.is_closed_by_broker()
    await stopping
    await client.close()


async def test_a_stop_answers_long_polls_at_once(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    client = await running.connect()
    client.send(fetch_from("t", max_wait_ms=60_000), 11)
    await eventually(lambda: running.partitions.get("t", 0).waiters)
    await running.stop()
    answer = await client.receive()
    assert answer.responses[0].partitions[0].error_code == 0
    assert await client.is_closed_by_broker()
    await client.close()


async def test_a_stop_closes_everybody_and_gives_the_port_back(serve: Serve) -> None:
    running = await serve()
    clients = [await running.connect() for _ in range(3)]
    for client in clients:
        await client.call(METADATA, 9)
    await running.stop()
    for client in clients:
        assert await client.is_closed_by_broker()
        await client.close()
    with pytest.raises(ConnectionRefusedError):
        await running.connect()


async def test_a_stop_does_not_wait_for_ever(
    serve: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_module, "STOP_TIMEOUT_S", 0.05)
    running = await serve()
    client = await running.connect()
    client.send(CreateTopicsRequest(), 5)
    await eventually(lambda: gate.waiting == 1)
    await running.stop()
    assert "did not finish in time" in caplog.text
    assert await client.is_closed_by_broker()
    await eventually(lambda: gate.waiting == 0)
    await client.close()


async def test_a_stop_with_nobody_connected_is_quiet(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve()
    await running.stop()
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


async def test_a_listener_that_is_closed_waits_for_its_requests_in_hand_and_not_for_ever(
    serve: Serve, gate: Gate
) -> None:
    clock = ManualClock()
    running = await serve(
        clock,
        **{
            "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        },
    )
    stays = await running.connect()
    running.broker.address = ("127.0.0.1", running.broker.ports["OTHER"])
    waits, answered = [await running.connect() for _ in range(2)]
    await running.create_topic("t")
    waits.send(fetch_from("t", max_wait_ms=600_000), 11)
    answered.send(CreateTopicsRequest(), 5)
    await eventually(lambda: gate.waiting == 1 and running.partitions.get("t", 0).waiters)
    (other,) = (listener for listener in running.server.listeners if listener.name == "OTHER")
    await running.server.close(other)
    with pytest.raises(ConnectionRefusedError):
        await running.connect()
    gate.open()
    await answered.receive()
    assert await answered.is_closed_by_broker()
    clock.advance(int(server_module.STOP_TIMEOUT_S * 1000) - 1)
    assert len(running.server.connections) == 2
    clock.advance(1)
    assert await waits.is_closed_by_broker()
    await stays.call(METADATA, 9)
    for client in (stays, waits, answered):
        await client.close()
