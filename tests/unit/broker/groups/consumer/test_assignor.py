"""The table of assignors, and the form of what they give."""

from __future__ import annotations

from minibroker.broker.config.checks import SERVED_ASSIGNORS
from minibroker.broker.groups.consumer.assignor import (
    ASSIGNORS,
    AssignorInput,
    frozen,
    load_assignor,
    walk_partitions,
)


def test_every_assignor_loads_and_gives_nobody_nothing() -> None:
    for name in ASSIGNORS:
        assert load_assignor(name)(AssignorInput({}, True, {}, {})) == {}


def test_configuration_knows_the_same_assignors() -> None:
    assert tuple(ASSIGNORS) == SERVED_ASSIGNORS


def test_frozen_assignment_is_sorted_and_without_empty_topics() -> None:
    assert frozen({b"a": {2, 0, 1}, b"b": set()}) == {b"a": (0, 1, 2)}


def test_partitions_are_walked_by_bucket() -> None:
    assert walk_partitions((0, 1, 16)) == [0, 16, 1]
