"""Calls at a time of the broker's clock: session and transaction time-outs, retention, throttles.

What Kafka does at a time is done here, and the time is the `Clock`'s; only how long a Fetch may
wait and a connection may be idle is measured by the loop. The loop's own timer only says when to
look at the clock again; who moves the clock by hand has everything that became due called at once,
in the order of its time.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.clock import Clock

CANCELLED_MAX: Final = 64
"""So many cancelled calls may lie in the heap before it is cleaned; half of it if that is more."""


class Timer:
    """One call to come; `cancel` may be called at any time, also after it was made."""

    __slots__ = ("_timers", "callback", "deadline_s", "number")

    def __init__(
        self, timers: Timers, deadline_s: float, number: int, callback: Callable[[], None]
    ) -> None:
        self._timers = timers
        self.deadline_s = deadline_s
        """On the clock's `monotonic_s`."""
        self.number = number
        self.callback: Callable[[], None] | None = callback
        """None once it was called or cancelled."""

    def __lt__(self, other: Timer) -> bool:
        """By time, and those of one time in the order they were asked for."""
        if self.deadline_s != other.deadline_s:
            return self.deadline_s < other.deadline_s
        return self.number < other.number

    def cancel(self) -> None:
        """The call is not made."""
        if self.callback is not None:
            self.callback = None
            self._timers.note_cancelled()


class Timers:
    """Belongs to the loop's thread; `close` cancels everything. Idle it arms nothing."""

    __slots__ = (
        "_armed",
        "_armed_for_s",
        "_cancelled",
        "_clock",
        "_heap",
        "_is_closed",
        "_is_held",
        "_next_number",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Timer] = []
        self._cancelled = 0
        self._next_number = 0
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for_s = 0.0
        self._is_closed = False
        self._is_held = False
        clock.on_move(self.run_due)

    def __len__(self) -> int:
        """How many calls are to come."""
        return len(self._heap) - self._cancelled

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the loop in `delay_ms` of the clock's time; after `close`, never."""
        # Sums of fractions come out a hair too late; what is due in 5 ms is due when 5 ms passed.
        deadline_s = round(self._clock.monotonic_s() + delay_ms / 1000, 6)
        self._next_number += 1
        timer = Timer(self, deadline_s, self._next_number, callback)
        if self._is_closed:
            timer.callback = None
            return timer
        heappush(self._heap, timer)
        if self._armed is None or deadline_s < self._armed_for_s:
            self._arm()
        return timer

    def run_due(self) -> None:
        """Make every call whose time has come; what these ask for is made too if it is due.

        A call that raises is the loop's to report, and the others are made all the same.
        """
        if self._is_held:
            return
        now_s = self._clock.monotonic_s()
        # A call may cancel others, which may clean the heap: it is looked up anew every time.
        while self._heap and (self._heap[0].callback is None or self._heap[0].deadline_s <= now_s):
            timer = heappop(self._heap)
            callback = timer.callback
            if callback is None:
                self._cancelled -= 1
                continue
            timer.callback = None
            try:
                callback()
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"timer callback {callback!r} failed", "exception": error}
                )
        self._arm()

    def hold(self, *, is_held: bool) -> None:
        """Make no call while held, as a process that is stopped; then all that are overdue."""
        was_held, self._is_held = self._is_held, is_held
        if was_held and not is_held:
            self.run_due()

    def note_cancelled(self) -> None:
        """Of `Timer`: count, and clean the heap before the cancelled outnumber the rest."""
        self._cancelled += 1
        if self._cancelled > max(CANCELLED_MAX, len(self._heap) // 2):
            self._heap = [timer for timer in self._heap if timer.callback is not None]
            heapify(self._heap)
            self._cancelled = 0
        if not len(self):
            self._disarm()

    def close(self) -> None:
        """Make no call any more, of those asked for later neither."""
        self._is_closed = True
        for timer in self._heap:
            timer.callback = None
        self._heap = []
        self._cancelled = 0
        self._disarm()

    def _arm(self) -> None:
        self._disarm()
        if not self._heap:
            return
        deadline_s = self._heap[0].deadline_s
        delay_s = max(0.0, deadline_s - self._clock.monotonic_s())
        self._armed = asyncio.get_running_loop().call_later(delay_s, self._wake)
        self._armed_for_s = deadline_s

    def _wake(self) -> None:
        self._armed = None
        self.run_due()

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
