"""Hostile requests to the schema registry end in an error, in bounded work.

Random ones are made of valid requests whose paths, queries and bodies are damaged. The costs are
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
from urllib.parse import quote, urlsplit

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.registry import RegistryOptions
from minibroker.kafka.records.record import Record
from minibroker.registry.entries import Reference, SchemaText, VersionEntry, encode
from minibroker.registry.service import RegistryService
from minibroker.rig.node import Node
from minibroker.testing import Broker
from minibroker.testing.broker import TEST_DEFAULTS
from tests.fuzz.exploring import FRAMES, SEED
from tests.support.counted_work import CountedWork
from tests.support.registry_calls import RegistryAnswer, ask, posted, record, register

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

REQUESTS = FRAMES // 50 or 1500
HOLD_MAX = 6000
"""Lines of Python without a pause: about a millisecond."""
SUBJECTS = 20_000
VERSIONS = 5_000
CONTEXTS = 5_000
TO_A = (Reference("a", "a", 1),)
"""A schema that refers to the first one."""

PATHS = (
    "/subjects/a/versions/1/referencedby",
    "/subjects/a/versions/latest/schema",
    "/subjects/a/metadata",
    "/schemas/ids/1/versions",
    "/schemas/ids/1/schema",
    "/config/a",
    "/mode/a",
    "/compatibility/subjects/a/versions/1",
    "/contexts/.c/subjects/a/versions",
    "/v1/metadata/id",
)
WORDS = (
    *("", ".", "..", ":", ":.c:", ":.:", ":*:", "%", "%00", "%2F", "%ff", "latest", "-1", "0"),
    *("2147483648", "9" * 400, "x" * 3000, "ü", "\u2028", "__GLOBAL", "{subject}", "null", "NaN"),
)
QUERIES = ("normalize", "deleted", "permanent", "verbose", "subject", "limit", "offset", "force")
MORE_QUERIES = ("subjectPrefix", "latestOnly", "fetchMaxId", "defaultToGlobal", "format", "key")
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**70, 1e308, "", "x", [], {}, [[]], {"a": {}}, "\ud800", "\0"),
    *([{"name": "a", "subject": "a", "version": 1}], [{"name": "a"}], "AVRO", "PROTOBUF", "JSON"),
    *('"int"', '{"type":"record","name":"R","fields":[]}', "[" * 5000, '{"a":' * 5000, "FULL"),
)
FIELDS = ("schema", "schemaType", "references", "id", "version", "metadata", "ruleSet", "mode")
MORE_FIELDS = ("compatibility", "alias", "normalize", "defaultMetadata", "unknown")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker(registry=True) as broker:
        register(broker.registry_url, "a", '"int"')
        yield broker.registry_url


def hostile_path(chance: random.Random) -> str:
    words = chance.choice(PATHS).split("/")
    for _ in range(chance.randint(0, 2)):
        place = chance.randrange(1, len(words))
        words[place] = quote(chance.choice(WORDS), safe="%")
    path = "/".join(words[: chance.randint(2, len(words))])
    names = chance.sample((*QUERIES, *MORE_QUERIES), chance.randint(0, 3))
    query = "&".join(f"{name}={quote(chance.choice((*WORDS, 'true')))}" for name in names)
    return f"{path}?{query}" if query else path


def hostile_body(chance: random.Random) -> bytes:
    fields = {name: chance.choice(VALUES) for name in chance.sample((*FIELDS, *MORE_FIELDS), 4)}
    data = bytearray(json.dumps(fields).encode())
    for _ in range(chance.choice((0, 0, 1, 3))):
        place = chance.randrange(len(data))
        data[place : place + chance.randint(0, 9)] = chance.randbytes(chance.randint(0, 9))
    return bytes(data)


def check(answer: RegistryAnswer, request: object) -> None:
    """Check that a request was answered, or refused with a sentence."""
    assert answer.status < 500, (request, answer)
    if answer.status >= 400:
        assert isinstance(answer.body, dict), (request, answer)
        assert answer.code // 100 == answer.status or answer.code == answer.status, answer
        assert answer.body["message"], (request, answer)


def test_damaged_requests_are_no_bugs(url: str) -> None:
    chance = random.Random(SEED if FRAMES else 1)
    for _ in range(REQUESTS):
        method = chance.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"))
        path, body = hostile_path(chance), hostile_body(chance)
        answer = ask(url, method, path, body if method in ("POST", "PUT") else None)
        if method != "HEAD":
            check(answer, (method, path, body))
    assert ask(url, "GET", "/subjects").status == 200


HOSTILE_BODIES = {
    "a deep list": b"[" * 1_000_000,
    "a deep schema": json.dumps({"schema": "[" * 500_000}).encode(),
    "deep metadata": b'{"schema":"\\"int\\"","metadata":' + b'{"a":' * 100_000 + b"1",
    "many fields": b'{"schema":"\\"int\\"","metadata":{%s}}'
    % b",".join(b'"%d":[]' % n for n in range(100_000)),
    "a large text": json.dumps({"schema": '"' + "x" * 1_900_000}).encode(),
    "a body that is too large": b" " * 2_200_000,
    "quotation marks": json.dumps({"schema": '"' * 900_000}).encode(),
    "half a pair": b'{"schema": "\\ud800"}',
    "no UTF-8": b'{"schema": "\xff\xfe"}',
    "many references": json.dumps(
        posted('"int"', references=tuple((f"n{n}", "a", 1) for n in range(20_000)))
    ).encode(),
    "a large number": b'{"schema":"\\"int\\"","id":' + b"9" * 100_000 + b"}",
    "many branches": json.dumps(
        posted([{"type": "fixed", "name": f"F{n}", "size": 1} for n in range(20_000)])  # type: ignore[arg-type]
    ).encode(),
}


@pytest.mark.parametrize("body", HOSTILE_BODIES.values(), ids=HOSTILE_BODIES)
def test_hostile_body_is_refused(url: str, body: bytes) -> None:
    for path in ("/subjects/b/versions", "/subjects/a", "/compatibility/subjects/a/versions"):
        answer = ask(url, "POST", path, body)
        assert 400 <= answer.status < 500, answer
        check(answer, path)


def test_no_depth_of_a_body_is_a_bug(url: str) -> None:
    """The decoder of a body may take a depth that the next step cannot take."""
    connection = HTTPConnection(urlsplit(url).netloc)
    for depth in range(900, 1000):
        deep_object = b'{"a":' * depth + b"1" + b"}" * depth
        for method, path, body in (
            ("PUT", "/config/deep", b'{"compatibility":"FULL","defaultMetadata":%s}'),
            ("POST", "/subjects/deep/versions", b'{"schema":"\\"int\\"","metadata":%s}'),
        ):
            connection.request(method, path, body % deep_object)
            answer = connection.getresponse()  # which is as deep: it is not decoded
            answer.read()
            assert answer.status < 500, (depth, method)
    connection.close()


def test_references_in_a_circle_of_names_end(url: str) -> None:
    for number in range(12):
        # Each refers to the one before it twice: without a memory the walk would double each time.
        last_name = f"chain{number - 1}"
        references = ((f"x{number}", last_name, 1), (f"y{number}", last_name, 1)) if number else ()
        register(url, f"chain{number}", record("a", name=f"C{number}"), references=references)
    assert ask(url, "GET", "/subjects/chain11/versions/1").status == 200


# Costs.


@asynccontextmanager
async def large_registry(directory: Path) -> AsyncIterator[str]:
    """Serve a registry with many subjects on the loop of the test."""
    settings = {**TEST_DEFAULTS, "log.dirs": str(directory)}
    node = Node(BrokerConfig(settings))
    await node.start()
    registry = RegistryService(lambda: node.running_app, RegistryOptions(), has_peers=False)
    await registry.start()
    first = await asyncio.to_thread(register, registry.url, "a", '"int"')
    partition = node.app.partitions.get("_schemas", 0)
    entries = [
        VersionEntry(f"s{number:06}", 1, number % 50 + 2, SchemaText("AVRO", f'"n{number % 50}"'))
        for number in range(SUBJECTS)
    ]
    entries += [
        VersionEntry("many", number, number + 100, SchemaText("AVRO", f'"m{number}"', TO_A))
        for number in range(1, VERSIONS)
    ]
    entries += [
        VersionEntry(f":.c{number}:a", 1, 1, SchemaText("AVRO", '"int"'))
        for number in range(CONTEXTS)
    ]
    for start in range(0, len(entries), 1000):
        batch = [Record(0, 1, *encode(entry)) for entry in entries[start : start + 1000]]
        await node.inspector.append(partition, batch)
    assert first == 1
    try:
        yield registry.url
    finally:
        await registry.stop()
        await node.stop()


CALLS = (
    ("GET", "/subjects", None),
    ("GET", "/subjects?deletedOnly=true", None),
    ("GET", "/subjects?subjectPrefix=s0199&offset=10", None),
    ("GET", "/schemas?latestOnly=true", None),
    ("GET", "/schemas?subjectPrefix=many", None),
    ("GET", "/subjects/many/versions", None),
    ("GET", "/subjects/many/versions/latest", None),
    ("GET", "/subjects/many/metadata?key=owner&value=nobody", None),
    ("GET", "/subjects/a/versions/1/referencedby", None),
    ("GET", "/schemas/ids/2/subjects", None),
    ("GET", "/schemas/ids/2/versions?subject=s000050", None),
    ("GET", "/schemas/ids/1?subject=nowhere", None),
    ("GET", "/contexts", None),
    ("POST", "/subjects/many", posted('"m7"')),
    ("POST", "/subjects/many/versions", posted('"double"')),
    ("POST", "/compatibility/subjects/many/versions", posted('"double"')),
    ("DELETE", "/subjects/many", None),
    ("DELETE", "/subjects/many?permanent=true", None),
)


async def test_no_call_of_a_large_registry_holds_the_loop(tmp_path: Path) -> None:
    async with large_registry(tmp_path) as url:
        await asyncio.to_thread(ask, url, "PUT", "/config", {"compatibility": "FULL_TRANSITIVE"})
        holds = {}
        for method, path, body in CALLS:
            with CountedWork() as work:
                answer = await asyncio.to_thread(ask, url, method, path, body)
            assert answer.status < 500, answer
            holds[f"{method} {path}"] = work.longest_hold
        assert max(holds.values()) < HOLD_MAX, holds
