"""Counts of subscriptions by name and by pattern."""

from __future__ import annotations

from minibroker.broker.groups.consumer.subscriptions import Subscriptions


def subscriptions(*names: str, matches: str = "") -> Subscriptions:
    """Each of `names` is one member's, letters are topics."""
    made = Subscriptions()
    for name in names:
        made.add_names(name)
    made.add_matches(matches)
    return made


def test_a_topic_counts_as_long_as_a_member_wants_it() -> None:
    made = subscriptions("ab", "b", matches="bc")
    assert sorted(made) == ["a", "b", "c"]
    made.drop_names("ab")
    assert sorted(made) == ["b", "c"]
    assert "a" not in made
    made.drop_matches("bc")
    made.drop_names("b")
    assert list(made) == []


def test_a_copy_is_another_thing() -> None:
    made = subscriptions("a")
    made.copy().add_names("b")
    assert "b" not in made


def test_names_are_alike_when_every_member_has_every_topic() -> None:
    assert subscriptions().is_homogeneous({}, 2)
    assert subscriptions("ab", "ab").is_homogeneous({}, 2)
    assert not subscriptions("ab", "a").is_homogeneous({}, 2)


def test_patterns_are_alike_when_everybody_has_the_only_one() -> None:
    assert subscriptions(matches="ab").is_homogeneous({"x": 2}, 2)
    assert not subscriptions(matches="ab").is_homogeneous({"x": 1, "y": 1}, 2)
    assert not subscriptions("a", matches="ab").is_homogeneous({"x": 2}, 2)
    assert not subscriptions(matches="aab").is_homogeneous({"x": 2, "y": 1}, 2)
