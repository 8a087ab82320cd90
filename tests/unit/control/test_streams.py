"""Streams of events over HTTP: they end with their client, and nothing is left of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.control import server as http_server
from minibroker.control import streams as streams_module
from minibroker.control.messages import HttpError, HttpRequest, Work
from minibroker.control.server import HttpServer
from minibroker.control.streams import HEARTBEAT, StreamPace, Streams, event_of
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from minibroker.control.messages import EventStream

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LARGE = bytes(1 << 20)


class Source:
    """A server with one stream, whose events the test makes."""

    def __init__(self) -> None:
        self.streams = Streams()
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.pieces_ended = 0

    def begin(self, _: HttpRequest) -> Work:
        async def run(_: bytearray) -> EventStream:
            return self.streams.open("numbers", self._pieces())

        return Work(0, run)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            while (event := await self.events.get()) is not None:
                if event == b"broken":
                    raise RuntimeError("a bug")
                yield event
        finally:
            self.pieces_ended += 1


@pytest.fixture
async def source() -> AsyncIterator[tuple[Source, int]]:
    source = Source()
    server = HttpServer(source.begin)
    yield source, await server.listen("127.0.0.1", 0)
    await server.close()
    assert source.streams.count == 0


async def test_events_arrive_as_they_come_until_the_stream_ends(source: tuple[Source, int]) -> None:
    numbers, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"content-type: text/event-stream\r\n" in head
    assert b"cache-control: no-store" in head
    assert await reader.readuntil(b"\n\n") == b'29\r\nevent: hello\ndata: {"stream":"numbers"}\n\n'
    for number in range(2):
        numbers.events.put_nowait(event_of("number", number))
        assert f"data: {number}\n\n".encode() in await reader.readuntil(b"\n\n")
    numbers.events.put_nowait(None)
    await reader.readuntil(b"\r\n0\r\n\r\n")
    await eventually(lambda: numbers.streams.count == 0)
    writer.write(REQUEST)  # the connection serves again
    await reader.readuntil(b"hello")
    writer.transport.abort()
    await eventually(lambda: numbers.pieces_ended == 2)


async def test_a_stream_whose_client_leaves_ends_in_silence(
    source: tuple[Source, int], caplog: pytest.LogCaptureFixture
) -> None:
    numbers, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"hello")
    assert numbers.streams.count == 1
    writer.close()
    await eventually(lambda: numbers.streams.count == 0)
    assert numbers.pieces_ended == 1
    assert caplog.records == []


async def test_a_stream_whose_client_does_not_read_ends(
    source: tuple[Source, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT_S", 0.1)
    numbers, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(REQUEST)
    for _ in range(20):
        numbers.events.put_nowait(LARGE)
    await eventually(lambda: numbers.streams.count == 0)
    assert numbers.events.qsize() > 0  # nothing was taken that nobody reads
    writer.transport.abort()
    del reader


async def test_streams_beyond_the_limit_are_refused(
    source: tuple[Source, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "STREAMS_MAX", 1)
    _, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"hello")
    second_reader, second_writer = await asyncio.open_connection("127.0.0.1", port)
    second_writer.write(REQUEST)
    assert b"HTTP/1.1 429 " in await second_reader.readuntil(b"\r\n")
    for each in (writer, second_writer):
        each.transport.abort()


async def test_a_stream_makes_no_way_for_a_new_connection(
    source: tuple[Source, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 1)
    numbers, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"hello")
    second_reader, second_writer = await asyncio.open_connection("127.0.0.1", port)
    second_writer.write(REQUEST)
    assert b"HTTP/1.1 503 " in await second_reader.readuntil(b"\r\n")
    numbers.events.put_nowait(event_of("number", 7))
    await reader.readuntil(b"data: 7")
    for each in (writer, second_writer):
        each.transport.abort()


async def test_head_of_a_stream_ends_at_once(source: tuple[Source, int]) -> None:
    numbers, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert b"text/event-stream" in await reader.read()
    await eventually(lambda: numbers.streams.count == 0)
    assert numbers.pieces_ended == 0
    writer.close()


async def test_a_bug_within_a_stream_ends_it_with_a_line_in_the_log(
    source: tuple[Source, int], caplog: pytest.LogCaptureFixture
) -> None:
    numbers, port = source
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"hello")
    numbers.events.put_nowait(b"broken")
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readuntil(b"never")
    writer.transport.abort()
    (record,) = caplog.records
    assert record.getMessage() == "the control API failed within an answer"


async def test_the_end_of_the_server_ends_its_streams() -> None:
    numbers = Source()
    server = HttpServer(numbers.begin)
    port = await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"hello")
    await server.close()
    assert numbers.streams.count == 0
    assert numbers.pieces_ended == 1
    writer.transport.abort()


async def test_a_silent_stream_shows_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "HEARTBEAT_S", 0.01)
    pace = StreamPace(0.0)
    assert pace.piece(b"news") == b"news"
    while (piece := pace.piece(None)) is None:
        await pace.next_look(asyncio.Event())
    assert piece == HEARTBEAT
    news = asyncio.Event()
    news.set()
    monkeypatch.setattr(streams_module, "HEARTBEAT_S", 60.0)
    await pace.next_look(news)
    assert pace.piece(None) is None


def test_a_refused_stream_has_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "STREAMS_MAX", 0)
    with pytest.raises(HttpError, match="close a page"):
        Streams().open("numbers", Source()._pieces())
