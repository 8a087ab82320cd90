"""The uniform assignor for different subscriptions; beside Kafka's own in tests/compat."""

from __future__ import annotations

from tests.unit.broker.groups.consumer.assignments import assign


def test_a_member_of_a_single_topic_is_served_from_it() -> None:
    members = {"m1": ("ab", ""), "m2": ("b", "")}
    assert assign("uniform", {"a": 2, "b": 2}, members) == {"m1": "a:0,1", "m2": "b:0,1"}


def test_partitions_move_until_nothing_is_better() -> None:
    members = {"m1": ("ab", "a:0,1 b:0,1,2"), "m2": ("b", ""), "m3": ("b", "")}
    targets = assign("uniform", {"a": 2, "b": 3}, members)
    assert targets == {"m1": "a:0,1", "m2": "b:2", "m3": "b:0,1"} or (
        sorted(target.count(",") for target in targets.values()) == [0, 1, 1]
    )


def test_a_balanced_assignment_stays() -> None:
    members = {"m1": ("ab", "a:0,1"), "m2": ("b", "b:0,1")}
    assert assign("uniform", {"a": 2, "b": 2}, members) == {"m1": "a:0,1", "m2": "b:0,1"}


def test_topics_without_a_choice_are_placed_first() -> None:
    """m1 alone reads a: the others' topic is shared by those who have less."""
    members = {"m1": ("ab", ""), "m2": ("b", ""), "m3": ("bc", "")}
    targets = assign("uniform", {"a": 4, "b": 2, "c": 2}, members)
    assert targets["m1"] == "a:0,1,2,3"
    assert targets["m2"] == "b:0,1"
    assert targets["m3"] == "c:0,1"


def test_nobody_subscribes_to_what_exists() -> None:
    assert assign("uniform", {}, {"m1": ("", ""), "m2": ("", "")}) == {"m1": "", "m2": ""}
