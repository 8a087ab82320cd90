"""The next member: the emptiest ones and the fullest ones."""

from __future__ import annotations

from minibroker.broker.groups.consumer.member_ranges import MemberRanges


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
    given = []
    while True:
        giver = ranges.next_most_loaded()
        taker = ranges.next_least_loaded()
        if giver is None or ranges.is_balanced:
            break
        sizes[giver] -= 1
        sizes[taker] += 1
        given.append((giver, taker))
    assert given == [(0, 1), (0, 1)]
    assert sizes == [2, 2, 2]


def test_a_member_with_nothing_to_give_is_skipped() -> None:
    ranges = MemberRanges([0, 1], [3, 3])
    assert ranges.next_most_loaded() == 1
    ranges.exclude_most_loaded()
    assert ranges.next_most_loaded() == 0
    ranges.exclude_most_loaded()
    assert ranges.next_most_loaded() is None
