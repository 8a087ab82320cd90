"""Hostile requests to the control API end in an error, and large brokers hold no loop.

Random requests are made of every operation, with damaged paths, queries and bodies. The costs are
lines of Python between two moments at which the loop has control, so they do not depend on the
machine's speed.
"""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.control import samples
from minibroker.control.api import OPERATIONS, ControlApi
from minibroker.control.messages import EVENT_STREAM
from minibroker.control.server import HttpServer
from minibroker.kafka.protocol.api_keys import INIT_PRODUCER_ID
from minibroker.rig.node import Node
from minibroker.rig.request_log import REQUESTS_MAX, SeenRequest
from minibroker.testing import Broker
from minibroker.testing.broker import TEST_DEFAULTS
from tests.fuzz.exploring import FRAMES, SEED
from tests.support.counted_work import CountedWork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from minibroker.control.operations import ControlOperation

REQUESTS = FRAMES // 50 or 1500
HOLD_MAX = 6000
"""Lines of Python without a pause: about a millisecond."""
PARTITIONS = 2000
TRANSACTIONS = 500
UNSAFE = ("reset",)
"""Operations that end the test itself: a reset deletes all topics."""
NAMES = {"topic": ("orders", "other"), "group": ("g", "h"), "id": ("1",), "file": ("index.html",)}
WORDS = (
    *("", ".", "..", "%", "%00", "%2F", "%ff", "-1", "0", "9" * 400, "x" * 3000, "ü", "\u2028"),
    *("2147483648", "NaN", "null", "true", "[]", "{}", "1e999", "__consumer_offsets", "-1h"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**70, 1e308, "", "x", "orders", [], {}, [[]], {"a": {}}),
    *("\ud800", "\0", "x" * 5000, ["a"] * 1000, {"retention.ms": "1"}, {"x": None}, "earliest"),
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with Broker(topics=["orders"]) as broker:
        server = HttpServer(ControlApi(broker._node).begin)
        yield broker.await_node(lambda _: server.listen("127.0.0.1", 0))
        broker.await_node(lambda _: server.close())


def ask(
    port: int, method: str, path: str, body: bytes | None, *, is_stream: bool = False
) -> tuple[int, bytes]:
    """Return status and body; of a stream its first line."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.readline() if is_stream else response.read()
    finally:
        connection.close()


def hostile_path(chance: random.Random, operation: ControlOperation) -> str:
    path = operation.path
    if part := operation.part_name:
        word = chance.choice((*NAMES[part], chance.choice(WORDS)))
        path = path.replace(f"{{{part}}}", quote(word, safe="%"))
    query_fields = operation.query.__struct_fields__
    names = chance.sample((*query_fields, "unknown"), chance.randint(0, min(3, len(query_fields))))
    if "wait_ms" in names:
        names.remove("wait_ms")
    fields = {name: chance.choice((*WORDS, "1", "orders")) for name in names}
    if "timeout_ms" in query_fields:
        fields["timeout_ms"] = "1"
    query = "&".join(f"{name}={quote(word)}" for name, word in fields.items())
    return f"{path}?{query}" if query else path


def hostile_body(chance: random.Random, operation: ControlOperation) -> bytes | None:
    shape = operation.body
    if shape is None or not hasattr(shape, "__struct_fields__"):
        return None if shape is None else chance.randbytes(50)
    names = (
        chance.sample((*shape.__struct_fields__, "unknown"), chance.randint(0, 3) or 1)
        if (len(shape.__struct_fields__) > 1)
        else list(shape.__struct_fields__)
    )
    data = bytearray(json.dumps({name: chance.choice(VALUES) for name in names}).encode())
    for _ in range(chance.choice((0, 0, 0, 2))):
        place = chance.randrange(len(data) + 1)
        data[place : place + chance.randint(0, 9)] = chance.randbytes(chance.randint(0, 9))
    return bytes(data)


def test_damaged_requests_of_every_operation_are_no_bugs(port: int) -> None:
    chance = random.Random(SEED if FRAMES else 1)
    operations = [operation for operation in OPERATIONS if operation.name not in UNSAFE]
    for number in range(REQUESTS):
        operation = operations[number % len(operations)]
        path = hostile_path(chance, operation)
        body = hostile_body(chance, operation)
        is_stream = operation.media_type == EVENT_STREAM
        status, text = ask(port, operation.method, path, body, is_stream=is_stream)
        request = (operation.method, path, body)
        assert status < 500 or status in (503, 504), (request, text)
        if status >= 400:
            assert json.loads(text)["error"], (request, text)
        if operation.name == "add_fault" and status < 300:
            ask(port, "DELETE", "/faults", None)  # such as a broker that is killed
        if operation.name == "advance_clock":
            assert status < 500
    assert ask(port, "GET", "/topics", None)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/topics", b"[" * 60_000),
        ("POST", "/topics", json.dumps({"name": "x" * 60_000}).encode()),
        ("POST", "/topics", b'{"name": "x", "partitions": 9999999999999999999999}'),
        (
            "POST",
            "/topics",
            json.dumps({"name": "x", "configs": dict.fromkeys(map(str, range(4000)), "")}).encode(),
        ),
        ("POST", "/topics/orders/configs", json.dumps({"reset": ["a"] * 10_000}).encode()),
        ("POST", "/quotas", json.dumps({"set": {str(n): 1 for n in range(5000)}}).encode()),
        ("POST", "/transactions/abort", b'{"producer_id": -1, "topic": "orders"}'),
        ("POST", "/groups/g/offsets", b'{"to": "shift", "shift": 99999999999999999999}'),
        ("POST", "/faults", b'{"api": "\\ud800"}'),
        ("GET", "/topics/orders/records?key_base64=%3D%3D%3D", None),
        ("GET", "/topics/orders/part?partition=0&offset=9223372036854775807", None),
        ("GET", "/live/records?topic=orders&rate=100000", None),
        ("GET", "/registry/" + "a" * 9000, None),
        ("GET", "/console/..%2f..%2fapi.py", None),
    ],
)
def test_a_request_that_asks_for_much_is_refused(
    port: int, method: str, path: str, body: bytes | None
) -> None:
    status, text = ask(port, method, path, body)
    assert 400 <= status < 500, text
    assert len(json.loads(text)["error"]) < 2000


# Costs.


@asynccontextmanager
async def large_broker(directory: Path) -> AsyncIterator[tuple[ControlApi, int]]:
    """Serve the API of a broker with many partitions, offsets, transactions and requests, on the
    loop of the test.
    """
    settings = {**TEST_DEFAULTS, "log.dirs": str(directory)}
    node = Node(BrokerConfig(settings), [TopicToCreate("wide", PARTITIONS, {}, 1)])
    await node.start()
    api = ControlApi(node)
    server = HttpServer(api.begin)
    port = await server.listen("127.0.0.1", 0)
    client = api.scope.client()
    for number in range(TRANSACTIONS):
        await client.ask(
            INIT_PRODUCER_ID,
            transactional_id=f"tx{number}",
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )
    for number in range(REQUESTS_MAX):
        node.request_log.note(
            SeenRequest("Produce", 9, "mine", "127.0.0.1:1", number, 1.0, None, number=number)
        )
    try:
        yield api, port
    finally:
        await server.close()
        await node.stop()


RESET = json.dumps({"to": "earliest", "topic": "wide"}).encode()
CALLS: tuple[tuple[str, str, bytes | None], ...] = (
    ("POST", "/groups/g/offsets", RESET),
    ("POST", "/groups/g/offsets", b'{"to": "time", "time": "-1h"}'),
    ("GET", "/groups", None),
    ("GET", "/groups/g", None),
    ("DELETE", "/groups/g/offsets?topic=wide&partition=7", None),
    ("GET", "/topics", None),
    ("GET", "/topics/wide/records?tail=1", None),
    ("POST", "/topics/wide/records", b'{"records": [{"value": "v"}]}'),
    ("GET", "/topics/wide", None),
    ("GET", "/topics/wide/configs", None),
    ("GET", "/configs", None),
    ("GET", "/transactions?limit=1000", None),
    ("GET", "/connections", None),
    ("GET", "/requests?limit=10000", None),
    ("GET", "/requests?api=Fetch", None),
    ("GET", "/clock/timers?limit=200", None),
    ("GET", "/quotas", None),
    ("GET", "/faults/fields", None),
    ("GET", "/metrics", None),
    ("GET", "/live/requests?last=500", None),
    ("GET", "/live/samples", None),
    ("GET", "/live/records?topic=wide&partition=3", None),
    ("DELETE", "/groups/g", None),
)


HOLDS = {"/configs": 60_000, "/topics/wide/configs": 10_000}
"""Path → lines of DescribeConfigs for one resource: a request of a client has them, too."""


async def test_no_call_of_a_large_broker_holds_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minibroker.broker.slices.SLICE_S", 0.0)
    monkeypatch.setattr("minibroker.control.slices.SLICE_S", 0.0)
    monkeypatch.setattr("minibroker.control.request_feed.SLICE_S", 0.0)
    monkeypatch.setattr(samples, "INTERVAL_S", 0.01)
    async with large_broker(tmp_path) as (_, port):
        holds = {}
        for method, path, body in CALLS:
            is_stream = path.startswith("/live/")
            with CountedWork() as work:
                status, text = await asyncio.to_thread(
                    ask, port, method, path, body, is_stream=is_stream
                )
            assert status == 200, text
            holds[method, path, body] = work.longest_hold
        slow = {call: hold for call, hold in holds.items() if hold > HOLDS.get(call[1], HOLD_MAX)}
        assert slow == {}


async def test_a_sample_of_a_large_broker_holds_no_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minibroker.broker.slices.SLICE_S", 0.0)
    monkeypatch.setattr(samples, "INTERVAL_S", 0.01)
    async with large_broker(tmp_path) as (api, port):
        await asyncio.to_thread(ask, port, "POST", "/groups/g/offsets", RESET)
        pieces = api.scope.samples.pieces()
        await anext(pieces)
        with CountedWork() as work:
            event = await anext(pieces)
        await pieces.aclose()
        lag = msgspec.json.decode(event.partition(b"data: ")[2])["lag"]
        assert (lag, work.longest_hold < HOLD_MAX) == ({"g": 0}, True), work.longest_hold
