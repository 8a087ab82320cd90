"""`login`: a Kafka that misbehaves while the proxy logs in for its client."""

from __future__ import annotations

import asyncio
import socket
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client.settings import client_settings
from minibroker.kafka.protocol.api_keys import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    load_messages,
)
from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.messages.api_versions import ApiVersion
from minibroker.kafka.protocol.primitives import Writer
from minibroker.proxy.login import LoginWire
from minibroker.proxy.proxy import KafkaProxy
from tests.support.loops import last_bytes

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncIterator

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ANSWERS: dict[int, dict[str, Any]] = {
    API_VERSIONS: {
        "api_keys": [
            ApiVersion(api_key=key, min_version=0, max_version=1)
            for key in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
        ]
    },
    SASL_HANDSHAKE: {"mechanisms": ["PLAIN"]},
    SASL_AUTHENTICATE: {},
}
"""API → the fields of its answer."""


async def take_the_login_and_leave(reader: StreamReader, writer: StreamWriter) -> None:
    """Take any login, and end the connection behind the last answer."""
    api_key = API_VERSIONS
    while api_key != SASL_AUTHENTICATE:
        (size,) = unpack(">i", await reader.readexactly(4))
        api_key, version, correlation_id = unpack(">hhi", (await reader.readexactly(size))[:8])
        body = Writer()
        load_messages(api_key)[1](**ANSWERS[api_key]).write(body, version)
        frame = response_header(api_key, version, correlation_id) + body.to_bytes()
        writer.write(pack(">i", len(frame)) + frame)
    writer.close()


@pytest.fixture
async def kafka() -> AsyncIterator[str]:
    """Yield the address of such a Kafka."""
    server = await asyncio.start_server(take_the_login_and_leave, "127.0.0.1", 0)
    yield "{}:{}".format(*server.sockets[0].getsockname())
    server.close()


async def test_a_kafka_that_leaves_behind_the_login_ends_the_client(kafka: str) -> None:
    settings = client_settings(
        {
            "bootstrap.servers": kafka,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required username="alice" password="a";',
        }
    )
    events: list[str] = []
    proxy = KafkaProxy(settings, on_event=events.append)
    await proxy.start()
    with socket.create_connection(proxy.address) as client:
        client.setblocking(False)
        assert await last_bytes(client) == b""
    await proxy.stop()
    (event,) = events
    assert event.endswith("the broker closed the connection during the login")


class Transport:
    """A socket that says whether it was ended."""

    is_aborted = False

    def abort(self) -> None:
        """Do `Transport.abort`."""
        self.is_aborted = True


def test_bytes_that_nobody_takes_end_the_login() -> None:
    wire, transport = LoginWire(), Transport()
    wire.connection_made(transport)
    for _ in range(16):
        wire.data_received(bytes(1 << 16))
    assert not transport.is_aborted
    wire.data_received(bytes(1 << 16))
    assert transport.is_aborted
