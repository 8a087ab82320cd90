"""Requests with random damage: each is answered or refused, and none of them is a bug."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from minibroker.control import server

if TYPE_CHECKING:
    from tests.unit.control.conftest import Control

REQUESTS = (
    b"GET /topics/orders/records?limit=5&wait_ms=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /topics/orders/records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 28\r\n\r\n"
    b'{"records": [{"value": "v"}]}',
    b"POST /faults HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5\r\n{"api\r\n0\r\n\r\n',
    b"HEAD / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: upgrade\r\n"
    b"Upgrade: websocket\r\n\r\n",
    b'POST /seeds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n{"create": "abc"}',
    b"GET /requests?limit=2 HTTP/1.0\r\nHost: localhost\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
)
LAST = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
"""Ends a connection whose bytes before it are whole requests; others end by their time."""
CONNECTIONS = 1000


def damaged(chance: random.Random) -> bytes:
    """Return one to three requests, with some bytes changed, removed or added."""
    data = bytearray(b"".join(chance.choices(REQUESTS, k=chance.randint(1, 3))))
    for _ in range(chance.randint(0, 4)):
        place = chance.randrange(len(data))
        data[place : place + chance.randint(0, 9)] = chance.randbytes(chance.randint(0, 9))
    return bytes(data) + LAST


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.kafka(topics=["orders"])
async def test_damaged_requests_are_no_bugs(
    control: Control, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_TIMEOUT_S", 0.02)
    chance = random.Random(1)
    for _ in range(CONNECTIONS):
        assert b"HTTP/1.1 500" not in await exchange(control.port, damaged(chance))
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    monkeypatch.undo()
    assert (await asyncio.to_thread(control.ask, "GET", "/health/live"))[0] == 200
