"""`ControlTls`: the certificate of a listener or of a file, and what follows when it changes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import threading
from contextlib import asynccontextmanager, suppress
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.control.messages import (
    EventStream,
    HttpRequest,
    Response,
    Work,
    json_response,
)
from minibroker.control.server import HttpServer
from minibroker.control.streams import Streams, event_of
from minibroker.control.tls import ControlTls
from minibroker.kafka.errors import ConfigError
from tests.support.certificates import (
    broker_certificate,
    certificate_of,
    client_tls,
    pem_of,
    shake_hands,
    tls_settings,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator


def certificate_shown(tls: ControlTls, number: int = 0) -> bytes:
    """Return the certificate that a client sees which trusts the CA of this number."""
    client = client_tls(number)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(incoming, outgoing, server_hostname="localhost")
    answering_in, answering_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    answering = tls.context().wrap_bio(answering_in, answering_out, server_side=True)
    for _ in range(3):
        for side, out, bio in (
            (asking, outgoing, answering_in),
            (answering, answering_out, incoming),
        ):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
            bio.write(out.read())
    certificate = asking.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def replace(path: Path, number: int) -> None:
    """Write the broker's certificate of a CA, with a time that the file had never before."""
    old_mtime_ns = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(pem_of(broker_certificate(number)))
    if old_mtime_ns:
        os.utime(path, ns=(old_mtime_ns + 1, old_mtime_ns + 1))


def test_the_certificate_of_a_listener_follows_its_settings() -> None:
    config = BrokerConfig(tls_settings(0))
    tls = ControlTls("ssl", lambda: config)
    assert certificate_shown(tls, 0) == certificate_of(broker_certificate(0))
    config = BrokerConfig(tls_settings(1))
    assert certificate_shown(tls, 1) == certificate_of(broker_certificate(1))


def test_a_file_that_is_replaced_in_place_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "broker.pem"
    replace(file, 0)
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"})
    tls = ControlTls(str(file), lambda: config)
    first = tls.context()
    assert tls.context() is first
    replace(file, 1)
    assert certificate_shown(tls, 1) == certificate_of(broker_certificate(1))
    present = tls.context()
    file.write_text("half of it")
    os.utime(file, ns=(5, 5))
    assert tls.context() is present
    assert "the control API keeps its certificate" in caplog.text


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("SSL2", r"no listener has this name, .* expected SSL or a PEM file"),
        ("plain", r"listener PLAIN has no TLS, its protocol is PLAINTEXT"),
        (__file__, r"private keys, expected one, as PEM"),
    ],
)
def test_a_certificate_that_cannot_be(source: str, sentence: str) -> None:
    config = BrokerConfig(
        {
            **tls_settings(),
            "listeners": "SSL://127.0.0.1:0,PLAIN://127.0.0.1:0",
            "listener.security.protocol.map": "SSL:SSL,PLAIN:PLAINTEXT",
        }
    )
    with pytest.raises(ConfigError, match=f"--control-tls {source}: .*{sentence}"):
        ControlTls(source, lambda: config)


def test_no_client_is_asked_for_a_certificate() -> None:
    config = BrokerConfig(tls_settings(0, ssl_client_auth="required"))
    server = ControlTls("SSL", lambda: config).context()
    assert shake_hands(server, client_tls()).getpeercert() is None


def answer(request: HttpRequest) -> Work:
    async def run(_: bytes) -> Response:
        return json_response(request.path)

    return Work(0, run)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = BrokerConfig(tls_settings(0))
    server = HttpServer(answer, ControlTls("SSL", lambda: config).context)
    yield await server.listen("127.0.0.1", 0)
    await server.close()


async def ask(port: int, tls: ssl.SSLContext | None) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        return await reader.readexactly(length)
    finally:
        writer.transport.abort()


async def test_requests_over_tls(port: int) -> None:
    assert json.loads(await ask(port, client_tls(0))) == "/a"


async def test_a_stream_over_tls_goes_on_until_its_client_leaves() -> None:
    streams = Streams()

    async def pieces() -> AsyncGenerator[bytes, None]:
        for number in range(1_000_000):
            yield event_of("number", number)
            await asyncio.sleep(0)

    def begin(_: HttpRequest) -> Work:
        async def run(_: bytes) -> EventStream:
            return streams.open("numbers", pieces())

        return Work(0, run)

    config = BrokerConfig(tls_settings(0))
    server = HttpServer(begin, ControlTls("SSL", lambda: config).context)
    port = await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls(0))
    writer.write(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"data: 300\n\n")
    assert streams.count == 1
    writer.transport.abort()
    await eventually(lambda: streams.count == 0)
    await server.close()


def ask_without_trust(port: int) -> None:
    """Ask like a program that does not know the CA; unlike asyncio's, its alert is sent."""
    with pytest.raises(ssl.SSLCertVerificationError):
        HTTPSConnection("localhost", port, context=client_tls(1), timeout=60).request("GET", "/a")


async def test_a_client_that_fails_is_one_line(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        await ask(port, None)
    assert "the client speaks plain HTTP, its address has to begin with https://" in caplog.text
    await asyncio.to_thread(ask_without_trust, port)
    assert json.loads(await ask(port, client_tls(0))) == "/a"
    assert "curl --cacert" in caplog.text
    assert len(caplog.records) == 2


async def test_handshakes_that_never_end_make_room(port: int) -> None:
    waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(80)]
    assert json.loads(await ask(port, client_tls(0))) == "/a"
    for _, writer in waiting:
        writer.transport.abort()


# `TlsLayer`: a handshake beside the loop, bytes, the end. Its peers are Python's TLS clients.


LARGE = b"x" * 300_000
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def layer_answer(request: HttpRequest) -> Work:
    async def run(_: bytes) -> Response:
        return Response(200, LARGE) if request.path == "/large" else json_response(request.path)

    return Work(0, run)


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Serve the control API's HTTP with this context; give the port."""
    server = HttpServer(layer_answer, lambda: context)
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

    class RecordingSocket(ssl.SSLObject):
        def do_handshake(self) -> None:
            threads.add(threading.get_ident())
            super().do_handshake()

    context = context_of_broker()
    context.sslobject_class = RecordingSocket
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
    server = HttpServer(layer_answer, context_of_broker)
    port = await server.listen("127.0.0.1", 0)
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01")  # a record begins
        await eventually(lambda: len(server._guards) == 1)
        writer.close()
        await eventually(lambda: not server._guards)
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
