"""The gate of a SASL listener: sessions that end, the delay of a refusal, frames in pieces."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.security.sasl.mechanisms import Mechanisms
from minibroker.broker.server.connection import ConnectionState
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.in_process import TIMEOUT_S, InProcessBroker, ManualClock, request_frame
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.support.in_process import RawClient

SESSION_MS = 60_000
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "connections.max.reauth.ms": str(SESSION_MS),
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'a.B required user_alice="s3cret";',
}
HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
LOGIN = SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cret")
METADATA = MetadataRequest(topics=[])


@pytest.fixture
def clock() -> ManualClock:
    """The broker's clock."""
    return ManualClock()


@pytest.fixture
async def running(tmp_path: Path, clock: ManualClock) -> AsyncIterator[InProcessBroker]:
    """A broker with a SASL listener."""
    async with InProcessBroker(tmp_path, SETTINGS, clock=clock) as broker:
        yield broker


async def log_in(client: RawClient, login: SaslAuthenticateRequest = LOGIN) -> Any:
    await client.call(HANDSHAKE, 1)
    return await client.call(login, 1)


async def test_a_client_has_its_own_name(running: InProcessBroker) -> None:
    async with await running.connect() as client:
        assert (await log_in(client)).error_code == 0
        (connection,) = running.server.connections
        assert connection._context.principal == "User:alice"
        assert (await client.call(METADATA, 9)).brokers


@pytest.mark.parametrize("step", [1, 7])
async def test_frames_may_come_in_pieces_and_several_at_once(
    running: InProcessBroker, step: int
) -> None:
    frames = [(HANDSHAKE, 1), (LOGIN, 1), (METADATA, 9)]
    stream = b"".join(request_frame(request, version) for request, version in frames)
    async with await running.connect() as client:
        for start in range(0, len(stream), step):
            client.writer.write(stream[start : start + step])
            await client.writer.drain()
        for request, version in frames:
            client.expect(request.API_KEY, version, 1)
            await client.receive()


