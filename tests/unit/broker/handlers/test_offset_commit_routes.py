"""The cache of OffsetCommit's short way, and when it forgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from minibroker.broker.handlers import offset_commit_routes
from minibroker.broker.handlers.offset_commit_routes import CommitRoutes, Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.groups.coordinator import GroupCoordinator


class _Coordinator:
    """The part of a group coordinator that routes need."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []

    def when_routes_change(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)


def test_versions_are_apart_and_an_event_of_the_coordinator_empties_all() -> None:
    coordinator = _Coordinator()
    routes = CommitRoutes(cast("GroupCoordinator", coordinator))
    route = cast("Route", object())
    routes.add(7, b"key", route)
    routes.add(10, b"key", route)
    assert routes.of_version(7) == {b"key": route}
    assert routes.of_version(8) == {}
    assert len(routes) == 2
    (forget,) = coordinator.listeners
    forget()
    assert len(routes) == 0


def test_they_do_not_grow_without_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_commit_routes, "_ROUTES_MAX", 3)
    routes = CommitRoutes(cast("GroupCoordinator", _Coordinator()))
    for number in range(10):
        routes.add(8, b"%d" % number, cast("Route", object()))
        assert 1 <= len(routes) <= 3


def test_names_of_unusual_length_are_not_remembered() -> None:
    routes = CommitRoutes(cast("GroupCoordinator", _Coordinator()))
    routes.add(7, b"g" * 32_000, cast("Route", object()))
    assert len(routes) == 0
