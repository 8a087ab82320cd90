"""From what a member has to what it shall have, one safe stage at a time; pure.

No partition may have two readers. So a member first gives up what it shall not keep, at the epoch
where it is; its heartbeat shows when it has. Then it goes to the target's epoch and gets what is
free; what others still hold it gets with a later heartbeat.

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
    """Topics that it subscribed to and that exist; it is left no partition of any other."""
    has_subscription_changed: bool
    reported: Mapping[bytes, list[int]] | None
    """Partitions that the client reports as owned; None: it did not say."""
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
    """Return whether the client may still read one of these; it may if it did not say."""
    if reported is None:
        return True
    return any(
        partition in revoking.get(topic_id, ())
        for topic_id, partitions in reported.items()
        for partition in partitions
    )


def _drop_unsubscribed(member: Member, target: Target) -> Member:
    """Have the member give up, within its epoch, what it does not subscribe to any more."""
    if not target.has_subscription_changed:
        return member
    unsubscribed = [t for t in member.assigned if t not in target.subscribed_topic_ids]
    if not unsubscribed:
        return member
    assigned = {t: p for t, p in member.assigned.items() if t in target.subscribed_topic_ids}
    revoking = dict(member.revoking)
    for topic_id in unsubscribed:
        revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
    dropped = member.at_epoch(member.member_epoch)._replace(assigned=assigned)
    if _still_owns(target.reported, revoking):
        return dropped._replace(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return dropped


def _advance(member: Member, target: Target, member_epoch: int) -> Member:
    """Move the member towards the target: it gives up first, else it goes to the target's epoch
    with what is free.
    """
    kept: dict[bytes, Mapping[int, int]] = {}
    revoking: dict[bytes, Mapping[int, int]] = {}
    for topic_id, current in member.assigned.items():
        wanted = _wanted(target, topic_id)
        staying = {partition: epoch for partition, epoch in current.items() if partition in wanted}
        leaving = {
            partition: epoch for partition, epoch in current.items() if partition not in wanted
        }
        if staying:
            kept[topic_id] = staying
        if leaving:
            revoking[topic_id] = leaving
    if revoking and _still_owns(target.reported, revoking):
        return member.at_epoch(member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    gained, is_waiting = _free_of(member, target)
    assigned = {
        topic_id: {**kept.get(topic_id, {}), **gained.get(topic_id, {})}
        for topic_id in {**kept, **gained}
    }
    return member.at_epoch(target.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        assigned=assigned,
        revoking={},
    )


def _wanted(target: Target, topic_id: bytes) -> frozenset[int]:
    if topic_id not in target.subscribed_topic_ids:
        return frozenset()
    return frozenset(target.assignment.get(topic_id, ()))


def _free_of(member: Member, target: Target) -> tuple[dict[bytes, dict[int, int]], bool]:
    """Return the free partitions that the member lacks, and whether others hold any it lacks."""
    gained: dict[bytes, dict[int, int]] = {}
    is_waiting = False
    for topic_id in target.assignment:
        own = member.revoking.get(topic_id, {})
        for partition in sorted(_wanted(target, topic_id) - set(member.assigned.get(topic_id, ()))):
            # What it was about to give up itself is free for it: only one member can hold it.
            if partition not in own and target.partition_epoch(topic_id, partition) != -1:
                is_waiting = True
            else:
                gained.setdefault(topic_id, {})[partition] = target.epoch
    return gained, is_waiting
