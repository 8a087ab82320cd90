"""Connections over a rate: closed unserved (by address), or let in later (by the broker)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")


async def open_and_ask(running: InProcessBroker) -> None:
    async with await running.connect() as client:
        await client.call(VERSIONS, 3)


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
            assert await refused.is_closed_by_broker()
        clock.advance(2000)
        await open_and_ask(running)


async def test_stopping_closes_what_waits_to_be_closed(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = {"quota.window.num": "2", "quota.window.size.seconds": "600"}
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        quotas = running.broker.services.quotas
        quotas.on_config_changed("ips", "<default>", {"connection_creation_rate": "0.0001"})
        client = await running.connect()
        while not running.server._sockets[0]._refused:  # noqa: ASYNC110  the kernel's own time
            await asyncio.sleep(0)
    assert await client.is_closed_by_broker()
    await client.close()


async def test_the_brokers_own_rate_holds_accepting_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    clock = ManualClock()
    settings = {
        "quota.window.num": "2",
        "quota.window.size.seconds": "1",
        "max.connection.creation.rate": "2",
    }
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:

        async def sleep(delay_s: float) -> None:
            waits.append(delay_s)

        monkeypatch.setattr("minibroker.server.listener.asyncio.sleep", sleep)
        for _ in range(3):
            await open_and_ask(running)
        monkeypatch.undo()
    assert waits == [0.5]  # (3 - 2) / 2 of a window
