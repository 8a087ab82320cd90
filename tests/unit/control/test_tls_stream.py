"""`TlsStream`: a handshake beside the loop, bytes, the end. Its peers are Python's TLS clients."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.control.http import HttpRequest, HttpServer, Response, json_response
from minibroker.control.tls import ControlTls
from tests.support.certificates import client_tls, tls_settings
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LARGE = b"x" * 300_000
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


async def answer(request: HttpRequest) -> Response:
    return Response(200, LARGE) if request.path == "/large" else json_response(request.path)


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Serve the control API's HTTP with this context; give the port."""
    server = HttpServer(answer, lambda: context)
    try:
        yield await server.listen("127.0.0.1", 0)
    finally:
        await server.close()


def context_of_broker() -> ssl.SSLContext:
    config = BrokerConfig(tls_settings())
    return ControlTls("SSL", lambda: config).context()


async def get(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, extra: str = ""
) -> bytes:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{extra}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    return await reader.readexactly(length)


async def test_the_steps_of_a_handshake_run_beside_the_loop() -> None:
    """Check the thread: the work of the key takes milliseconds."""
    threads: set[int] = set()

    class Noting(ssl.SSLObject):
        def do_handshake(self) -> None:
            threads.add(threading.get_ident())
            super().do_handshake()

    context = context_of_broker()
    context.sslobject_class = Noting
    async with serving(context) as port:
        streams = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls())
        assert await get(*streams, "/a") == b'"/a"\n'
        streams[1].transport.abort()
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("version", VERSIONS)
async def test_requests_and_large_answers_on_one_connection(version: ssl.TLSVersion) -> None:
    tls = client_tls()
    tls.minimum_version = tls.maximum_version = version
    async with serving(context_of_broker()) as port:
        streams = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        for _ in range(2):
            assert await get(*streams, "/large") == LARGE
            assert await get(*streams, "/b") == b'"/b"\n'
        streams[1].transport.abort()


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_end_is_told(version: ssl.TLSVersion) -> None:
    """Read up to the broker's word that nothing follows: without it the answer might be cut."""
    tls = client_tls()
    tls.minimum_version = tls.maximum_version = version

    def ask(port: int) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", port), 60) as plain,
            tls.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as end,
        ):
            end.sendall(b"GET /c HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            received = b""
            while more := end.recv(65536):
                received += more
            return received

    async with serving(context_of_broker()) as port:
        assert (await asyncio.to_thread(ask, port)).endswith(b'"/c"\n')


async def test_a_client_that_leaves_in_the_handshake_ends_its_connection() -> None:
    server = HttpServer(answer, context_of_broker)
    port = await server.listen("127.0.0.1", 0)
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01")  # a record begins
        await eventually(lambda: len(server._tasks) == 1)
        writer.close()
        await eventually(lambda: not server._tasks)
    finally:
        await server.close()


async def test_the_server_closes_while_a_handshake_waits() -> None:
    async with serving(context_of_broker()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01")
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await reader.readexactly(1)
    writer.close()


async def test_hostile_bytes_end_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(context_of_broker()) as port:
        for data in (b"\x00" * 64, b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
        streams: Any = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls())
        assert await get(*streams, "/still") == b'"/still"\n'
        streams[1].transport.abort()
    assert caplog.text.count("TLS of the control API with 127.0.0.1 failed") == 2
