"""The movable clock: it goes on by itself, and further when it is moved."""

from __future__ import annotations

import time

import pytest

from minibroker.testing.clock import MovableClock, TestClock


def test_it_is_the_machines_clock_and_what_was_added() -> None:
    clock = MovableClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 1000
    assert abs(clock.monotonic_s() - time.monotonic()) < 1
    clock.move(90_000)
    assert abs(clock.now_ms() - time.time() * 1000 - 90_000) < 1000
    assert abs(clock.monotonic_s() - time.monotonic() - 90) < 1


def test_listeners_hear_of_a_move_after_it() -> None:
    clock = MovableClock()
    before = clock.now_ms()
    heard: list[int] = []
    clock.on_move(lambda: heard.append(clock.now_ms()))
    clock.move(50_000)
    assert len(heard) == 1
    assert heard[0] >= before + 50_000


def test_units_add_up_and_the_move_is_made_where_the_broker_is() -> None:
    clock = MovableClock()
    calls = []

    def call(function: object) -> None:
        calls.append(function)
        function()  # type: ignore[operator]

    test_clock = TestClock(clock, call)
    before = test_clock.now_ms()
    test_clock.advance(days=1, hours=1, minutes=1, seconds=1, milliseconds=1)
    moved = test_clock.now_ms() - before
    assert 90_061_001 <= moved < 90_061_001 + 1000
    assert len(calls) == 1
    with pytest.raises(ValueError, match="does not go back"):
        test_clock.advance(minutes=-1)
