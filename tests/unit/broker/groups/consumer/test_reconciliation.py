"""One stage of reconciliation, for each state of a member."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.broker.groups.consumer.member import Member, MemberState, with_epoch
from minibroker.broker.groups.consumer.reconciliation import Target, next_assignment
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

TOPIC, OTHER = b"t" * 16, b"o" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def target(**fields: Any) -> Target:
    """At epoch 5, subscribed to both topics, everything free, the client silent."""
    usual = Target(5, {}, frozenset({TOPIC, OTHER}), False, None, lambda _topic, _partition: -1)
    return usual._replace(**fields)


def member(**fields: Any) -> Member:
    return Member("m", member_epoch=4, previous_member_epoch=4)._replace(**fields)


def test_nothing_changes_at_the_epoch_of_the_target() -> None:
    first_member = member(member_epoch=5)
    assert next_assignment(first_member, target()) is first_member


def test_a_free_partition_is_assigned_at_once() -> None:
    next_member = next_assignment(member(), target(assignment={TOPIC: (0, 1)}))
    assert next_member == Member(
        "m", 5, 4, state=STABLE, assigned={TOPIC: {0: 5, 1: 5}}, revoking={}
    )


def test_a_partition_that_stays_keeps_its_epoch() -> None:
    first_member = member(assigned=with_epoch({TOPIC: (0,)}, 2))
    next_member = next_assignment(first_member, target(assignment={TOPIC: (0, 1)}))
    assert next_member.assigned == {TOPIC: {0: 2, 1: 5}}


def test_giving_up_comes_first_and_at_the_old_epoch() -> None:
    first_member = member(assigned=with_epoch({TOPIC: (0, 1)}, 4))
    waiting = next_assignment(first_member, target(assignment={TOPIC: (1, 2)}))
    assert waiting.state is UNREVOKED
    assert waiting.member_epoch == 4
    assert (waiting.assigned, waiting.revoking) == ({TOPIC: {1: 4}}, {TOPIC: {0: 4}})
    still = next_assignment(waiting, target(assignment={TOPIC: (1, 2)}, reported={TOPIC: [0, 1]}))
    assert still is waiting
    done = next_assignment(waiting, target(assignment={TOPIC: (1, 2)}, reported={TOPIC: [1]}))
    assert done.state is STABLE
    assert (done.member_epoch, done.assigned) == (5, {TOPIC: {1: 4, 2: 5}})


def test_a_client_that_gave_up_already_is_not_asked() -> None:
    first_member = member(assigned=with_epoch({TOPIC: (0,)}, 4))
    done = next_assignment(first_member, target(reported={}))
    assert (done.state, done.member_epoch, done.assigned) == (STABLE, 5, {})


def test_partitions_of_others_are_waited_for_at_the_new_epoch() -> None:
    new_target = target(
        assignment={TOPIC: (0, 1)}, partition_epoch=lambda _t, number: 4 if number else -1
    )
    waiting = next_assignment(member(), new_target)
    assert (waiting.state, waiting.member_epoch) == (UNRELEASED, 5)
    assert waiting.assigned == {TOPIC: {0: 5}}
    done = next_assignment(waiting, target(assignment={TOPIC: (0, 1)}))
    assert (done.state, done.assigned) == (STABLE, {TOPIC: {0: 5, 1: 5}})


def test_a_partition_to_revoke_that_is_assigned_again_is_free_for_it() -> None:
    first_member = member(state=UNREVOKED, revoking=with_epoch({TOPIC: (0,)}, 4))
    new_target = target(assignment={TOPIC: (0,)}, reported={}, partition_epoch=lambda _t, _p: 4)
    assert next_assignment(first_member, new_target).assigned == {TOPIC: {0: 5}}


def test_topics_that_it_does_not_subscribe_to_are_given_up_within_its_epoch() -> None:
    first_member = member(member_epoch=5, assigned=with_epoch({TOPIC: (0,), OTHER: (1,)}, 5))
    changed = target(subscribed_topic_ids=frozenset({TOPIC}), has_subscription_changed=True)
    waiting = next_assignment(first_member, changed)
    assert (waiting.state, waiting.member_epoch) == (UNREVOKED, 5)
    assert (waiting.assigned, waiting.revoking) == ({TOPIC: {0: 5}}, {OTHER: {1: 5}})
    next_member = next_assignment(first_member, changed._replace(reported={TOPIC: [0]}))
    assert (next_member.state, next_member.assigned, next_member.revoking) == (
        STABLE,
        {TOPIC: {0: 5}},
        {},
    )


def test_a_target_of_a_topic_that_is_not_subscribed_counts_as_nothing() -> None:
    new_target = target(assignment={OTHER: (0,)}, subscribed_topic_ids=frozenset({TOPIC}))
    assert next_assignment(member(), new_target).assigned == {}


def test_a_state_of_a_newer_broker_is_fenced_unless_it_owns_nothing() -> None:
    unknown = member(state=MemberState.UNKNOWN)
    with pytest.raises(KafkaError) as raised:
        next_assignment(unknown, target())
    assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert next_assignment(unknown, target(reported={})).member_epoch == 5
