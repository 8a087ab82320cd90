"""A scripted broker, asked over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.clock import SystemClock
from minibroker.kafka.protocol.header import response_header_version
from minibroker.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from minibroker.kafka.protocol.primitives import Reader
from minibroker.proxy.addresses import rewrite_all
from minibroker.trace.decode import TOKEN
from minibroker.trace.script import Script
from minibroker.trace.scripted_broker import FRAME_BYTES_MAX, ScriptedBroker
from tests.support.trace_frames import EXCHANGE, request_frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from minibroker.trace.exchange import Exchange

VERSIONS = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=9)])
METADATA = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="kafka", port=9092)])


class Client:
    """A connection to a scripted broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, frame: bytes) -> None:
        self.writer.write(len(frame).to_bytes(4, "big") + frame)

    async def receive(self) -> bytes:
        size_bytes = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size_bytes)

    async def call(
        self, request: Any, version: int, response: Any, *, reads: int | None = None
    ) -> Any:
        """Return the answer, read in version `reads`."""
        self.send(request_frame(request, version, 77))
        frame = await self.receive()
        assert frame[:4] == (77).to_bytes(4, "big")
        flexible = response_header_version(request.API_KEY, version)
        return response.read(Reader(frame, 4 + flexible), version if reads is None else reads)

    async def is_closed(self) -> bool:
        """Return True once the broker has closed the connection."""
        return await self.reader.read() == b""


class Stage:
    """A scripted broker, and what it told."""

    def __init__(self) -> None:
        self.script = Script()
        self.exchanges: list[Exchange] = []
        self.refusals: list[str] = []
        self.broker = ScriptedBroker(
            self.script,
            rewrite_all,
            SystemClock().now_ms,
            on_exchange=self.exchanges.append,
            on_refused=self.refusals.append,
        )
        self.address = ("", 0)

    def record(self, api: str, version: int, request: Any, answer: Any, **fields: Any) -> None:
        exchange = EXCHANGE._replace(api=api, version=version, request=request, answer=answer)
        self.script.add(exchange._replace(duration_ms=0.0)._replace(**fields))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection(*self.address)
        async with asyncio.timeout(30):
            yield Client(reader, writer)
        writer.close()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    result = Stage()
    result.address = await result.broker.start("127.0.0.1", 0)
    yield result
    await result.broker.stop()


async def test_an_answer_is_the_one_of_then_with_this_address(stage: Stage) -> None:
    stage.record("Metadata", 9, MetadataRequest(), METADATA)
    async with stage.client() as client:
        answer = await client.call(MetadataRequest(), 9, MetadataResponse)
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, *stage.address)
    (exchange,) = stage.exchanges
    assert (exchange.api, exchange.client_id, exchange.number) == ("Metadata", "c", 1)


async def test_a_request_that_was_not_recorded_closes_the_connection(stage: Stage) -> None:
    stage.record("Heartbeat", 4, HeartbeatRequest(group_id="g"), HeartbeatResponse())
    async with stage.client() as client:
        client.send(request_frame(HeartbeatRequest(group_id="h"), 4))
        assert await client.is_closed()
    assert stage.refusals == [
        "not recorded: Heartbeat v4 about group h, generation 0; "
        "Heartbeat v4 was recorded about: group g, generation 0"
    ]
    assert (stage.broker.answered, stage.broker.refused) == (0, 1)


async def test_versions_that_were_not_asked_for_are_answered_as_by_a_broker(stage: Stage) -> None:
    stage.record("ApiVersions", 3, ApiVersionsRequest(client_software_name="old"), VERSIONS)
    async with stage.client() as client:
        request = ApiVersionsRequest(client_software_name="new", client_software_version="2")
        same = await client.call(request, 3, ApiVersionsResponse)
        assert same.api_keys == VERSIONS.api_keys
        other = await client.call(request, 4, ApiVersionsResponse, reads=0)
        assert (other.error_code, other.api_keys) == (35, VERSIONS.api_keys)
        client.send(b"\x00\x12\x00\x63\x00\x00\x00\x07\xff\xff")
        unknown = ApiVersionsResponse.read(Reader(await client.receive(), 4), 0)
        assert (unknown.error_code, unknown.api_keys) == (35, VERSIONS.api_keys)


