"""`ControlTls`: the certificate of a listener or of a file, and what follows when it changes."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from contextlib import suppress
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.control.http import HttpRequest, HttpServer, Response, json_response
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def shown(tls: ControlTls, number: int = 0) -> bytes:
    """Return the certificate that a client sees which trusts the CA of this number."""
    client = client_tls(number)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(incoming, outgoing, server_hostname="localhost")
    answering_in, answering_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    answering = tls.context().wrap_bio(answering_in, answering_out, server_side=True)
    for _ in range(3):
        for side, out, there in (
            (asking, outgoing, answering_in),
            (answering, answering_out, incoming),
        ):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
            there.write(out.read())
    found = asking.getpeercert(binary_form=True)
    assert found is not None
    return found


def replace(path: Path, number: int) -> None:
    """Write the broker's certificate of a CA, with a time that the file had never before."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(pem_of(broker_certificate(number)))
    if before:
        os.utime(path, ns=(before + 1, before + 1))


def test_the_certificate_of_a_listener_follows_its_settings() -> None:
    config = BrokerConfig(tls_settings(0))
    tls = ControlTls("ssl", lambda: config)
    assert shown(tls, 0) == certificate_of(broker_certificate(0))
    config = BrokerConfig(tls_settings(1))
    assert shown(tls, 1) == certificate_of(broker_certificate(1))


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
    assert shown(tls, 1) == certificate_of(broker_certificate(1))
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


async def answer(request: HttpRequest) -> Response:
    return json_response(request.path)


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
