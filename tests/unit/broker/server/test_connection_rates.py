"""Connections over a rate: closed unserved (by address), or let in later (by the broker)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")


async def open_and_ask(running: InProcessBroker) -> None:
    async with await running.connect() as client:
        await client.call(VERSIONS, 3)


async def refusal(running: InProcessBroker) -> None:
    """Wait until a connection is taken that will not be served."""
    async with asyncio.timeout(60):
        while not running.server._sockets[0]._refused:  # noqa: ASYNC110  the kernel's own time
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
        asked = asyncio.ensure_future(open_and_ask(running))
        async with asyncio.timeout(60):
            while len(timers) == idle:  # noqa: ASYNC110  the kernel's own time
                await asyncio.sleep(0)
        clock.advance(499)  # (3 - 2) / 2 of a window are waited for
        assert len(timers) > idle
        clock.advance(1)
        await asked
