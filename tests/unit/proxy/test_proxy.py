"""`proxy`: a client comes while the proxy is killed."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from minibroker.client.settings import client_settings
from minibroker.proxy.proxy import KafkaProxy
from minibroker.rig.faults import Fault
from tests.support.loops import last_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

TURNS_MAX = 8
"""Turns of the loop in which any loop has let a client in."""


@pytest.fixture
def kafka() -> Iterator[str]:
    """Yield the address of a Kafka that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("turns", range(TURNS_MAX))
async def test_a_kill_ends_a_client_that_comes(kafka: str, turns: int) -> None:
    """However far the loop has come with it."""
    proxy = KafkaProxy(client_settings({"bootstrap.servers": kafka}))
    await proxy.start()
    with socket.create_connection(proxy.address) as client:
        client.setblocking(False)
        for _ in range(turns):
            await asyncio.sleep(0)
        await proxy.add(Fault(broker="killed"))
        assert await last_bytes(client) == b""
    assert not proxy._links
    await proxy.stop()
