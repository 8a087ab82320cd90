"""Calls at a time of the broker's clock, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

from minibroker.broker.timers import CANCELLED_MAX, Timers
from minibroker.clock import SystemClock
from tests.support.in_process import ManualClock


async def test_calls_are_made_when_the_clock_is_moved_there_in_the_order_of_their_times() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    calls: list[str] = []
    timers.after(2000, lambda: calls.append("second"))
    timers.after(1000, lambda: calls.append("first"))
    timers.after(2000, lambda: calls.append("third"))
    clock.advance(999)
    assert calls == []
    clock.advance(1)
    assert calls == ["first"]
    clock.advance(5000)
    assert calls == ["first", "second", "third"]
    assert len(timers) == 0


async def test_a_call_is_due_at_its_millisecond_wherever_the_clock_stands() -> None:
    """Times are fractions of seconds: adding them up must not make a call a hair too late."""
    clock = ManualClock()
    timers = Timers(clock)
    for delay_ms in range(1, 60):
        calls: list[int] = []
        timers.after(delay_ms, lambda calls=calls: calls.append(1))  # type: ignore[misc]
        clock.advance(delay_ms)
        assert calls == [1], f"after {delay_ms} ms"


async def test_a_cancelled_call_is_not_made_and_does_not_count() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    calls: list[int] = []
    timer = timers.after(1000, lambda: calls.append(1))
    timers.after(1000, lambda: calls.append(2)).cancel()
    assert len(timers) == 1
    clock.advance(1000)
    timer.cancel()
    assert calls == [1]
    assert len(timers) == 0


async def test_cancelled_calls_do_not_pile_up() -> None:
    timers = Timers(ManualClock())
    far = timers.after(10**9, lambda: None)
    for _ in range(10 * CANCELLED_MAX):
        timers.after(10**9, lambda: None).cancel()
    assert len(timers._heap) <= CANCELLED_MAX + 1
    far.cancel()
    timers.close()


async def test_a_call_that_cancels_many_others_leaves_the_rest_as_it_was() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    calls: list[str] = []
    others = [timers.after(5000, lambda: calls.append("cancelled")) for _ in range(200)]
    timers.after(1000, lambda: [other.cancel() for other in others])
    timers.after(1000, lambda: calls.append("rest"))
    clock.advance(10_000)
    assert calls == ["rest"]


async def test_a_call_made_in_a_call_is_made_too_when_it_is_due() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    calls: list[int] = []
    timers.after(1000, lambda: timers.after(0, lambda: calls.append(1)))
    clock.advance(1000)
    assert calls == [1]


async def test_a_call_that_raises_is_reported_and_the_others_are_made() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    calls: list[int] = []

    def fails() -> None:
        raise ValueError("no")

    timers.after(1000, fails)
    timers.after(1000, lambda: calls.append(1))
    clock.advance(1000)
    assert calls == [1]
    assert isinstance(reports[0]["exception"], ValueError)


async def test_on_the_machines_clock_the_loop_calls() -> None:
    timers = Timers(SystemClock())
    called = asyncio.Event()
    timers.after(1, called.set)
    await asyncio.wait_for(called.wait(), 60)


async def test_nothing_is_armed_when_nothing_is_to_come() -> None:
    timers = Timers(SystemClock())
    assert timers._handle is None
    timers.after(60_000, lambda: None).cancel()
    assert timers._handle is None


async def test_closed_it_makes_no_call() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    calls: list[int] = []
    timer = timers.after(1000, lambda: calls.append(1))
    timers.close()
    timer.cancel()
    timers.after(1000, lambda: calls.append(2)).cancel()
    timers.after(1000, lambda: calls.append(3))
    clock.advance(2000)
    assert calls == []
    assert (len(timers), timers._handle) == (0, None)


async def test_a_clock_that_goes_back_leaves_each_call_the_time_it_had() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    calls: list[str] = []
    clock.advance(600_000)
    timers.after(2000, lambda: calls.append("second"))
    timers.after(1000, lambda: calls.append("first"))
    clock.advance(-600_000)
    assert calls == []
    clock.advance(999)
    assert calls == []
    clock.advance(1)
    assert calls == ["first"]
    clock.advance(1000)
    assert calls == ["first", "second"]
