"""One connection to another broker, over real sockets: versions, order, what ends it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import uvloop

from minibroker.client.async_connection import ANSWER_BYTES_MAX, IN_FLIGHT_MAX, AsyncConnection
from minibroker.client.connection import BlockingConnection
from minibroker.client.sasl import PasswordLogin
from minibroker.client.settings import client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minibroker.kafka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.support.in_process import InProcessBroker
from tests.support.message_bytes import body_of
from tests.support.peer_clients import ScriptedBroker

if TYPE_CHECKING:
    from pathlib import Path

METADATA = 3
VERSION = 8
"""Not flexible: the header of its answer is a correlation id and nothing else."""


def metadata_answer(cluster_id: str) -> bytes:
    return body_of(MetadataResponse(cluster_id=cluster_id), VERSION)


def echo(_key: int, _version: int, correlation_id: int) -> bytes:
    return metadata_answer(str(correlation_id))


async def open_to(broker: ScriptedBroker | InProcessBroker) -> AsyncConnection:
    return await AsyncConnection.open(*broker.address)


async def ask(connection: AsyncConnection) -> MetadataResponse:
    answer = await connection.call(MetadataRequest(topics=[]), MetadataResponse, VERSION)
    assert isinstance(answer, MetadataResponse)
    return answer


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
async def test_a_host_that_is_no_name_is_an_os_error(host: str) -> None:
    with pytest.raises(OSError, match="no name of a host"):
        await AsyncConnection.open(host, 9092)
    with pytest.raises(OSError, match="no name of a host"):
        BlockingConnection.open(client_settings({"bootstrap.servers": f"{host}:1"}), (host, 1))


async def test_a_minibroker_answers_in_the_newest_version(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        connection = await open_to(running)
        request = MetadataRequest(topics=[])
        version = connection.version_for(request, 0)
        assert version == MetadataRequest.VERSIONS[1]
        answer = await connection.call(request, MetadataResponse, version)
        assert [broker.node_id for broker in answer.brokers] == [0]
        connection.close()
        await connection.wait_closed()


async def test_versions_are_asked_for_once_and_again_where_ours_is_too_new() -> None:
    async with ScriptedBroker(echo) as broker:
        connection = await open_to(broker)
        assert [version for key, version, _ in broker.requests if key == 18] == [5, 3]
        for _ in range(3):
            await ask(connection)
        assert [key for key, _, _ in broker.requests] == [18, 18, METADATA, METADATA, METADATA]
        connection.close()


async def test_a_version_that_both_know_or_an_error_with_both_ranges() -> None:
    async with ScriptedBroker(echo) as broker:
        connection = await open_to(broker)
        assert connection.version_for(MetadataRequest(), 0) == 9
        assert connection.version_for(MetadataRequest(), 9) == 9
        for request, oldest in ((MetadataRequest(), 10), (WriteTxnMarkersRequest(), 0)):
            with pytest.raises(KafkaError, match="API") as caught:
                connection.version_for(request, oldest)
            assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
        connection.close()


async def test_answers_go_to_their_requests() -> None:
    async with ScriptedBroker(echo) as broker:
        connection = await open_to(broker)
        answers = await asyncio.gather(*(ask(connection) for _ in range(20)))
        ids = [str(number) for key, _, number in broker.requests if key == METADATA]
        assert [answer.cluster_id for answer in answers] == ids
        connection.close()


async def test_requests_in_flight_are_bounded() -> None:
    async with ScriptedBroker(lambda *_: None) as broker:
        connection = await open_to(broker)
        old_count = len(broker.requests)
        asking = [asyncio.ensure_future(ask(connection)) for _ in range(IN_FLIGHT_MAX + 3)]
        await broker.wait_for(old_count + IN_FLIGHT_MAX)
        assert len(connection._answers) == IN_FLIGHT_MAX
        connection.close()
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {ConnectionError}
        assert len(broker.requests) == old_count + IN_FLIGHT_MAX


async def test_a_caller_that_gives_up_costs_the_others_nothing() -> None:
    gate: list[bytes | None] = [None]
    async with ScriptedBroker(lambda *_: gate[0]) as broker:
        connection = await open_to(broker)
        given_up = asyncio.ensure_future(ask(connection))
        await broker.wait_for(3)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert connection.is_open
        connection.close()


async def test_the_end_of_the_stream_ends_every_request() -> None:
    async with ScriptedBroker(lambda *_: None) as broker:
        connection = await open_to(broker)
        asking = asyncio.ensure_future(ask(connection))
        await broker.wait_for(3)
        broker.hang_up()
        with pytest.raises(ConnectionError):
            await asking
        assert not connection.is_open
        with pytest.raises(ConnectionError):
            await ask(connection)


def test_a_request_behind_the_end_of_the_stream_is_a_connection_error() -> None:
    """The transport is closed, and the task that reads has not run yet: uvloop refuses to write."""

    async def ask_behind_the_end() -> None:
        async with ScriptedBroker(echo) as broker:
            connection = await open_to(broker)
            connection._outgoing.transport.abort()
            await asyncio.sleep(0)  # it is closed, `_read` is about to hear of it
            assert connection.is_open
            with pytest.raises(ConnectionError):
                await ask(connection)
            assert not connection.is_open
            await connection.wait_closed()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask_behind_the_end())


class RawAnswers:
    """A listener that sends these bytes to whoever writes, and closes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def __aenter__(self) -> RawAnswers:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(self._answer)
        writer.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\0\0\1", id="half a size"),
        pytest.param((ANSWER_BYTES_MAX + 1).to_bytes(4, "big"), id="too large"),
        pytest.param(b"\xff\xff\xff\xff", id="a negative size"),
        pytest.param(b"\0\0\0\3abc", id="no correlation id"),
        pytest.param(b"\0\0\0\x06\0\0\0\7\0\0", id="an answer to something else"),
        pytest.param(b"\0\0\0\x06\0\0\0\1\0\7", id="a body that is cut off"),
        pytest.param(b"\0\0\0\x0a\0\0\0\1\0\7\0\0\0\0", id="another error"),
    ],
)
async def test_a_malformed_answer_opens_no_connection(answer: bytes) -> None:
    async with RawAnswers(answer) as broker:
        with pytest.raises((OSError, ProtocolError)):
            await AsyncConnection.open(*broker.address)


SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'a.B required user_a="secret";',
    "connection.failed.authentication.delay.ms": "0",
    "connections.max.reauth.ms": "60000",
}


async def test_a_login_comes_before_the_first_request(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, SASL) as running:
        connection = await AsyncConnection.open(
            *running.address, PasswordLogin("PLAIN", "a", "secret")
        )
        assert (await ask(connection)).brokers
        assert not connection.is_retired
        connection._retires_at_s = asyncio.get_running_loop().time()
        assert connection.is_retired
        answer = asyncio.ensure_future(ask(connection))
        await asyncio.sleep(0)
        connection.retire()
        assert (await answer).brokers
        assert not connection.is_open
        await connection.wait_closed()


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        (PasswordLogin("PLAIN", "a", "wr0ng"), "Invalid username or password"),
        (
            PasswordLogin("SCRAM-SHA-256", "a", "wr0ng"),
            "logins by PLAIN are taken, not SCRAM-SHA-256",
        ),
    ],
)
async def test_a_login_that_is_not_taken_is_a_connection_error(
    tmp_path: Path, login: PasswordLogin, reason: str
) -> None:
    async with InProcessBroker(tmp_path, SASL) as running:
        with pytest.raises(ConnectionError, match=reason) as refused:
            await AsyncConnection.open(*running.address, login)
        assert "wr0ng" not in str(refused.value)
