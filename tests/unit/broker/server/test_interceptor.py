"""Looking in on requests: what an interceptor is asked, may change, and is told."""

from __future__ import annotations

import asyncio
import errno
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.server.handling import handle_call
from minibroker.broker.storage.files import Files
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import TIMEOUT_S, Serve, request_frame
from tests.support.record_requests import fetch_from, produce_values

if TYPE_CHECKING:
    from minibroker.broker.server.call import Call
    from tests.support.in_process import InProcessBroker


class Looking:
    """An interceptor that writes down what it is asked and told; requests of `lost` get none."""

    def __init__(self, running: InProcessBroker, *, lost: str = "") -> None:
        self.names: list[str] = []
        self.answers: list[tuple[str, Any]] = []
        self.closed: list[str] = []
        self._lost = lost
        self.is_told = asyncio.Event()
        self.has_closed = asyncio.Event()
        running.broker.intercept(self)

    def handle(self, call: Call) -> Any:
        self.names.append(call.handler.name)
        return None if call.handler.name == self._lost else handle_call(call)

    def on_end(self, call: Call, answer: Any) -> None:
        self.answers.append((call.handler.name, answer))
        self.is_told.set()

    def on_close(self, context: Any) -> None:
        self.closed.append(context.client_address)
        self.has_closed.set()


async def test_it_is_told_of_each_answer_in_order_and_the_clients_get_them(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    looking = Looking(running)
    async with await running.connect() as client:
        for request in (produce_values("t", b"a"), produce_values("t", b"b")):
            client.send(request, 9)
        client.send(MetadataRequest(topics=[]), 9)
        for offset in (0, 1):
            (topic,) = (await client.receive()).responses
            assert topic.partition_responses[0].base_offset == offset
        await client.receive()
    assert looking.names == ["Produce", "Produce", "Metadata"]
    assert [name for name, _ in looking.answers] == looking.names
    parts = [answer.parts for _, answer in looking.answers[:2]]
    assert [part.base_offset for (part,) in parts] == [0, 1]


async def test_a_write_that_the_disk_refuses_is_told_as_the_client_hears_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    running = await serve()
    await running.create_topic("t")
    looking = Looking(running)
    async with await running.connect() as client:
        await client.call(produce_values("t", b"a"), 9)
        monkeypatch.setattr(Files, "pwritev", refuse)
        (topic,) = (await client.call(produce_values("t", b"b"), 9)).responses
        monkeypatch.undo()
    assert topic.partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [answer.error_code for _, answer in looking.answers] == [
        0,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ]


async def test_a_request_that_it_takes_away_gets_no_answer_and_the_next_one_does(
    serve: Serve,
) -> None:
    running = await serve()
    looking = Looking(running, lost="Metadata")
    async with await running.connect() as client:
        lost = request_frame(MetadataRequest(topics=[]), 9, 1)
        client.writer.write(lost + pack(">ihhih", 10, 18, 0, 2, -1))
        client.expect(18, 0, 2)
        assert (await client.receive()).error_code == 0
    assert looking.names == ["Metadata", "ApiVersions"]
    assert [name for name, _ in looking.answers] == ["ApiVersions"]


async def test_a_version_that_is_not_served_is_told_and_not_asked(serve: Serve) -> None:
    running = await serve()
    looking = Looking(running)
    async with await running.connect() as client:
        client.writer.write(pack(">ihhih", 11, 18, 99, 7, -1) + b"\0")
        await client.receive_frame()
    assert looking.names == []
    ((_, answer),) = looking.answers
    assert answer.response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_it_is_told_of_a_wait_that_its_client_has_left(serve: Serve) -> None:
    running = await serve()
    await running.create_topic("t")
    looking = Looking(running)
    async with asyncio.timeout(TIMEOUT_S):
        async with await running.connect() as client:
            client.send(fetch_from("t", max_wait_ms=60_000), 11)
            async with await running.connect() as other:
                while "Fetch" not in looking.names:
                    await other.call(MetadataRequest(topics=[]), 9)
            looking.is_told.clear()
        await looking.is_told.wait()
    assert looking.answers[-1] == ("Fetch", None)


async def test_it_is_told_of_connections_that_close(serve: Serve) -> None:
    running = await serve()
    looking = Looking(running)
    async with await running.connect() as client:
        host, port = client.writer.get_extra_info("sockname")
    await asyncio.wait_for(looking.has_closed.wait(), TIMEOUT_S)
    assert looking.closed == [f"{host}:{port}"]
