"""Code for steps of every kind of group: limits of members, and timers by shard."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.groups.steps import (
    GroupTimers,
    StartTimer,
    Step,
    TimerKind,
    classic_settings_of,
)
from minibroker.broker.timers import Timers
from tests.support.in_process import ManualClock


class Rig:
    """Timers on a clock that is moved; what fired."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.group_timers = GroupTimers(self.clock, self.timers)
        self.fired: list[StartTimer] = []

    def set(self, step: Step, shard_index: int = 0) -> None:
        """Do what the step left, for group g."""
        self.group_timers.set(shard_index, "g", step.timers, self.fired.append)


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_a_timer_that_runs_is_moved_or_left_alone(rig: Rig) -> None:
    step = Step(0)
    step.start_timer(TimerKind.SESSION, 10, "a")
    step.start_timer(TimerKind.SESSION, 20, "a")
    step.start_timer(TimerKind.JOIN, 10, "a")
    step.start_timer(TimerKind.JOIN, 20, "a", only_if_absent=True)
    rig.set(step)
    rig.clock.advance(10)
    assert [timer.kind for timer in rig.fired] == [TimerKind.JOIN]
    rig.clock.advance(10)
    assert [timer.kind for timer in rig.fired] == [TimerKind.JOIN, TimerKind.SESSION]


async def test_timers_stop_one_by_one_and_with_their_member(rig: Rig) -> None:
    step = Step(0)
    for kind in TimerKind:
        step.start_timer(kind, 10, "a")
    step.start_timer(TimerKind.JOIN, 10)
    step.start_timer(TimerKind.SYNC, 10)
    step.stop_timer(TimerKind.JOIN)
    step.stop_timers("a")
    rig.set(step)
    rig.clock.advance(10)
    assert rig.fired == [StartTimer(TimerKind.SYNC, "", 10)]


async def test_a_shard_that_goes_takes_its_timers_along(rig: Rig) -> None:
    for shard_index in (0, 1):
        step = Step(0)
        step.start_timer(TimerKind.SESSION, 10, str(shard_index))
        rig.set(step, shard_index)
    rig.group_timers.clear(0)
    rig.group_timers.clear(2)
    rig.clock.advance(10)
    assert [timer.member_id for timer in rig.fired] == ["1"]


@pytest.mark.parametrize(
    ("timeout_ms", "is_allowed"), [(9, False), (10, True), (20, True), (21, False)]
)
def test_session_timeouts_have_bounds(timeout_ms: int, is_allowed: bool) -> None:
    config = BrokerConfig(
        {"group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "20"}
    )
    assert classic_settings_of(config).allows_session_timeout(timeout_ms) is is_allowed
