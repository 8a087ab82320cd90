"""HTTP as bytes: what is bounded, what is refused, what stays open."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from minibroker.control import server as http_server
from minibroker.control import slices
from minibroker.control.families import families
from minibroker.control.messages import HttpError, HttpRequest, Response, Work, json_response
from minibroker.control.server import HttpServer
from minibroker.control.shapes import RequestsQuery
from minibroker.control.slices import Slices
from minibroker.control.views import groups_of, requests_of, topics_of
from minibroker.rig.request_log import SeenRequest
from tests.support.turns import Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from minibroker.rig.node import Node
    from minibroker.testing import Broker


LARGE = bytes(range(256)) * (40 << 10)
"""More than the sockets between hold."""


def echo(request: HttpRequest) -> Work:
    """Return the parsed request."""

    async def run(body: bytes) -> Response:
        if request.path == "/broken":
            raise RuntimeError("a bug")
        if request.path == "/large":
            return Response(200, LARGE)
        return json_response([request.method, request.path, request.query, body.decode()])

    return Work(64 << 10, run)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = HttpServer(echo)
    yield await server.listen("127.0.0.1", 0)
    await server.close()


async def exchange(port: int, *parts: bytes, half_close: bool = False) -> bytes:
    """Everything that comes until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
    if half_close:
        writer.write_eof()
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.transport.abort()


CLOSE = b"Host: a\r\nConnection: close\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + CLOSE


async def test_a_request_in_pieces(port: int) -> None:
    answer = await exchange(
        port,
        b"POST /a%20b?x=1&y= HT",
        b"TP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbo",
        b"dy",
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'["POST", "/a%20b", {"x": "1", "y": ""}, "body"]\n')


async def test_two_requests_in_one_write(port: int) -> None:
    answer = await exchange(port, b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n" + CLOSE)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert b'"/1"' in answer
    assert b'"/2"' in answer


async def test_head_has_no_body_and_chunks_are_joined(port: int) -> None:
    answer = await exchange(port, b"HEAD / HTTP/1.1\r\n" + CLOSE)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")
    answer = await exchange(port, CHUNKED + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
    assert b'"abc"' in answer


async def test_a_large_answer_goes_out_in_pieces(port: int) -> None:
    answer = await exchange(
        port, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n" + CLOSE
    )
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(LARGE)}".encode() in head.lower()
    assert rest.startswith(LARGE + b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"\x00\x00\x00\x10\x00\x12\x00\x03not http\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000, b" 400 "),
        (b"POST / HTTP/1.1\r\nContent-Length: 90000\r\n" + CLOSE + b"x" * 90_000, b" 413 "),
        (CHUNKED + b"11000\r\n" + b"x" * 0x11000 + b"\r\n0\r\n\r\n", b" 413 "),
        (CHUNKED + b"2\r\nabc\r\n", b" 400 "),
        (b"GET /broken HTTP/1.1\r\n" + CLOSE, b" 500 "),
    ],
)
async def test_wrong_requests_are_refused(
    port: int, message: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("CRITICAL"):
        answer = await exchange(port, message)
    assert status in answer.split(b"\r\n")[0]
    assert b'{"error": "' in answer
    assert b"200" in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE)


@pytest.mark.parametrize(("method", "has_body"), [(b"POST", True), (b"HEAD", False)])
async def test_a_wrong_body_ends_a_request_that_is_refused_already(
    caplog: pytest.LogCaptureFixture, method: bytes, has_body: bool
) -> None:
    """The answer to the head and the one to the bytes behind it come in the same turn."""

    def refuse(_: HttpRequest) -> Work:
        raise HttpError(404, "nothing here")

    server = HttpServer(refuse)
    port = await server.listen("127.0.0.1", 0)
    answer = await exchange(port, CHUNKED.replace(b"POST", method) + b"no chunk\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert bool(answer.partition(b"\r\n\r\n")[2]) is has_body
    assert answer.count(b"HTTP/1.1") == 1
    await server.close()
    assert caplog.text == ""


async def test_a_slow_client_gets_an_error(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT_S", 0.05)
    for beginning in (
        b"GET / HTTP/1.1\r\nHo",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx",
    ):
        answer = await exchange(port, beginning)
        assert b" 408 " in answer.split(b"\r\n")[0]
        assert b'{"error": "the request did not arrive' in answer


async def test_a_silent_client_is_disconnected(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE_TIMEOUT_S", 0.05)
    assert await exchange(port) == b""
    assert await exchange(port, b"GET / HTTP/1.1\r\nHost", half_close=True) != b"x"


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def ends(streams: Streams) -> bool:
    """Return whether the server has ended a connection, with what it sent taken."""
    async with asyncio.timeout(60):
        try:
            return await streams[0].read(1) == b""
        except ConnectionError:
            return True


async def connect_all(port: int) -> list[Streams]:
    """Open as many connections as the server has room for."""
    count = http_server.CONNECTIONS_MAX
    return [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]


async def test_idle_connections_do_not_keep_others_out(port: int) -> None:
    idle = [
        await asyncio.open_connection("127.0.0.1", port) for _ in range(http_server.CONNECTIONS_MAX)
    ]
    for _ in range(3):
        assert b" 200 " in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE)
    # The one that was silent longest made room, the latest one is still served.
    assert await ends(idle[0])
    idle[-1][1].write(b"GET /late HTTP/1.1\r\n" + CLOSE)
    assert b'"/late"' in await idle[-1][0].read()
    for _, writer in idle:
        writer.transport.abort()


async def test_half_requests_and_untaken_answers_make_room(port: int) -> None:
    connections = [
        await asyncio.open_connection("127.0.0.1", port) for _ in range(http_server.CONNECTIONS_MAX)
    ]
    for number, (_, writer) in enumerate(connections):
        large = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
        writer.write(large if number % 2 else b"GET / HTTP/1.1\r\nHo")
    for _ in range(http_server.CONNECTIONS_MAX + 1):
        assert b" 200 " in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE)
    for _, writer in connections:
        writer.transport.abort()


async def test_a_request_in_work_is_not_ended_for_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 1)
    arrival, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: bytes) -> Response:
        arrival.set()
        await go_on.wait()
        return json_response("slow")

    server = HttpServer(lambda _: Work(0, slow))
    port = await server.listen("127.0.0.1", 0)
    first = asyncio.create_task(exchange(port, b"GET /a HTTP/1.1\r\n" + CLOSE))
    await arrival.wait()
    assert b" 503 " in await exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    go_on.set()
    assert b'"slow"' in await first
    await server.close()


