"""The base of all groups: what it says itself."""

from __future__ import annotations

import inspect

import pytest

from minibroker.broker.groups.group import Group


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
