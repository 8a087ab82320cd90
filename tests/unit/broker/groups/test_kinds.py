"""The registry of the kinds of groups: every record has one kind, every kind its modules."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.kinds import KINDS, classes_of, replay_of

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
