"""Parts of the assignors; their targets stand beside Kafka's in tests/compat/test_assignors.py."""

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


# The uniform assignor for different subscriptions; beside Kafka's own in tests/compat.


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
    assert timeline_order(names.split()) == walk.split()


def test_keys_sort_as_java_compares() -> None:
    """Java compares UTF-16 units, and the halves of an id as signed numbers."""
    assert sorted(["\uffff", "𝄞", "a"], key=java_string_key) == ["a", "𝄞", "\uffff"]
    high, low = b"\xff" + bytes(15), b"\x01" + bytes(15)
    assert sorted([low, high], key=java_uuid_key) == [high, low]
