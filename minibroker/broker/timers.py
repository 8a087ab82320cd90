"""Calls at a time of the broker's clock: session and transaction time-outs, retention, throttles.

All of Kafka's timed work runs here, on the broker's `Clock`. Only the wait of a Fetch and the idle
time of a connection use the loop's own time. The loop's timer says when to look at the clock again.
If a test moves the clock, all calls that became due run at once, in the order of their times.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.clock import Clock

CANCELLED_MAX: Final = 64
"""Cancelled calls that the heap may hold before it is cleaned; half of the heap if that is more."""


class Timer:
    """A call to come. `cancel` may be called at any time, also after the call was made."""

    __slots__ = ("_timers", "callback", "deadline_s", "number")

    def __init__(
        self, timers: Timers, deadline_s: float, number: int, callback: Callable[[], None]
    ) -> None:
        self._timers = timers
        self.deadline_s = deadline_s
        """Time of the call, on the clock's `monotonic_s`."""
        self.number = number
        self.callback: Callable[[], None] | None = callback
        """None after the call was made or cancelled."""

    def __lt__(self, other: Timer) -> bool:
        """Order by time; calls of the same time keep the order in which they were made."""
        if self.deadline_s != other.deadline_s:
            return self.deadline_s < other.deadline_s
        return self.number < other.number

    def cancel(self) -> None:
        """Prevent the call."""
        if self.callback is not None:
            self.callback = None
            self._timers.note_cancelled()


class Timers:
    """The calls to come, in a heap. The loop owns it. Without calls it arms no timer of the
    loop.
    """

    __slots__ = (
        "_armed_for_s",
        "_cancelled_count",
        "_clock",
        "_handle",
        "_heap",
        "_is_closed",
        "_is_held",
        "_next_number",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Timer] = []
        self._cancelled_count = 0
        self._next_number = 0
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for_s = 0.0
        self._is_closed = False
        self._is_held = False
        clock.on_move(self._note_move)

    def __len__(self) -> int:
        """Return the number of calls to come."""
        return len(self._heap) - self._cancelled_count

    def upcoming(self, limit: int) -> list[Timer]:
        """Return the calls that are due next, soonest first, at most `limit`. The work grows with
        that number only, and with that of cancelled calls among them.
        """
        timers: list[Timer] = []
        places = [(self._heap[0], 0)] if self._heap else []
        while places and len(timers) < limit:
            timer, place = heappop(places)
            if timer.callback is not None:
                timers.append(timer)
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(self._heap):
                    heappush(places, (self._heap[child], child))
        return timers

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the loop in `delay_ms` of the clock's time; after `close`, never."""
        # A sum of fractions may be slightly too large; a call in 5 ms is due when 5 ms have passed.
        deadline_s = round(self._clock.monotonic_s() + delay_ms / 1000, 6)
        self._next_number += 1
        timer = Timer(self, deadline_s, self._next_number, callback)
        if self._is_closed:
            timer.callback = None
            return timer
        heappush(self._heap, timer)
        if self._handle is None or deadline_s < self._armed_for_s:
            self._arm()
        return timer

    def _note_move(self, moved_s: float) -> None:
        """Make the calls that became due. If the clock went back, keep the remaining time of each
        call.
        """
        if moved_s < 0:
            for timer in self._heap:  # all by the same amount, so the order of the heap stays
                timer.deadline_s = round(timer.deadline_s + moved_s, 6)
            self._arm()
        else:
            self.run_due()

    def run_due(self) -> None:
        """Make every call whose time has come, and those that these calls add if they are due too.
        An exception of a call goes to the exception handler of the loop; the other calls are made.
        """
        if self._is_held:
            return
        now_s = self._clock.monotonic_s()
        # A call may cancel others and so clean the heap, so the heap is read anew every time.
        while self._heap and (self._heap[0].callback is None or self._heap[0].deadline_s <= now_s):
            timer = heappop(self._heap)
            callback = timer.callback
            if callback is None:
                self._cancelled_count -= 1
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
        """Make no call while held, like a stopped process; after that make all overdue calls."""
        was_held, self._is_held = self._is_held, is_held
        if was_held and not is_held:
            self.run_due()

    def note_cancelled(self) -> None:
        """Count a cancelled call, and clean the heap before cancelled calls outnumber the
        others.
        """
        self._cancelled_count += 1
        if self._cancelled_count > max(CANCELLED_MAX, len(self._heap) // 2):
            self._heap = [timer for timer in self._heap if timer.callback is not None]
            heapify(self._heap)
            self._cancelled_count = 0
        if not len(self):
            self._disarm()

    def close(self) -> None:
        """Make no more calls; calls added later are never made."""
        self._is_closed = True
        for timer in self._heap:
            timer.callback = None
        self._heap = []
        self._cancelled_count = 0
        self._disarm()

    def _arm(self) -> None:
        self._disarm()
        if not self._heap:
            return
        deadline_s = self._heap[0].deadline_s
        delay_s = max(0.0, deadline_s - self._clock.monotonic_s())
        self._handle = asyncio.get_running_loop().call_later(delay_s, self._wake)
        self._armed_for_s = deadline_s

    def _wake(self) -> None:
        self._handle = None
        self.run_due()

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
