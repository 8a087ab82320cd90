"""A clock that tests can move: the machine's clock plus the sum of the moves.

`broker.clock.advance(minutes=10)` calls everything at once that is due within these ten minutes:
sessions and rebalances, transactions, retention, quotas. LogAppendTime is ten minutes later, too. A
test cannot put the clock back. `Broker.reset` does so between two tests: the next test begins at
the machine's time.
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
        self._listeners: list[Callable[[float], None]] = []

    @property
    def ahead_ms(self) -> int:
        """Return how far the clock was moved from the machine's."""
        return self._ahead_ms

    def now_ms(self) -> int:
        return self._machine.now_ms() + self._ahead_ms

    def monotonic_s(self) -> float:
        return self._machine.monotonic_s() + self._ahead_ms / 1000

    def on_move(self, listener: Callable[[float], None]) -> None:
        self._listeners.append(listener)

    def move(self, milliseconds: int) -> None:
        """Move the clock forward; everything due by then is called before this returns."""
        self._ahead_ms += milliseconds
        for listener in self._listeners:
            listener(milliseconds / 1000)

    def put_back(self) -> None:
        """Show the machine's time again. A call that was 5 s away still is."""
        ahead_ms, self._ahead_ms = self._ahead_ms, 0
        if ahead_ms:
            for listener in self._listeners:
                listener(-ahead_ms / 1000)


class TestClock:
    """A running broker's clock, for the thread of the test."""

    __test__ = False  # for pytest this is no test

    __slots__ = ("_call", "_clock")

    def __init__(self, clock: MovableClock, call: Callable[[Callable[[], None]], None]) -> None:
        """Take `call`, which runs a function on the broker's loop and waits for it."""
        self._clock = clock
        self._call = call

    def now_ms(self) -> int:
        """Return the broker's wall clock, milliseconds since the epoch."""
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
        """Move the clock forward now. Raises ValueError for a negative sum.

        Everything that became due is done on the broker when this returns. Its work on disk
        (compaction, deletion) may take a moment longer, and so does in a cluster all that other
        brokers take part in, such as replicas that leave the ISR.
        """
        moved = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        moved_ms = moved // timedelta(milliseconds=1)
        if moved_ms < 0:
            raise ValueError(f"advance({moved_ms} ms): time does not go back, not even here")
        self._call(lambda: self._clock.move(moved_ms))
