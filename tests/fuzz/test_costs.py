"""The cost net: work grows no faster than the request, and no step holds the loop for long.

Every API that the broker serves is in it, from the spec files (`costly.py`), over a real
connection. Lines of Python are counted, not time, so the machine's speed decides nothing. All
slices end at once here (`SLICE_S` is 0): the longest hold is the longest step that nothing can cut.

    MINIBROKER_COSTS=all        all versions, not only the newest
    MINIBROKER_COSTS_REPORT=F   write the table of APIs, slowest shapes, growth and holds to F
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tracemalloc
from functools import cache, partial
from pathlib import Path
from struct import pack, unpack
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker import slices
from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER
from minibroker.broker.handlers import fetch
from minibroker.broker.handlers.appends import short_way
from minibroker.broker.handlers.registry import supported_versions
from minibroker.broker.security.acl_entries import Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import WILDCARD, WILDCARD_PRINCIPAL, Operation, ResourceType
from minibroker.broker.server import decoder, dispatch
from minibroker.kafka.protocol.api_keys import APIS
from minibroker.kafka.protocol.header import write_request_header
from minibroker.kafka.protocol.primitives import Reader, Writer
from tests.fuzz.costly import (
    HOLD_FREE,
    HOLD_GROWTH_MAX,
    LARGE,
    SMALL,
    TOPIC,
    Shape,
    shapes_of,
    value_of,
)
from tests.support.counted_work import CountedWork
from tests.support.in_process import InProcessBroker
from tests.support.reference_codec import MessageSpec, encode, load_specs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EVERYTHING, READING, NOTHING = "everything", "reading", "nothing"
"""The rights of the client."""
SMALL_TEXT, LARGE_TEXT = 2_000, 8_000
GROWTH_MAX = 4.8
"""Growth of the lines from a size to its fourfold; 4 is what a loop over a list costs."""
FREE_LINES = 300
"""Lines that a request may cost more at the larger size without being asked about growth."""
HOLD_GROWTH_OF_TEXT = 3
"""The same for one more character; the hash code of a text, which has 32 KB at most."""
FREE_BYTES = 2_000_000
"""Memory that any request may take for a moment."""
BYTES_MAX = 150
"""Memory that one byte of a request may take for a moment: an item in a list is an object."""
ANSWER_S = 60.0


class Cost(NamedTuple):
    """The cost of one request."""

    lines: int
    hold: int
    """Lines of the longest step."""
    comparisons: int
    """How often two texts were compared."""


class ShapeCost(NamedTuple):
    """The cost of a shape at both sizes."""

    api_key: int
    version: int
    shape: Shape
    small: Cost
    large: Cost

    @property
    def is_too_much(self) -> bool:
        """Return whether work or a hold of the loop grows too fast."""
        is_text = self.shape.kind == "longest"
        more = LARGE_TEXT - SMALL_TEXT if is_text else LARGE - SMALL
        hold_growth = HOLD_GROWTH_OF_TEXT if is_text else HOLD_GROWTH_MAX
        small, large = self.small, self.large
        return (
            large.lines > GROWTH_MAX * small.lines + FREE_LINES
            or large.comparisons > GROWTH_MAX * small.comparisons + FREE_LINES
            or large.hold > max(HOLD_FREE, small.hold + hold_growth * more)
        )

    def __str__(self) -> str:
        return (
            f"{APIS[self.api_key].name} v{self.version} {self.shape}: "
            f"lines {self.small.lines} → {self.large.lines}, "
            f"longest hold {self.small.hold} → {self.large.hold}, "
            f"comparisons {self.small.comparisons} → {self.large.comparisons}"
        )


@cache
def specs() -> dict[int, MessageSpec]:
    """Return API key → its request."""
    return {
        spec.key: spec
        for spec in load_specs()
        if spec.key is not None and spec.class_name.endswith("Request")
    }


def cases() -> list[tuple[int, int]]:
    """Return API key and version of everything that is to be tried."""
    everything = os.environ.get("MINIBROKER_COSTS") == "all"
    return [
        (key, version)
        for key, (low, high) in sorted(supported_versions().items())
        for version in (range(low, high + 1) if everything else (high,))
    ]


EACH_API = pytest.mark.parametrize(
    ("key", "version"),
    [pytest.param(key, version, id=f"{APIS[key].name}-{version}") for key, version in cases()],
)


@pytest.fixture
async def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], rights: str
) -> AsyncIterator[InProcessBroker]:
    """A broker all of whose slices end at once, and all of whose requests are large."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(dispatch, "LARGE_FRAME_BYTES", 0)
    monkeypatch.setattr(decoder, "BATCHES_MAX", SMALL // 4)
    monkeypatch.setattr(short_way, "BATCHES_MAX", SMALL // 4)
    monkeypatch.setattr(fetch, "AT_ONCE_MAX", SMALL // 4)
    monkeypatch.setattr(Reader, "_text", counted_text)
    async with InProcessBroker(tmp_path, settings) as broker:
        await broker.create_topic(TOPIC)
        if rights == READING:
            allow_reading(broker)
        yield broker


@pytest.fixture
def settings(rights: str) -> dict[str, str]:
    """Return the settings of the broker: one that may be asked for topics does not make them."""
    if rights == EVERYTHING:
        return {"auto.create.topics.enable": "false"}
    return {"authorizer.class.name": STANDARD_AUTHORIZER}


def allow_reading(broker: InProcessBroker) -> None:
    """Let everyone read every topic and group, and do nothing else."""
    authorizer = broker.broker.services.authorizer
    assert authorizer is not None
    reading = Entry(WILDCARD_PRINCIPAL, WILDCARD, Operation.READ, Permission.ALLOW)
    for kind in (ResourceType.TOPIC, ResourceType.GROUP):
        authorizer.put(Pattern(kind, WILDCARD, PatternType.LITERAL), frozenset({reading}))


class CountedText(str):
    """A text that counts how often it is compared, which a search in a list does."""

    __slots__ = ()
    __hash__ = str.__hash__
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return str.__eq__(self, other)


_read_text = Reader._text


def counted_text(reader: Reader, size_bytes: int) -> str:
    return CountedText(_read_text(reader, size_bytes))


def id_of_topic(running: InProcessBroker) -> bytes:
    return running.broker.cluster.image.topics[TOPIC].topic_id


def frame_of(spec: MessageSpec, version: int, shape: Shape, topic_id: bytes, size: int) -> bytes:
    """Return the whole frame of a request."""
    assert spec.key is not None
    value = value_of(spec, version, shape, size, topic_id)
    writer = Writer()
    write_request_header(writer, spec.key, version, 1, "c")
    body = writer.to_bytes() + encode(spec, value, version)
    return pack(">i", len(body)) + body


async def cost_of(running: InProcessBroker, work: CountedWork, frame: bytes) -> Cost:
    """Send a request on a new connection; return what it cost up to the answer or the end."""
    reader, writer = await asyncio.open_connection(*running.address)
    work.reset()
    CountedText.comparisons = 0
    writer.write(frame)
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        async with asyncio.timeout(ANSWER_S):
            (size,) = unpack(">i", await reader.readexactly(4))
            await reader.readexactly(size)
    lines = work.lines + work.lines_beside
    cost = Cost(lines, work.longest_hold, CountedText.comparisons)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return cost


async def costs_of(running: InProcessBroker, key: int, version: int) -> list[ShapeCost]:
    """Return the costs of every shape of a request."""
    spec = specs()[key]
    costs = []
    topic_id = id_of_topic(running)
    with CountedWork() as work:
        for shape in shapes_of(spec, version):
            frame = partial(frame_of, spec, version, shape, topic_id)
            sizes = (SMALL_TEXT, LARGE_TEXT) if shape.kind == "longest" else (SMALL, LARGE)
            await cost_of(running, work, frame(1))  # imports, caches
            small, large = [await cost_of(running, work, frame(size)) for size in sizes]
            costs.append(ShapeCost(key, version, shape, small, large))
    return costs


@pytest.mark.parametrize("rights", [EVERYTHING, READING, NOTHING])
@EACH_API
async def test_work_grows_as_the_request_and_gives_the_loop_back(
    running: InProcessBroker, key: int, version: int, rights: str
) -> None:
    costs = await costs_of(running, key, version)
    report(costs, rights)
    assert not [str(each) for each in costs if each.is_too_much]


@pytest.mark.parametrize("rights", [READING])
@EACH_API
async def test_memory_grows_as_the_request(
    running: InProcessBroker, key: int, version: int, rights: str
) -> None:
    spec = specs()[key]
    too_much = []
    topic_id = id_of_topic(running)
    work = CountedWork()
    for shape in shapes_of(spec, version):
        size = LARGE_TEXT if shape.kind == "longest" else LARGE
        frame = frame_of(spec, version, shape, topic_id, size)
        tracemalloc.start()
        try:
            await cost_of(running, work, frame)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        if peak_bytes > FREE_BYTES + BYTES_MAX * len(frame):
            too_much.append(f"{shape}: {len(frame)} bytes took {peak_bytes}")
    assert not too_much


def report(costs: list[ShapeCost], rights: str) -> None:
    path = os.environ.get("MINIBROKER_COSTS_REPORT")
    if path and costs:
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{rights} {each}\n" for each in costs)
