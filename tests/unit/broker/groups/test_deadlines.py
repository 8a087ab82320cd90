"""Deadlines: moved cheaply, called once, at the last time they were given."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.steps import Deadlines
from minibroker.broker.timers import Timers
from tests.support.in_process import ManualClock


class Rig:
    """Deadlines on a clock moved by hand, and what they called."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.deadlines = Deadlines(self.clock, self.timers)
        self.called: list[str] = []

    def set(self, key: str, delay_ms: int, name: str | None = None) -> None:
        self.deadlines.set(key, delay_ms, lambda: self.called.append(name or key))


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_a_call_is_made_when_it_is_due(rig: Rig) -> None:
    rig.set("a", 100)
    rig.clock.advance(99)
    assert rig.called == []
    rig.clock.advance(1)
    assert rig.called == ["a"]
    assert len(rig.deadlines) == len(rig.timers) == 0


async def test_a_later_time_costs_no_timer(rig: Rig) -> None:
    """A thousand heartbeats: one timer in the heap, and the call comes after the last of them."""
    for _ in range(1000):
        rig.set("session", 10_000)
        rig.clock.advance(1)
    assert len(rig.timers._heap) == 1
    rig.clock.advance(9998)
    assert rig.called == []
    rig.clock.advance(1)
    assert rig.called == ["session"]


async def test_an_earlier_time_and_another_call_hold(rig: Rig) -> None:
    rig.set("a", 1000, "late")
    rig.set("a", 10, "early")
    rig.clock.advance(10)
    assert rig.called == ["early"]
    rig.set("b", 10, "first")
    rig.set("b", 20, "second")
    rig.clock.advance(10)
    assert rig.called == ["early"]
    rig.clock.advance(10)
    assert rig.called == ["early", "second"]


async def test_cancelled_calls_are_not_made(rig: Rig) -> None:
    rig.set("a", 10)
    rig.set("b", 10)
    rig.deadlines.cancel("a")
    rig.deadlines.cancel("nobody")
    rig.clock.advance(10)
    assert rig.called == ["b"]
    rig.set("c", 10)
    rig.deadlines.clear()
    rig.clock.advance(10)
    assert rig.called == ["b"]
    assert len(rig.timers) == 0


async def test_a_call_may_set_its_own_key_again(rig: Rig) -> None:
    def again() -> None:
        rig.called.append("once more")
        rig.set("a", 5)

    rig.deadlines.set("a", 5, again)
    rig.clock.advance(5)
    rig.clock.advance(5)
    assert rig.called == ["once more", "a"]
