"""Standing watches over a fake read: armed before the callbacks run and after reconnections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from minibroker.broker.cluster.tree import NoNode
from minibroker.broker.cluster.zookeeper_watches import WatchSet
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TIMEOUT_S = 60


class Event(NamedTuple):
    """The argument of kazoo's watchers."""

    type: str


class Reads:
    """The door to a server that is not there: remembers what was armed."""

    def __init__(self) -> None:
        self.armed: list[tuple[str, bool]] = []
        self.on_event: dict[tuple[str, bool], Callable[[Any], None]] = {}
        self.is_away = False
        self.late_answers = 0
        """Calls that get no answer in time."""
        self.refusals: dict[str, Exception] = {}
        self.watches = WatchSet(
            read=self.read,
            send=self.send,
            call_many=self.call_many,
            hop=lambda call, *arguments: call(*arguments),
        )

    def read(self, path: str, of_children: bool, on_event: Callable[[Any], None]) -> None:
        """Arm."""
        self.armed.append((path, of_children))
        self.on_event[path, of_children] = on_event

    def send(self, start: Callable[[], Any]) -> asyncio.Future[Any]:
        """Send without waiting."""
        if self.is_away:
            raise CoordinationError("away")
        start()
        return asyncio.get_running_loop().create_future()

    async def call_many(self, calls: Sequence[tuple[str, Callable[[], Any]]]) -> list[Any]:
        """Send and wait."""
        await asyncio.sleep(0)
        self.late_answers -= 1
        if self.is_away or self.late_answers >= 0:
            raise CoordinationError("away")
        for path, start in calls:
            if path not in self.refusals:
                start()
        return [self.refusals.get(path) for path, _ in calls]


async def test_watch_is_armed_again_before_its_callbacks() -> None:
    reads = Reads()
    armed_at_call = []
    await reads.watches.add(("/a", False), lambda: armed_at_call.append(len(reads.armed)))
    reads.on_event["/a", False](Event("CHANGED"))
    reads.on_event["/a", False](Event("DELETED"))
    assert armed_at_call == [2, 3]
    assert set(reads.armed) == {("/a", False)}


async def test_dropped_connection_calls_nobody_and_its_return_everybody() -> None:
    reads = Reads()
    calls: list[str] = []
    both = asyncio.Event()
    await reads.watches.add(("/a", False), lambda: calls.append("node"))
    await reads.watches.add(("/a", True), lambda: (calls.append("children"), both.set()))
    reads.on_event["/a", False](Event("NONE"))
    reads.is_away = True
    reads.on_event["/a", True](Event("CHILD"))
    assert calls == []
    reads.is_away = False
    reads.watches.fire_all()
    async with asyncio.timeout(TIMEOUT_S):
        await both.wait()
    assert calls == ["node", "children"]


async def test_watches_whose_answer_is_late_are_armed_again() -> None:
    """The connection stays, so nothing else has them armed."""
    reads = Reads()
    called = asyncio.Event()
    await reads.watches.add(("/a", True), called.set)
    reads.armed.clear()
    reads.late_answers = 1
    reads.watches.fire_all()
    async with asyncio.timeout(TIMEOUT_S):
        await called.wait()
    assert reads.armed == [("/a", True)]


async def test_cancelled_and_refused_watches_are_forgotten() -> None:
    reads = Reads()
    calls: list[str] = []
    cancel = await reads.watches.add(("/a", False), lambda: calls.append("a"))
    cancel()
    cancel()
    reads.refusals["/b"] = NoNode("/b")
    with pytest.raises(NoNode):
        await reads.watches.add(("/b", True), lambda: calls.append("b"))
    with pytest.raises(NoNode):
        await reads.watches.add_many(
            {("/d", False): lambda: calls.append("d"), ("/b", False): lambda: calls.append("b")}
        )
    reads.on_event["/d", False](Event("CHANGED"))
    await reads.watches.add(("/c", True), lambda: calls.append("c"))
    reads.watches.clear()
    reads.watches.fire_all()
    reads.on_event["/a", False](Event("CHANGED"))
    assert calls == []
