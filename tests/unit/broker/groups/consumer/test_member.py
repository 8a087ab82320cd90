"""Members as values."""

from __future__ import annotations

from minibroker.broker.groups.consumer.member import (
    Member,
    MemberState,
    holds_only,
    with_epoch,
    without_epochs,
)

TOPIC, OTHER = b"t" * 16, b"o" * 16


def test_unknown_states_are_read_as_unknown() -> None:
    assert MemberState(1) is MemberState.UNREVOKED_PARTITIONS
    assert MemberState(99) is MemberState.UNKNOWN


def test_another_epoch_keeps_the_one_before() -> None:
    member = Member("m", member_epoch=4, previous_member_epoch=2).at_epoch(7)
    assert (member.member_epoch, member.previous_member_epoch) == (7, 4)


def test_reconciled_is_stable_at_the_epoch_of_the_target() -> None:
    member = Member("m", member_epoch=4)
    assert member.is_reconciled_to(4)
    assert not member.is_reconciled_to(5)
    assert not member._replace(state=MemberState.UNRELEASED_PARTITIONS).is_reconciled_to(4)


def test_epochs_of_partitions_come_and_go() -> None:
    owned = with_epoch({TOPIC: (0, 2)}, 5)
    assert owned == {TOPIC: {0: 5, 2: 5}}
    assert without_epochs(owned) == {TOPIC: (0, 2)}


def test_a_client_that_says_nothing_may_hold_anything() -> None:
    owned = with_epoch({TOPIC: (0, 1)}, 5)
    assert not holds_only(None, owned)
    assert holds_only({}, owned)
    assert holds_only({TOPIC: [1]}, owned)
    assert not holds_only({TOPIC: [1, 2]}, owned)
    assert not holds_only({OTHER: []}, owned)
