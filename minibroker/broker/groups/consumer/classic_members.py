"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Such a member is reconciled like any other. Its generation is its epoch; REBALANCE_IN_PROGRESS makes
it join again, which is how it hears of a new target; what it owns stands in its subscription; its
share comes with SyncGroup. Nobody is the leader.

Source: Kafka 4.4, GroupMetadataManager.classicGroup…ToConsumerGroup; KIP-848.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.groups.consumer.departures import fence
from minibroker.broker.groups.consumer.embedded_protocol import (
    Subscription,
    read_subscription,
    version_of,
    write_assignment,
)
from minibroker.broker.groups.consumer.group import PROTOCOL_TYPE
from minibroker.broker.groups.consumer.heartbeat import (
    reconcile,
    record_member,
    refuse_if_full,
    replace_static,
    require_static_member,
)
from minibroker.broker.groups.consumer.member import (
    ClassicFacts,
    Member,
    MemberState,
    without_epochs,
)
from minibroker.broker.groups.consumer.migration import can_downgrade_replacing, downgrade
from minibroker.broker.groups.consumer.regexes import RegexChange, change_regex
from minibroker.broker.groups.consumer.step import DISABLED
from minibroker.broker.groups.consumer.targets import (
    GroupEpoch,
    MemberTarget,
    current_epoch,
    is_metadata_stale,
    next_epoch,
    next_target,
)
from minibroker.broker.groups.member_requests import JoinAnswer, SyncAnswer
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.groups.consumer.group import ConsumerGroup
    from minibroker.broker.groups.consumer.step import Step
    from minibroker.broker.groups.member_requests import Departure, Join, Sync

logger = logging.getLogger(__name__)


class _Change(NamedTuple):
    """A classic member before and after its join."""

    old: Member
    new: Member
    subscription: Subscription
    has_changed: bool
    """It subscribes to something else."""


def on_join(group: ConsumerGroup, step: Step, join: Join) -> JoinAnswer:
    """JoinGroup to a group that has members. Raises KafkaError: INCONSISTENT_GROUP_PROTOCOL,
    GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if step.settings.migration_policy == DISABLED:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the"
            " group migration is disabled.",
        )
    member_id = join.member_id or step.new_member_id()
    refuse_if_full(group, step, member_id, join.instance_id)
    names = [name for name, _ in join.protocols]
    if not group.supports_protocols(join.protocol_type, names):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member_id}'s protocols are not supported.",
        )
    if join.is_member_id_required and not join.member_id and join.instance_id is None:
        return JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    static_member = group.static_member(join.instance_id)
    becomes_classic = static_member is not None and can_downgrade_replacing(
        group, step, static_member
    )
    change = _change(group, step, join, member_id)
    group_epoch = current_epoch(group)
    if change.has_changed or is_metadata_stale(group, step.topics):
        group_epoch = next_epoch(group, step, change.old, change.new, must_bump=change.has_changed)
    if becomes_classic:
        new_member = _join_as_last(group, step, change, group_epoch)
    else:
        target = next_target(group, step, change.old, change.new, group_epoch)
        new_member = _reconcile(group, step, change, target)
        step.stop_timer(TimerKind.JOIN, new_member.member_id)
        step.start_timer(TimerKind.SESSION, join.session_timeout_ms, new_member.member_id)
        step.start_timer(TimerKind.SYNC, join.rebalance_timeout_ms, new_member.member_id)
    return JoinAnswer(
        ErrorCode.NONE,
        new_member.member_id,
        generation_id=new_member.member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=names[0],
    )


def _change(group: ConsumerGroup, step: Step, join: Join, member_id: str) -> _Change:
    """Return the member as its join says, with the records of it."""
    old = _joining_member(group, step, join, member_id)
    try:
        subscription = read_subscription(join.protocols[0][1], step.topics)
    except ProtocolError as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from error
    new = old._replace(
        instance_id=old.instance_id if join.instance_id is None else join.instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        rebalance_timeout_ms=(
            old.rebalance_timeout_ms
            if join.rebalance_timeout_ms == -1
            else join.rebalance_timeout_ms
        ),
        topic_names=subscription.topic_names,
        topic_regex="",
        client_id=join.client_id,
        client_host=join.client_host,
        classic=ClassicFacts(join.session_timeout_ms, join.protocols),
    )
    have_names_changed = record_member(group, step, old, new)
    regex = change_regex(group, step, old, new)
    return _Change(old, new, subscription, have_names_changed or regex is not RegexChange.NONE)


def _joining_member(group: ConsumerGroup, step: Step, join: Join, member_id: str) -> Member:
    if join.instance_id is None:
        return group.members.get(member_id) or Member(member_id)
    static_member = group.static_member(join.instance_id)
    if join.member_id:
        return require_static_member(group, join.instance_id, member_id)
    if static_member is None:
        return group.members.get(member_id) or Member(member_id)
    return replace_static(group, step, static_member, member_id)


def _reconcile(group: ConsumerGroup, step: Step, change: _Change, target: MemberTarget) -> Member:
    return reconcile(
        group,
        step,
        change.new,
        target,
        change.subscription.owned,
        has_subscription_changed=change.has_changed,
    )


def _join_as_last(
    group: ConsumerGroup, step: Step, change: _Change, group_epoch: GroupEpoch
) -> Member:
    """Join the last member of the consumer protocol, which came back as a classic one: the group is
    classic again, and begins a rebalance if its target is not up to date.
    """
    new_member = change.new
    if group.assignment_epoch >= group_epoch.epoch:
        assignment = group.target_of(new_member.member_id, new_member.instance_id)
        target = MemberTarget(group.assignment_epoch, assignment)
        new_member = _reconcile(group, step, change, target)
        reason = None
    else:
        reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
    downgrade(group, step, new_member=new_member, rebalance_reason=reason)
    return new_member


def on_sync(group: ConsumerGroup, step: Step, sync: Sync) -> SyncAnswer:
    """SyncGroup: the member's share. Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS."""
    member, classic = _classic_member(group, sync.member_id, sync.instance_id)
    _check_generation(member, sync.generation_id)
    protocol_name, metadata = classic.protocols[0]
    if sync.protocol_type not in (None, PROTOCOL_TYPE) or (
        sync.protocol_name not in (None, protocol_name)
    ):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"member {member.member_id} asks for {sync.protocol_type} {sync.protocol_name},"
            f" it joined with {PROTOCOL_TYPE} {protocol_name}",
        )
    if (
        group.assignment_epoch > member.member_epoch
        and member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        _await_join(step, member)
        raise KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {group.group_id} and member"
            f" {member.member_id} should rejoin to catch up.",
        )
    step.stop_timer(TimerKind.SYNC, member.member_id)
    step.start_timer(TimerKind.SESSION, classic.session_timeout_ms, member.member_id)
    share = write_assignment(without_epochs(member.assigned), version_of(metadata), step.topics)
    return SyncAnswer(ErrorCode.NONE, sync.protocol_type, sync.protocol_name, share)


