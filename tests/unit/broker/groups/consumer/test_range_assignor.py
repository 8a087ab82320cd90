"""The range assignor; beside Kafka's own in tests/compat/test_assignors.py."""

from __future__ import annotations

from tests.unit.broker.groups.consumer.assignments import assign


def test_topics_of_the_same_size_are_cut_alike() -> None:
    members = {"m2": ("ab", ""), "m1": ("ab", "")}
    assert assign("range", {"a": 3, "b": 3}, members) == {"m1": "a:0,1 b:0,1", "m2": "a:2 b:2"}


def test_members_beyond_the_partitions_get_nothing() -> None:
    members = {f"m{number}": ("a", "") for number in range(3)}
    assert assign("range", {"a": 2}, members) == {"m0": "a:0", "m1": "a:1", "m2": ""}


def test_static_members_come_first_by_their_names() -> None:
    members = {"a": ("a", ""), "b": ("a", ""), "c": ("a", "")}
    targets = assign("range", {"a": 3}, members, {"b": "z", "c": "y"})
    assert targets == {"a": "a:2", "b": "a:1", "c": "a:0"}


def test_each_topic_counts_its_own_subscribers() -> None:
    members = {"m1": ("ab", ""), "m2": ("b", ""), "m3": ("", "")}
    targets = assign("range", {"a": 3, "b": 3}, members)
    assert targets == {"m1": "a:0,1,2 b:0,1", "m2": "b:2", "m3": ""}
