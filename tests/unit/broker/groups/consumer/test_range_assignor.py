"""The range assignor; beside Kafka's own in tests/compat/test_assignors.py."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import SERVED_ASSIGNORS
from minibroker.broker.groups.consumer.assignor import (
    ASSIGNORS,
    AssignorInput,
    frozen,
    load_assignor,
    walk_partitions,
)
from minibroker.broker.groups.consumer.java_order import (
    copied_capacity,
    grown_capacity,
    hash_order,
    int_hash,
    java_string_key,
    java_uuid_key,
    timeline_order,
    uuid_hash,
)
from minibroker.broker.groups.consumer.uniform_balancing import MemberRanges
from minibroker.kafka.java_strings import string_hash
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


# The table of assignors, and the form of what they give.


def test_every_assignor_loads_and_gives_nobody_nothing() -> None:
    for name in ASSIGNORS:
        assert load_assignor(name)(AssignorInput({}, True, {}, {})) == {}


def test_configuration_knows_the_same_assignors() -> None:
    assert tuple(ASSIGNORS) == SERVED_ASSIGNORS


def test_frozen_assignment_is_sorted_and_without_empty_topics() -> None:
    assert frozen({b"a": {2, 0, 1}, b"b": set()}) == {b"a": (0, 1, 2)}


def test_partitions_are_walked_by_bucket() -> None:
    assert walk_partitions((0, 1, 16)) == [0, 16, 1]


# The uniform assignor for equal subscriptions; beside Kafka's own in tests/compat.


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


# The uniform assignor for different subscriptions; beside Kafka's own in tests/compat.


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


# The next member: the emptiest ones and the fullest ones.


def test_the_emptiest_are_filled_up_in_turn() -> None:
    sizes = [2, 0, 1]
    ranges = MemberRanges([0, 1, 2], sizes)
    chosen = []
    for _ in range(6):
        member = ranges.next_least_loaded()
        sizes[member] += 1
        chosen.append(member)
    assert chosen == [1, 1, 2, 1, 2, 0]
    assert ranges.imbalance == 2


def test_the_fullest_give_until_all_are_level() -> None:
    sizes = [4, 0, 2]
    ranges = MemberRanges([0, 1, 2], sizes)
    assert not ranges.is_balanced
    counts = []
    while True:
        giver = ranges.next_most_loaded()
        taker = ranges.next_least_loaded()
        if giver is None or ranges.is_balanced:
            break
        sizes[giver] -= 1
        sizes[taker] += 1
        counts.append((giver, taker))
    assert counts == [(0, 1), (0, 1)]
    assert sizes == [2, 2, 2]


def test_a_member_with_nothing_to_give_is_skipped() -> None:
    ranges = MemberRanges([0, 1], [3, 3])
    assert ranges.next_most_loaded() == 1
    ranges.exclude_most_loaded()
    assert ranges.next_most_loaded() == 0
    ranges.exclude_most_loaded()
    assert ranges.next_most_loaded() is None


# The walk of Java's hash tables; the numbers are Java's own (jshell, Java 17).


def test_uuid_hash_folds_all_bits() -> None:
    assert uuid_hash(bytes(16)) == 0
    assert uuid_hash(bytes.fromhex("00000001000000020000000400000008")) == 15


def test_walk_goes_by_bucket_then_by_age() -> None:
    """Sixteen buckets: 17 lies where 1 does, and comes after it because it was put in later."""
    assert hash_order([17, 3, 1, 16], int_hash, 16) == [16, 17, 1, 3]
    assert hash_order([17, 3, 1, 16], int_hash, 32) == [1, 3, 16, 17]


def test_high_bits_take_part_in_the_bucket() -> None:
    assert hash_order([0x10000, 0], int_hash, 16) == [0, 0x10000]


@pytest.mark.parametrize(("count", "grown", "copied"), [(0, 16, 16), (12, 16, 32), (13, 32, 32)])
def test_capacity_of_tables(count: int, grown: int, copied: int) -> None:
    assert (grown_capacity(count), copied_capacity(count)) == (grown, copied)


@pytest.mark.parametrize(
    ("names", "walk"),
    [
        ("range uniform", "uniform range"),
        ("a b c d e f", "f c e b d a"),
        ("m0 m1 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11", "m0 m5 m2 m7 m4 m11 m9 m1 m6 m3 m10 m8"),
    ],
)
def test_a_timeline_map_is_walked_by_the_high_bits(names: str, walk: str) -> None:
    """The walks are those of Kafka 4.4.0's own class."""
    assert timeline_order(names.split(), string_hash) == walk.split()


def test_keys_sort_as_java_compares() -> None:
    """Java compares UTF-16 units, and the halves of an id as signed numbers."""
    assert sorted(["\uffff", "𝄞", "a"], key=java_string_key) == ["a", "𝄞", "\uffff"]
    high, low = b"\xff" + bytes(15), b"\x01" + bytes(15)
    assert sorted([low, high], key=java_uuid_key) == [high, low]
