"""Timers that are moved far more often than they fire: the sessions of members.

A heartbeat only writes down a new deadline. The one timer behind it fires at the old one, finds the
new one and goes on for the rest, so that a heartbeat puts nothing into the heap of `Timers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from minibroker.broker.timers import Timer, Timers
    from minibroker.clock import Clock

EARLY_S: Final = 0.0005
"""A timer that fires half a millisecond early is on time: deadlines are whole milliseconds."""


class _Deadline:
    """When it is due, and the timer behind it, which may fire earlier."""

    __slots__ = ("at_s", "callback", "fires_at_s", "timer")

    def __init__(self, at_s: float, callback: Callable[[], None], timer: Timer) -> None:
        self.at_s = at_s
        self.fires_at_s = at_s
        self.callback = callback
        self.timer = timer


class Deadlines:
    """Calls by key, each at one time; belongs to the loop's thread."""

    __slots__ = ("_by_key", "_clock", "_timers")

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._by_key: dict[Hashable, _Deadline] = {}

    def __len__(self) -> int:
        """Return how many calls are to come."""
        return len(self._by_key)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a call for this key is to come."""
        return key in self._by_key

    def set(self, key: Hashable, delay_ms: float, callback: Callable[[], None]) -> None:
        """Call `callback` in `delay_ms`, instead of what this key stood for."""
        at_s = self._clock.monotonic_s() + delay_ms / 1000
        deadline = self._by_key.get(key)
        if deadline is not None:
            if deadline.fires_at_s <= at_s:
                deadline.at_s = at_s
                deadline.callback = callback
                return
            deadline.timer.cancel()
        timer = self._timers.after(delay_ms, lambda: self._fire(key))
        self._by_key[key] = _Deadline(at_s, callback, timer)

    def cancel(self, key: Hashable) -> None:
        """Make no call for this key; nothing happens if there is none to make."""
        deadline = self._by_key.pop(key, None)
        if deadline is not None:
            deadline.timer.cancel()

    def clear(self) -> None:
        """Make no call any more."""
        for deadline in self._by_key.values():
            deadline.timer.cancel()
        self._by_key.clear()

    def _fire(self, key: Hashable) -> None:
        deadline = self._by_key[key]
        left_s = deadline.at_s - self._clock.monotonic_s()
        if left_s > EARLY_S:
            deadline.fires_at_s = deadline.at_s
            deadline.timer = self._timers.after(left_s * 1000, lambda: self._fire(key))
            return
        del self._by_key[key]
        deadline.callback()
