"""The way of a member from its assignment to its target, one safe stage at a time; pure.

No partition may have two readers. So a member first gives up the partitions that are not in its
target, at its own epoch; its heartbeat shows when it has. Then it goes to the target's epoch and
gets the free partitions. It gets those that other members still hold with a later heartbeat.

Source: Kafka 4.4, CurrentAssignmentBuilder; KIP-848, member reconciliation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.groups.consumer.member import MemberState
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.member import Member, OwnedPartitions


class Target(NamedTuple):
    """The target of a member, with the facts that each step towards it needs."""

    epoch: int
    """Epoch of the target assignment."""
    assignment: Assignment
    subscribed_topic_ids: frozenset[bytes]
    """Subscribed topics that exist; the member keeps no partition of any other topic."""
    has_subscription_changed: bool
    reported: Mapping[bytes, list[int]] | None
    """Partitions that the client reports as owned; None: it does not report them."""
    partition_epoch: Callable[[bytes, int], int]
    """(topic id, partition) → epoch of the member that holds it, -1: nobody."""


def next_assignment(member: Member, target: Target) -> Member:
    """Return the member one stage further, or as it is.

    Raises KafkaError FENCED_MEMBER_EPOCH for a state that this broker does not know.
    """
    state = member.state
    if state is MemberState.STABLE:
        if member.member_epoch != target.epoch:
            return _advance(member, target, member.member_epoch)
        return _drop_unsubscribed(member, target)
    if state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(target.reported, member.revoking):
            return _drop_unsubscribed(member, target)
        return _advance(member, target, member.member_epoch)
    if state is MemberState.UNRELEASED_PARTITIONS:
        return _advance(member, target, member.member_epoch)
    if target.reported is None or target.reported:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. "
            "The member must abandon all its partitions and rejoin.",
        )
    return _advance(member, target, target.epoch)


def _still_owns(reported: Mapping[bytes, list[int]] | None, revoking: OwnedPartitions) -> bool:
    """Return whether the client may still read one of these; None means that it may."""
    if reported is None:
        return True
    return any(
        partition in revoking.get(topic_id, ())
        for topic_id, partitions in reported.items()
        for partition in partitions
    )


def _drop_unsubscribed(member: Member, target: Target) -> Member:
    """Have the member give up, within its epoch, topics that it no longer subscribes to."""
    if not target.has_subscription_changed:
        return member
    lost_topic_ids = [
        topic_id for topic_id in member.assigned if topic_id not in target.subscribed_topic_ids
    ]
    if not lost_topic_ids:
        return member
    assigned = {t: p for t, p in member.assigned.items() if t in target.subscribed_topic_ids}
    revoking = dict(member.revoking)
    for topic_id in lost_topic_ids:
        revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
    new_member = member.at_epoch(member.member_epoch)._replace(assigned=assigned)
    if _still_owns(target.reported, revoking):
        return new_member._replace(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return new_member


def _advance(member: Member, target: Target, member_epoch: int) -> Member:
    """Move the member towards the target: it gives up partitions first, else it goes to the
    target's epoch with the free partitions.
    """
    kept_partitions: dict[bytes, Mapping[int, int]] = {}
    revoking: dict[bytes, Mapping[int, int]] = {}
    for topic_id, current in member.assigned.items():
        target_partitions = _target_partitions(target, topic_id)
        common = {
            partition: epoch
            for partition, epoch in current.items()
            if partition in target_partitions
        }
        surplus = {
            partition: epoch
            for partition, epoch in current.items()
            if partition not in target_partitions
        }
        if common:
            kept_partitions[topic_id] = common
        if surplus:
            revoking[topic_id] = surplus
    if revoking and _still_owns(target.reported, revoking):
        return member.at_epoch(member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept_partitions, revoking=revoking
        )
    free_partitions, is_waiting = _free_of(member, target)
    assigned = {
        topic_id: {**kept_partitions.get(topic_id, {}), **free_partitions.get(topic_id, {})}
        for topic_id in {**kept_partitions, **free_partitions}
    }
    return member.at_epoch(target.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        assigned=assigned,
        revoking={},
    )


def _target_partitions(target: Target, topic_id: bytes) -> frozenset[int]:
    if topic_id not in target.subscribed_topic_ids:
        return frozenset()
    return frozenset(target.assignment.get(topic_id, ()))


def _free_of(member: Member, target: Target) -> tuple[dict[bytes, dict[int, int]], bool]:
    """Return the free partitions that the member lacks, and whether others hold any it lacks."""
    free_partitions: dict[bytes, dict[int, int]] = {}
    is_waiting = False
    for topic_id in target.assignment:
        own = member.revoking.get(topic_id, {})
        for partition in sorted(
            _target_partitions(target, topic_id) - set(member.assigned.get(topic_id, ()))
        ):
            # A partition that it was about to give up is free for it: nobody else can hold it.
            if partition not in own and target.partition_epoch(topic_id, partition) != -1:
                is_waiting = True
            else:
                free_partitions.setdefault(topic_id, {})[partition] = target.epoch
    return free_partitions, is_waiting
