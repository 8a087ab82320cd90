"""The broker's only source of time: every part takes a `Clock`, so that a test can move it."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """What the broker asks of time."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch: what records and retention see."""

    def monotonic_s(self) -> float:
        """Seconds from an arbitrary start, never backwards: what time-outs and metrics see."""

    def on_move(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever somebody moves the clock by hand (`timers.Timers` asks)."""


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def on_move(self, listener: Callable[[], None]) -> None:
        """The machine's clock runs by itself; nobody moves it."""
