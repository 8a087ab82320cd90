"""The common part of the steps of all kinds of groups: the time, timers, limits of members.

A step is a function of a kind's state machine. It is given a group, what happened and a `Step`, in
which it leaves what has to be done. Each kind adds to `Step` what only it needs (`classic/events`,
`consumer/step`); what manages its members (`classic/membership`, `consumer/membership`) does it.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from minibroker.broker.config.broker import BrokerConfig
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
        timer = self._timers.after(delay_ms, partial(self.fire, key))
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

    def due_s(self, key: Hashable) -> float:
        """Return when the call of a key is due, on the clock's `monotonic_s`; its timer may be
        earlier.
        """
        return self._by_key[key].at_s

    def fire(self, key: Hashable) -> None:
        """Make the call of a key, or wait for the rest of its time; its timer calls this."""
        deadline = self._by_key[key]
        left_s = deadline.at_s - self._clock.monotonic_s()
        if left_s > EARLY_S:
            deadline.fires_at_s = deadline.at_s
            deadline.timer = self._timers.after(left_s * 1000, partial(self.fire, key))
            return
        del self._by_key[key]
        deadline.callback()


class ClassicSettings(NamedTuple):
    """The keys that members of the classic protocol go by, in a group of any kind."""

    initial_rebalance_delay_ms: int
    max_size: int
    """Members of one group."""
    min_session_timeout_ms: int
    max_session_timeout_ms: int

    def allows_session_timeout(self, timeout_ms: int) -> bool:
        """Return whether a member may ask for this session time-out."""
        return self.min_session_timeout_ms <= timeout_ms <= self.max_session_timeout_ms


def classic_settings_of(config: BrokerConfig) -> ClassicSettings:
    """Return what `config` says to members of the classic protocol."""
    return ClassicSettings(
        config.integer("group.initial.rebalance.delay.ms"),
        config.integer("group.max.size"),
        config.integer("group.min.session.timeout.ms"),
        config.integer("group.max.session.timeout.ms"),
    )


class TimerKind(Enum):
    """The timers of a group; each is one member's, but where a kind of group says otherwise."""

    SESSION = "session"
    """The next heartbeat."""
    REBALANCE = "rebalance"
    """Partitions are given up."""
    JOIN = "join"
    """Members join again."""
    SYNC = "sync"
    """Members ask for their share."""


class StartTimer(NamedTuple):
    """Tell the group in `delay_ms`; a timer of this kind that runs already is moved."""

    kind: TimerKind
    member_id: str
    """Empty for a timer of the whole group."""
    delay_ms: int
    only_if_absent: bool = False
    """One that runs already is left alone."""
    member_epoch: int | None = None
    """It counts only while the member is at this epoch."""


class StopTimer(NamedTuple):
    """Forget this timer if it runs."""

    kind: TimerKind
    member_id: str


class Step:
    """One step under way: what it may look at, and the timers that it wants set, in order."""

    __slots__ = ("now_ms", "timers")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        """Wall clock, milliseconds since the epoch."""
        self.timers: list[StartTimer | StopTimer] = []

    def start_timer(
        self,
        kind: TimerKind,
        delay_ms: int,
        member_id: str = "",
        *,
        only_if_absent: bool = False,
        member_epoch: int | None = None,
    ) -> None:
        """See `StartTimer`."""
        self.timers.append(StartTimer(kind, member_id, delay_ms, only_if_absent, member_epoch))

    def stop_timer(self, kind: TimerKind, member_id: str = "") -> None:
        """See `StopTimer`."""
        self.timers.append(StopTimer(kind, member_id))

    def stop_timers(self, member_id: str) -> None:
        """Stop the timers of a member that is gone."""
        self.timers.extend(StopTimer(kind, member_id) for kind in TimerKind)


class GroupTimers:
    """The timers of all groups of one kind, by shard; belongs to the loop's thread."""

    __slots__ = ("_clock", "_deadlines", "_timers")

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._deadlines: dict[int, Deadlines] = {}
        """By the index of the shard; a key is (group id, kind, member id)."""

    def set(
        self,
        shard_index: int,
        group_id: str,
        timers: Iterable[StartTimer | StopTimer],
        fire: Callable[[StartTimer], None],
    ) -> None:
        """Do what a step left, in its order; `fire` is called with each timer that runs out."""
        deadlines = self._deadlines.get(shard_index)
        if deadlines is None:
            deadlines = self._deadlines[shard_index] = Deadlines(self._clock, self._timers)
        for timer in timers:
            key = (group_id, timer.kind, timer.member_id)
            if not isinstance(timer, StartTimer):
                deadlines.cancel(key)
            elif not (timer.only_if_absent and key in deadlines):
                _start(deadlines, key, timer, fire)

    def clear(self, shard_index: int) -> None:
        """Stop all timers of this shard."""
        deadlines = self._deadlines.pop(shard_index, None)
        if deadlines is not None:
            deadlines.clear()


def _start(
    deadlines: Deadlines,
    key: tuple[str, TimerKind, str],
    timer: StartTimer,
    fire: Callable[[StartTimer], None],
) -> None:
    deadlines.set(key, timer.delay_ms, lambda: fire(timer))
