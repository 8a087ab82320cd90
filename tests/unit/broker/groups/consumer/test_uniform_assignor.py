"""The uniform assignor for equal subscriptions; beside Kafka's own in tests/compat."""

from __future__ import annotations

from tests.unit.broker.groups.consumer.assignments import assign


def test_everybody_gets_the_same_number_over_all_topics() -> None:
    members = {"m1": ("ab", ""), "m2": ("ab", "")}
    assert assign("uniform", {"a": 3, "b": 1}, members) == {"m1": "a:0,1", "m2": "a:2 b:0"}


def test_a_new_member_takes_only_the_excess_of_others() -> None:
    members = {"new": ("a", ""), "old": ("a", "a:0,1,2")}
    assert assign("uniform", {"a": 3}, members) == {"new": "a:2", "old": "a:0,1"}


def test_unassigned_partitions_go_to_members_below_their_share() -> None:
    members = {"m1": ("a", "a:0"), "m2": ("a", "a:1")}
    assert assign("uniform", {"a": 4}, members) == {"m1": "a:0,2", "m2": "a:1,3"}


def test_topics_that_are_not_subscribed_any_more_are_left() -> None:
    members = {"m1": ("a", "a:0 b:0")}
    assert assign("uniform", {"a": 1, "b": 1}, members) == {"m1": "a:0"}


def test_the_last_members_take_the_remainder_if_nobody_has_it() -> None:
    members = {"m1": ("a", "a:0"), "m2": ("a", "a:1"), "m3": ("a", "")}
    targets = assign("uniform", {"a": 4}, members)
    assert sorted(len(target.split(",")) for target in targets.values()) == [1, 1, 2]
    assert targets["m1"].startswith("a:0")
    assert targets["m2"].startswith("a:1")


def test_nobody_subscribes_to_anything() -> None:
    assert assign("uniform", {"a": 1}, {"m1": ("", "a:0"), "m2": ("", "")}) == {"m1": "", "m2": ""}
