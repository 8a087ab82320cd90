"""Each kind of groups has a manager of its members."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.groups.classic.membership import ClassicMembership
from minibroker.broker.groups.consumer.membership import ConsumerMembership
from minibroker.broker.groups.group import CLASSIC, CONSUMER
from minibroker.broker.groups.members import Surroundings, make_members
from minibroker.clock import SystemClock


def test_each_kind_makes_its_members() -> None:
    cluster: Any = SimpleNamespace(image=None, listeners=[])
    cluster.subscribe = cluster.listeners.append
    made: dict[str, Any] = {}

    def members(name: str) -> Any:
        if name not in made:
            made[name] = make_members(name, surroundings)
        return made[name]

    timers: Any = None
    run_then: Any = None
    surroundings = Surroundings(SystemClock(), timers, BrokerConfig({}), cluster, run_then, members)
    assert isinstance(members(CONSUMER), ConsumerMembership)
    assert isinstance(made[CLASSIC], ClassicMembership)
    assert cluster.listeners == [made[CONSUMER]]
