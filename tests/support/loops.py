"""Both loops for the tests of a folder: its conftest imports the hook."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Make each asynchronous test run on uvloop, which serves, and on asyncio's own loop."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


async def last_bytes(client: socket.socket) -> bytes:
    """Return the next byte of a socket that does not block; none at the end of its connection,
    also where it was reset.
    """
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), timeout=60)
    except ConnectionResetError:
        return b""
