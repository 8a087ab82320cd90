"""The machine's clock: units and direction."""

from __future__ import annotations

import time

from minibroker.clock import SystemClock


def test_now_is_milliseconds_since_the_epoch() -> None:
    before = int(time.time() * 1000)
    now = SystemClock().now_ms()
    after = int(time.time() * 1000)
    assert before - 1 <= now <= after + 1
    assert isinstance(now, int)


def test_monotonic_is_seconds_and_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.monotonic_s() for _ in range(100)]
    assert times == sorted(times)
    assert abs(times[0] - time.monotonic()) < 60
