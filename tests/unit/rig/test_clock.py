"""The movable clock: it goes on by itself, and further when it is moved."""

from __future__ import annotations

import time

import pytest

from minibroker.clock import SystemClock
from minibroker.rig.clock import MovableClock, TestClock


def test_it_is_the_machines_clock_and_what_was_added() -> None:
    clock = MovableClock()
    for moved_ms in (0, 90_000):
        clock.move(moved_ms)
        before_ms, before_s = time.time_ns() // 1_000_000, time.monotonic()
        now_ms, now_s = clock.now_ms(), clock.monotonic_s()
        assert before_ms <= now_ms - moved_ms <= time.time_ns() // 1_000_000
        assert before_s <= now_s - moved_ms / 1000 <= time.monotonic()


def test_listeners_hear_of_a_move_after_it() -> None:
    clock = MovableClock()
    first_ms = clock.now_ms()
    heard: list[tuple[float, int]] = []
    clock.on_move(lambda moved_s: heard.append((moved_s, clock.now_ms())))
    clock.move(50_000)
    ((moved_s, now_ms),) = heard
    assert moved_s == 50
    assert now_ms >= first_ms + 50_000


def test_a_clock_that_is_put_back_is_the_machines_again() -> None:
    clock = MovableClock()
    heard: list[float] = []
    clock.on_move(heard.append)
    clock.put_back()
    assert heard == []
    clock.move(50_000)
    clock.put_back()
    assert heard == [50, -50]
    before_s = time.monotonic()
    assert before_s <= clock.monotonic_s() <= time.monotonic()


def test_units_add_up_and_the_move_is_made_where_the_broker_is() -> None:
    clock = MovableClock()
    calls = []

    def call(function: object) -> None:
        calls.append(function)
        function()  # type: ignore[operator]

    test_clock = TestClock(clock, call)
    test_clock.advance(days=1, hours=1, minutes=1, seconds=1, milliseconds=1)
    before_ms = time.time_ns() // 1_000_000
    assert before_ms <= test_clock.now_ms() - 90_061_001 <= time.time_ns() // 1_000_000
    assert len(calls) == 1
    with pytest.raises(ValueError, match="does not go back"):
        test_clock.advance(minutes=-1)


# The machine's clock: units and direction.


def test_now_is_milliseconds_since_the_epoch() -> None:
    first_ms = int(time.time() * 1000)
    now = SystemClock().now_ms()
    after = int(time.time() * 1000)
    assert first_ms - 1 <= now <= after + 1
    assert isinstance(now, int)


def test_monotonic_is_seconds_and_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.monotonic_s() for _ in range(100)]
    assert times == sorted(times)
    assert abs(times[0] - time.monotonic()) < 60
