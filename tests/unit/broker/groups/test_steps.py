"""Code for steps of every kind of group: limits of members, and timers by shard."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.groups.classic.membership import ClassicMembership
from minibroker.broker.groups.consumer.membership import ConsumerMembership
from minibroker.broker.groups.group import CLASSIC, CONSUMER, Group
from minibroker.broker.groups.kinds import KINDS, classes_of, replay_of
from minibroker.broker.groups.members import Surroundings, make_members
from minibroker.broker.groups.steps import (
    GroupTimers,
    StartTimer,
    Step,
    TimerKind,
    classic_settings_of,
)
from minibroker.broker.timers import Timers
from minibroker.clock import SystemClock
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


# The registry of the kinds of groups: every record has one kind, every kind its modules.


UNKNOWN = 11
"""A type of share groups, which are not served."""
EVERY_RECORD = sorted(number for kind in KINDS.values() for number in kind.records)


def test_every_record_belongs_to_one_kind() -> None:
    assert EVERY_RECORD == [2, 3, 4, 5, 6, 7, 8, 16]


@pytest.mark.parametrize("number", EVERY_RECORD)
def test_every_record_has_its_messages_and_a_replay(number: int) -> None:
    classes = classes_of(number)
    assert classes is not None
    key, value = classes
    assert (key.__name__[-3:], value.__name__[-5:]) == ("Key", "Value")
    assert (number, number) == key.VERSIONS
    assert value.VERSIONS[0] == 0
    assert replay_of(number) is not None


def test_a_record_of_no_kind_has_none() -> None:
    assert classes_of(UNKNOWN) is None
    assert replay_of(UNKNOWN) is None


# Each kind of groups has a manager of its members.


def test_each_kind_makes_its_members() -> None:
    cluster: Any = SimpleNamespace(image=None, listeners=[])
    cluster.subscribe = cluster.listeners.append
    makers: dict[str, Any] = {}

    def members(name: str) -> Any:
        if name not in makers:
            makers[name] = make_members(name, surroundings)
        return makers[name]

    timers: Any = None
    worker: Any = None
    surroundings = Surroundings(SystemClock(), timers, BrokerConfig({}), cluster, worker, members)
    assert isinstance(members(CONSUMER), ConsumerMembership)
    assert isinstance(makers[CLASSIC], ClassicMembership)
    assert cluster.listeners == [makers[CONSUMER]]


# The base of all groups: what it says itself.


class OnlyState(Group):
    """A group of which only the state is known."""

    @property
    def state_name(self) -> str:
        return "PreparingRebalance"


def test_a_filter_is_lower_case() -> None:
    group = OnlyState("g")
    assert group.is_in_state(frozenset({"preparingrebalance", "stable"}))
    assert not group.is_in_state(frozenset({"PreparingRebalance"}))


def test_a_kind_has_to_define_everything() -> None:
    group = Group("g")
    for name, member in inspect.getmembers(Group):
        if isinstance(member, property):
            with pytest.raises(NotImplementedError):
                getattr(group, name)
    with pytest.raises(NotImplementedError):
        group.tombstones()
    with pytest.raises(NotImplementedError):
        group.expiration_base_ms(0)