def on_classic_heartbeat(
    group: ConsumerGroup, step: Step, member_id: str, instance_id: str | None, generation_id: int
) -> ErrorCode:
    """Return the code of a heartbeat: NONE, or REBALANCE_IN_PROGRESS if the member must join again.

    It must where there is a new target, where it has to give up partitions, or where the partitions
    that it waits for are free. Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION.
    """
    member, classic = _classic_member(group, member_id, instance_id)
    _check_generation(member, generation_id)
    step.start_timer(TimerKind.SESSION, classic.session_timeout_ms, member_id)
    must_join = (
        member.member_epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (
            member.state is MemberState.UNRELEASED_PARTITIONS
            and not group.is_waiting_for_others(member)
        )
    )
    if must_join:
        _await_join(step, member)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def on_classic_leave(
    group: ConsumerGroup, step: Step, departures: Sequence[Departure]
) -> list[ErrorCode]:
    """Remove members for LeaveGroup; return one code per entry.

    Members of the consumer protocol may be removed as well.
    """
    codes: list[ErrorCode] = []
    members: dict[str, Member] = {}
    for entry in departures:
        try:
            if entry.instance_id is None:
                member = group.member(entry.member_id)
            else:
                static_member = group.static_member(entry.instance_id)
                # An admin client removes a static member by its name alone.
                member_id = entry.member_id or (static_member.member_id if static_member else "")
                member = require_static_member(group, entry.instance_id, member_id)
        except KafkaError as error:
            codes.append(error.code)
        else:
            logger.info("%s: member %s left: %s", group, member.member_id, entry.reason)
            members[member.member_id] = member
            codes.append(ErrorCode.NONE)
    fence(group, step, list(members.values()))
    return codes


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[Member, ClassicFacts]:
    """Return a member, and what it has for the classic protocol. Raises KafkaError for a member
    that is not in the group, was replaced, or uses the other protocol.
    """
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = require_static_member(group, instance_id, member_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    return member, member.classic


def _check_generation(member: Member, generation_id: int) -> None:
    if generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch"
            f" {member.member_epoch} of member {member.member_id}.",
        )


def _await_join(step: Step, member: Member) -> None:
    step.start_timer(
        TimerKind.JOIN, member.rebalance_timeout_ms, member.member_id, only_if_absent=True
    )
