"""Requests to brokers by their id: one connection kept, opened anew with patience, given up."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from minibroker.broker import peers as client_module
from minibroker.broker.peers import BACKOFF_MS_MAX, PeerClient, backoff_ms
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.message_bytes import body_of
from tests.support.peer_clients import ScriptedBroker, peer_client, registered
from tests.support.waiting import eventually


def answer(_key: int, version: int, _correlation_id: int) -> bytes:
    return b"\0" + body_of(MetadataResponse(), version)  # version 9: a header with tagged fields


async def ask(client: PeerClient, broker_id: int = 7) -> Any:
    return await client.call(broker_id, MetadataRequest(topics=[]), MetadataResponse)


def free_address() -> tuple[str, int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
        return host, port


async def test_one_connection_is_kept_for_all_callers() -> None:
    async with ScriptedBroker(answer) as broker, peer_client({7: broker.address}) as client:
        answers = await asyncio.gather(*(ask(client) for _ in range(10)))
        assert len(answers) == 10
        await ask(client)
        assert broker.connection_count == 1


async def test_a_connection_that_ended_is_opened_anew() -> None:
    async with ScriptedBroker(answer) as broker, peer_client({7: broker.address}) as client:
        await ask(client)
        connection = client._peers[7].connection
        assert connection is not None
        broker.hang_up()
        await connection.wait_closed()
        await ask(client)
        assert broker.connection_count == 2


async def test_a_broker_with_another_address_is_asked_there() -> None:
    async with (
        ScriptedBroker(answer) as old_broker,
        ScriptedBroker(answer) as after,
        peer_client({7: old_broker.address}) as client,
    ):
        await ask(client)
        client._cluster.image.brokers = registered({7: after.address})
        await ask(client)
        assert (old_broker.connection_count, after.connection_count) == (1, 1)


async def test_a_broker_that_left_loses_its_connection() -> None:
    async with ScriptedBroker(answer) as broker, peer_client({7: broker.address}) as client:
        await ask(client)
        connection = client._peers[7].connection
        assert connection is not None
        client._cluster.image.brokers = {}
        with pytest.raises(ConnectionError, match="broker 7 is not registered"):
            await ask(client)
        assert not connection.is_open


async def test_a_connection_to_a_broker_that_left_meanwhile_is_closed() -> None:
    may_go_on = asyncio.Event()

    async def sleep(_pause_s: float) -> None:
        await may_go_on.wait()

    async with (
        ScriptedBroker(answer) as broker,
        peer_client({7: broker.address}, sleep=sleep) as client,
    ):
        await ask(client)
        peer = client._peers[7]
        assert peer.connection is not None
        peer.connection.close()
        peer.retry_at_s = asyncio.get_running_loop().time() + 1000
        waiting = asyncio.create_task(ask(client))
        await eventually(lambda: peer.opening is not None)
        client._cluster.image.brokers = {}
        with pytest.raises(ConnectionError, match="not registered"):
            await ask(client)
        may_go_on.set()
        with pytest.raises(ConnectionError, match="not registered any more"):
            await waiting
        await eventually(lambda: broker.connection_count == 2)
        await eventually(lambda: not broker._writers)


async def test_failures_in_a_row_make_the_pause_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def note(failures: int, _chance: float) -> float:
        counts.append(failures)
        return 0

    monkeypatch.setattr(client_module, "backoff_ms", note)
    address = free_address()
    async with peer_client({7: address}) as client:
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                await ask(client)
        assert counts == [1, 2, 3]
        async with ScriptedBroker(answer) as broker:
            client._cluster.image.brokers = registered({7: broker.address})
            await ask(client)
        assert client._peers[7].failures == 0


async def test_a_pause_is_waited_for() -> None:
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    async with (
        ScriptedBroker(answer) as broker,
        peer_client({7: free_address()}, sleep=sleep) as client,
    ):
        with pytest.raises(ConnectionRefusedError):
            await ask(client)
        assert pauses == []
        client._peers[7].retry_at_s = asyncio.get_running_loop().time() + 1000
        client._cluster.image.brokers = registered({7: broker.address})
        await ask(client)
        assert len(pauses) == 1
        assert 0 < pauses[0] <= 1000


@pytest.mark.parametrize(
    ("failures", "expected_ms"), [(1, 50), (2, 100), (5, 800), (6, 1000), (10_000, BACKOFF_MS_MAX)]
)
def test_the_pause_doubles_up_to_a_second(failures: int, expected_ms: float) -> None:
    assert backoff_ms(failures, 0.5) == pytest.approx(expected_ms)
    assert backoff_ms(failures, 0) == pytest.approx(expected_ms * 0.8)
    assert backoff_ms(failures, 1) == pytest.approx(expected_ms * 1.2)


async def test_a_request_without_an_answer_takes_its_connection_along() -> None:
    async with (
        ScriptedBroker(lambda *_: None) as broker,
        peer_client({7: broker.address}, timeout_ms=200) as client,
    ):
        with pytest.raises(TimeoutError, match="broker 7 did not answer within"):
            await ask(client)
        connection = client._peers[7].connection
        assert connection is None or not connection.is_open


async def test_closing_ends_waiting_requests() -> None:
    async with ScriptedBroker(lambda *_: None) as broker:
        async with peer_client({7: broker.address}) as client:
            asking = asyncio.ensure_future(ask(client))
            await broker.wait_for(3)
        with pytest.raises(ConnectionError):
            await asking
        with pytest.raises(ConnectionError, match="stopping"):
            await ask(client)


async def test_closing_ends_a_pause() -> None:
    slept = asyncio.Event()

    async def sleep(_pause_s: float) -> None:
        slept.set()
        await asyncio.Event().wait()

    async with peer_client({7: free_address()}, sleep=sleep) as client:
        with pytest.raises(ConnectionRefusedError):
            await ask(client)
        asking = asyncio.ensure_future(ask(client))
        await slept.wait()
    with pytest.raises(ConnectionError):
        await asking