async def test_every_address_of_a_name_is_served() -> None:
    server = HttpServer(echo)
    port = await server.listen("localhost", 0)
    for _, _, _, _, address in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM):
        socket.create_connection(address[:2], 5).close()
    with pytest.raises(OSError, match="in use"):
        await HttpServer(echo).listen("localhost", port)
    await server.close()


async def test_one_connection_too_many(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 0)
    answer = await exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert b" 503 " in answer.split(b"\r\n")[0]


async def test_close_ends_what_is_open() -> None:
    server = HttpServer(echo)
    port = await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    await server.close()
    async with asyncio.timeout(60):
        await reader.read()
    writer.transport.abort()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)


# Others have their turn between two slices of a text, and a second text waits.


PARTITIONS = 31
LISTS: dict[str, tuple[Callable[[Node], Iterable[str]], int]] = {
    # A partition is counted for the cluster, and is in four families.
    "metrics": (lambda node: families(node.app), 5 * PARTITIONS),
    "topics": (lambda node: topics_of([node.app]), PARTITIONS),
    "groups": (lambda node: groups_of([node.app]), PARTITIONS),
    "requests": (lambda node: requests_of({0: node.request_log}, RequestsQuery()), PARTITIONS),
}


@pytest.fixture
def busy_broker(kafka_broker: Broker) -> Broker:
    """A topic, a group and a client that make long lists."""
    kafka_broker.create_topic("wide", PARTITIONS)
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g", "log_level": 0}
    consumer = Consumer(settings)
    commits = [TopicPartition("wide", index, 1) for index in range(PARTITIONS)]
    consumer.commit(offsets=commits, asynchronous=False)
    consumer.close()
    request = SeenRequest("Produce", 9, "mine", "127.0.0.1", 0, 0.0, None)
    for _ in range(PARTITIONS):
        kafka_broker.call(lambda: kafka_broker._node.request_log.note(request))
    return kafka_broker


@pytest.mark.parametrize("name", list(LISTS))
def test_a_list_that_is_long_gives_way_at_each_of_its_lines(
    busy_broker: Broker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    pieces_of, count = LISTS[name]

    async def join(node: Node) -> int:
        turns = Turns()
        await Slices().join(pieces_of(node))
        return turns.stop()

    assert busy_broker.await_node(join) >= count


async def test_quick_work_is_done_in_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 60.0)
    turns = Turns()
    assert await Slices().join("ä" * 1000) == "ä".encode() * 1000
    assert turns.stop() == 2  # behind the first piece, and before it is sent


async def test_a_second_text_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    names: list[str] = []

    def pieces(name: str) -> Iterator[str]:
        for number in itertools.count():
            names.append(name)
            yield f"{name}{number}"
            if number == 3:
                return

    joining = Slices()
    texts = await asyncio.gather(joining.join(pieces("a")), joining.join(pieces("b")))
    assert names == ["a"] * 4 + ["b"] * 4
    assert texts == [b"a0a1a2a3", b"b0b1b2b3"]


OTHERS = """
import sys
import minibroker.control.server
left_out = {"click", "multiprocessing", "uvicorn.main", "uvicorn.server"} & set(sys.modules)
assert left_out == set(), left_out
import uvicorn
assert not hasattr(uvicorn, "nothing")
from uvicorn import Server
assert Server is uvicorn.Server is uvicorn.server.Server is sys.modules["uvicorn.main"].Server
assert uvicorn.run is sys.modules["uvicorn.main"].run
assert callable(uvicorn.main)
"""
OTHERS_FIRST = """
import uvicorn
import minibroker.control.server
assert uvicorn.Server is uvicorn.server.Server
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_program_of_uvicorn_is_imported_when_somebody_asks_for_it() -> None:
    run(OTHERS)


def test_uvicorn_that_is_imported_already_stays_as_it_is() -> None:
    run(OTHERS_FIRST)