async def test_a_refusal_waits_for_its_delay_and_nothing_is_read_meanwhile(
    running: InProcessBroker, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with await running.connect() as client:
        await client.call(HANDSHAKE, 1)
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wr0ng"), 1)
        (connection,) = running.server.connections
        await eventually(lambda: connection.connection.state is ConnectionState.REFUSED)
        assert not connection._transport.is_reading()
        clock.advance(100)
        assert (await client.receive()).error_code == 58
        assert await client.is_closed_by_broker()
    assert running.broker.services.metrics.failed_authentications == 1
    assert "on listener SASL_PLAINTEXT: Authentication failed: Invalid user" in caplog.text
    assert "wr0ng" not in caplog.text
    assert "s3cret" not in caplog.text


async def test_a_client_that_leaves_before_its_refusal_leaves_no_timer(
    running: InProcessBroker, clock: ManualClock
) -> None:
    old_count = len(running.broker.timers)
    async with await running.connect() as client:
        client.send(METADATA, 9)
        (connection,) = running.server.connections
        await eventually(lambda: connection.connection.state is ConnectionState.REFUSED)
        assert len(running.broker.timers) == old_count + 1
        await running.stop()
    clock.advance(100)


async def test_a_session_that_has_ended_serves_no_request(
    running: InProcessBroker, clock: ManualClock
) -> None:
    async with await running.connect() as client:
        assert (await log_in(client)).session_lifetime_ms == SESSION_MS
        clock.advance(SESSION_MS)
        assert (await client.call(METADATA, 9)).brokers
        clock.advance(1)
        client.send(METADATA, 9)
        assert await client.is_closed_by_broker()


async def test_a_session_can_be_renewed_after_its_end(
    running: InProcessBroker, clock: ManualClock
) -> None:
    async with await running.connect() as client:
        for _ in range(3):
            assert (await log_in(client)).session_lifetime_ms == SESSION_MS
            assert (await client.call(METADATA, 9)).brokers
            clock.advance(SESSION_MS * 2)


async def test_a_session_is_renewed_once_a_second(
    running: InProcessBroker, clock: ManualClock
) -> None:
    async with await running.connect() as client:
        await log_in(client)
        await log_in(client)
        clock.advance(999)
        assert (await client.call(HANDSHAKE, 1)).error_code == 34
        clock.advance(1)
        assert (await log_in(client)).error_code == 0


async def test_a_broker_stops_while_clients_authenticate(running: InProcessBroker) -> None:
    async with await running.connect() as new, await running.connect() as user:
        await new.call(HANDSHAKE, 1)
        await log_in(user)
        await user.call(HANDSHAKE, 1)
        await running.stop()
        assert await new.is_closed_by_broker()
        assert await user.is_closed_by_broker()


async def test_a_client_that_does_not_log_in_is_closed_whatever_it_sends(
    running: InProcessBroker,
) -> None:
    """A byte now and then does not keep a place for ever; after the login it does."""
    connections = running.server.connections
    half_a_handshake = request_frame(HANDSHAKE, 1)[:-1]
    async with await running.connect() as slow, await running.connect() as alice:
        await log_in(alice)
        for connection in connections:
            connection._connected_s -= 600  # type: ignore[attr-defined]
        for byte in half_a_handshake:
            slow.writer.write(bytes([byte]))
            await slow.writer.drain()
        assert (await alice.call(METADATA, 9)).brokers
        connections._close_idle()
        assert not await slow.reader.read()
        assert (await alice.call(METADATA, 9)).brokers


class Slow:
    """A mechanism that looks at a token beside the loop, as long as a test wants."""

    may_block = True

    def __init__(self) -> None:
        self.arrival, self.over = threading.Event(), threading.Event()
        self.is_complete = False
        self.name = "carol"
        self.expires_ms: int | None = None
        self.is_token = False
        self.error: Exception | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes | None:
        self.arrival.set()
        assert self.over.wait(TIMEOUT_S)
        if self.error is not None:
            raise self.error
        self.is_complete = True
        return None


@pytest.fixture
def slow(running: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """The mechanism of the next login."""
    slow = Slow()
    monkeypatch.setattr(Mechanisms, "begin", lambda *_: slow)
    yield slow
    slow.over.set()


async def test_requests_wait_while_a_worker_looks_at_a_token(
    running: InProcessBroker, slow: Slow
) -> None:
    async with await running.connect() as client, await running.connect() as other:
        await client.call(HANDSHAKE, 1)
        client.send(LOGIN, 1)
        client.send(METADATA, 9)
        assert await asyncio.to_thread(slow.arrival.wait, TIMEOUT_S)
        states = [transport.connection.state for transport in running.server.connections]
        assert states.count(ConnectionState.VERIFYING) == 1
        assert not (await other.call(ApiVersionsRequest(), 0)).error_code
        slow.over.set()
        assert (await client.receive()).error_code == 0
        assert (await client.receive()).brokers
        principals = [transport._context.principal for transport in running.server.connections]
        assert "User:carol" in principals


async def test_a_client_that_leaves_meanwhile_is_forgotten(
    running: InProcessBroker, slow: Slow
) -> None:
    async with await running.connect() as client:
        await client.call(HANDSHAKE, 1)
        client.send(LOGIN, 1)
        assert await asyncio.to_thread(slow.arrival.wait, TIMEOUT_S)
    await eventually(lambda: not len(running.server.connections))
    slow.error = ValueError("nobody hears it")
    slow.over.set()


async def test_a_mistake_of_a_worker_ends_the_connection(
    running: InProcessBroker, slow: Slow, caplog: pytest.LogCaptureFixture, clock: ManualClock
) -> None:
    slow.error = ValueError("a bug")
    errors: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    async with await running.connect() as client:
        await client.call(HANDSHAKE, 1)
        client.send(LOGIN, 1)
        slow.over.set()
        await eventually(lambda: errors == [slow.error])
        clock.advance(1000)
        with pytest.raises(ConnectionError):
            await client.receive()


async def test_a_long_request_in_the_place_of_a_token_gets_no_answer(
    running: InProcessBroker, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    monkeypatch.setattr(MetadataRequest, "read", lambda *_: calls.append(None))
    names = [MetadataRequestTopic(name=f"t{number}") for number in range(10_000)]
    async with await running.connect() as client:
        await client.call(HANDSHAKE, 1)
        client.send(MetadataRequest(topics=names), 9)
        await eventually(
            lambda: any(
                served.connection.state is ConnectionState.REFUSED
                for served in running.server.connections
            )
        )
        clock.advance(1_000)
        assert await client.is_closed_by_broker()
    assert not calls
