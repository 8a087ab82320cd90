"""Time that goes on and can be moved: the machine's clock plus what a test added to it.

`broker.clock.advance(minutes=10)` brings everything that waits for a time in these ten minutes at
once: sessions and rebalances, transactions, retention, quotas; and LogAppendTime is ten minutes
later. Nothing goes back, as on a real clock.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from minibroker.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable


class MovableClock:
    """A `minibroker.clock.Clock`. Belongs to the broker's loop; `TestClock` is for the tests."""

    __slots__ = ("_ahead_ms", "_listeners", "_machine")

    def __init__(self) -> None:
        self._machine = SystemClock()
        self._ahead_ms = 0
        self._listeners: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return self._machine.now_ms() + self._ahead_ms

    def monotonic_s(self) -> float:
        return self._machine.monotonic_s() + self._ahead_ms / 1000

    def on_move(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def forget_listeners(self) -> None:
        """The broker that asked is gone."""
        self._listeners.clear()

    def move(self, milliseconds: int) -> None:
        """Be later by so much; what is due by then is called before this returns."""
        self._ahead_ms += milliseconds
        for listener in self._listeners:
            listener()


class TestClock:
    """A running broker's clock, for the thread of the test."""

    __test__ = False  # for pytest this is no test

    __slots__ = ("_call", "_clock")

    def __init__(self, clock: MovableClock, call: Callable[[Callable[[], None]], None]) -> None:
        """`call` runs a function on the broker's loop and waits for it."""
        self._clock = clock
        self._call = call

    def now_ms(self) -> int:
        """The broker's wall clock, milliseconds since the epoch."""
        return self._clock.now_ms()

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """Be later by so much, now. Raises ValueError for a time that goes back.

        What became due has been done on the broker when this returns; what it sets in motion on
        disk (compaction, deletion) may take a moment longer.
        """
        moved = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        moved_ms = moved // timedelta(milliseconds=1)
        if moved_ms < 0:
            raise ValueError(f"advance({moved_ms} ms): time does not go back, not even here")
        self._call(lambda: self._clock.move(moved_ms))
