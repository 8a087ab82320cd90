"""`acceptor`: clients that come while it ends, whose handshake fails, that cannot be accepted."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from typing import Any

import pytest

from minibroker.acceptor import Acceptor
from tests.support.loops import last_bytes
from tests.support.waiting import eventually


class Visitors:
    """An acceptor, and what it says of its clients."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.protocols: list[Visitor] = []
        self.dropped: list[Visitor] = []
        self.sentences: list[str] = []
        self.acceptor = Acceptor(
            self._begin, self.dropped.append, self.sentences.append, backlog=8, tls=tls
        )

    def _begin(self) -> Visitor:
        self.protocols.append(Visitor())
        return self.protocols[-1]


class Visitor(asyncio.Protocol):
    """One of its clients."""

    transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """Do `Protocol.connection_made`."""
        self.transport = transport


@pytest.mark.parametrize("turns", range(8))
async def test_a_client_that_comes_at_the_end_is_served_or_closed(turns: int) -> None:
    visitors = Visitors()
    port = await visitors.acceptor.listen("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        for _ in range(turns):
            await asyncio.sleep(0)
        visitors.acceptor.close()
        await visitors.acceptor.finish()
        for visitor in visitors.protocols:
            assert (visitor.transport is None) <= (visitor in visitors.dropped)
            if visitor.transport is not None:
                visitor.transport.abort()
        assert await last_bytes(client) == b""
    assert not visitors.acceptor.is_listening


async def test_a_client_without_a_handshake_is_dropped() -> None:
    visitors = Visitors(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    port = await visitors.acceptor.listen("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(client, b"this is no handshake")
        await eventually(lambda: visitors.dropped)
    assert visitors.dropped == visitors.protocols
    visitors.acceptor.close()
    await visitors.acceptor.finish()


async def test_a_host_that_is_no_name_is_an_os_error() -> None:
    visitors = Visitors()
    with pytest.raises(OSError, match="no name of a host"):
        await visitors.acceptor.listen("a..b", 0)
    assert not visitors.acceptor.is_listening


async def test_a_failure_to_accept_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits in the kernel, and is accepted when there are files again."""
    visitors = Visitors()
    port = await visitors.acceptor.listen("127.0.0.1", 0)
    failures = 3
    accept = socket.socket.accept

    def fail(bound: socket.socket) -> Any:
        nonlocal failures
        if failures == 0:
            return accept(bound)
        failures -= 1
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(socket.socket, "accept", fail)
    monkeypatch.setattr("minibroker.acceptor.ACCEPT_RETRY_S", 0.0)
    with socket.create_connection(("127.0.0.1", port)):
        await eventually(lambda: visitors.protocols and visitors.protocols[0].transport)
        visitors.protocols[0].transport.abort()
    assert visitors.sentences == ["cannot accept a connection: [Errno 24] Too many open files"]
    visitors.acceptor.close()
    await visitors.acceptor.finish()