async def test_a_request_without_an_answer_gets_none(stage: Stage) -> None:
    stage.record("Produce", 9, ProduceRequest(acks=0), None, answer_bytes=None)
    stage.record("Metadata", 9, MetadataRequest(), METADATA)
    async with stage.client() as client:
        client.send(request_frame(ProduceRequest(acks=0), 9))
        assert (await client.call(MetadataRequest(), 9, MetadataResponse)).brokers
    assert [exchange.answer_bytes is None for exchange in stage.exchanges] == [True, False]


async def test_large_requests_are_answered_in_their_order(stage: Stage) -> None:
    """They are compared in a thread."""
    large = HeartbeatRequest(group_id="g" * 30_000)
    stage.record("Heartbeat", 4, large, HeartbeatResponse(error_code=27))
    stage.record("Metadata", 9, MetadataRequest(), METADATA)
    async with stage.client() as client:
        client.send(request_frame(large, 4))
        client.send(request_frame(MetadataRequest(), 9))
        await client.receive()
        await client.receive()
    assert [exchange.api for exchange in stage.exchanges] == ["Heartbeat", "Metadata"]


async def test_a_login_with_plain_is_played_again(stage: Stage) -> None:
    handshake = SaslHandshakeRequest(mechanism="PLAIN")
    stage.record("SaslHandshake", 0, handshake, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    stage.record(TOKEN, 0, None, None, answer_bytes=0)
    stage.record("Metadata", 9, MetadataRequest(), METADATA)
    async with stage.client() as client:
        answer = await client.call(handshake, 0, SaslHandshakeResponse)
        assert answer.mechanisms == ["PLAIN"]
        client.send(b"\x00alice\x00secret")
        assert await client.receive() == b""
        assert (await client.call(MetadataRequest(), 9, MetadataResponse)).brokers
    assert [exchange.api for exchange in stage.exchanges] == ["SaslHandshake", TOKEN, "Metadata"]


async def test_a_login_that_cannot_be_repeated_is_refused(stage: Stage) -> None:
    handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    stage.record("SaslHandshake", 0, handshake, SaslHandshakeResponse())
    async with stage.client() as client:
        await client.call(handshake, 0, SaslHandshakeResponse)
        client.send(b"n,,n=alice")
        assert await client.is_closed()
    assert stage.refusals == ["not recorded: a login whose answers can be repeated"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        ((FRAME_BYTES_MAX + 1).to_bytes(4, "big"), "a frame of 104857601 bytes"),
        (b"\x00\x00\x00\x02\x00\x03", "no request v-1 cannot be read"),
        (b"\x00\x00\x00\x09\x03\xe7\x00\x00\x00\x00\x00\x01\x00", "api 999 v0 cannot be read"),
    ],
)
async def test_bytes_that_are_no_request_close_the_connection(
    stage: Stage, data: bytes, message: str
) -> None:
    async with stage.client() as client:
        client.writer.write(data)
        assert await client.is_closed()
    (refusal,) = stage.refusals
    assert message in refusal


async def test_an_answer_that_cannot_be_written_closes_the_connection(stage: Stage) -> None:
    stage.record("Heartbeat", 4, HeartbeatRequest(), HeartbeatResponse(error_code=1 << 40))
    async with stage.client() as client:
        client.send(request_frame(HeartbeatRequest(), 4))
        assert await client.is_closed()
    assert "the recorded answer to Heartbeat v4 cannot be written" in stage.refusals[0]


async def test_a_stop_ends_requests_that_wait(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.record("Metadata", 9, MetadataRequest(), METADATA, duration_ms=3_600_000.0)
    is_found, find = asyncio.Event(), stage.script.find

    def find_and_tell(*arguments: Any) -> Any:
        is_found.set()
        return find(*arguments)

    monkeypatch.setattr(stage.script, "find", find_and_tell)
    async with stage.client() as client:
        client.send(request_frame(MetadataRequest(), 9))
        await is_found.wait()
        await stage.broker.stop()
        assert await client.is_closed()
