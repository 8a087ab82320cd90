"""The broker's only source of time. Every part gets a `Clock`, so that a test can move it."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """The functions of time that the broker uses."""

    def now_ms(self) -> int:
        """Return the wall clock in ms since the epoch; records and retention use it."""

    def monotonic_s(self) -> float:
        """Return seconds since some start, never less than before; time-outs and metrics use it."""

    def on_move(self, listener: Callable[[float], None]) -> None:
        """Have `listener` called with the moved seconds whenever somebody moves the clock by hand.
        Seconds below 0 mean that a test is over and the clock shows the machine's time again.
        """


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def on_move(self, listener: Callable[[float], None]) -> None:
        """Do nothing: nobody moves the machine's clock by hand."""
