"""ConsumerGroupHeartbeat as a step: a member joins, changes, reports what it owns, gets its share.

    checks → the member as it will be → the group's epoch → the target → one stage of reconciliation

Source: Kafka 4.4, GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid,
GroupMetadataManager.consumerGroupHeartbeat; KIP-848.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Member,
    MemberState,
    holds_only,
    without_epochs,
)
from minibroker.broker.groups.consumer.reconciliation import Target, next_assignment
from minibroker.broker.groups.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from minibroker.broker.groups.consumer.regexes import RegexChange, change_regex
from minibroker.broker.groups.consumer.targets import (
    MemberTarget,
    current_epoch,
    is_metadata_stale,
    next_epoch,
    next_target,
)
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.group import ConsumerGroup
    from minibroker.broker.groups.consumer.step import Step

logger = logging.getLogger(__name__)

OWN_MEMBER_ID_VERSION: Final = 1
"""Version of the API from which a client makes its member id itself (KIP-1082)."""
NOT_TOLD: Final = -1


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat request; None and NOT_TOLD: as before."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_TOLD
    topic_names: frozenset[str] | None = None
    topic_regex: str | None = None
    assignor_name: str | None = None
    owned: Mapping[bytes, list[int]] | None = None
    """Topic id → partitions that the client owns now."""
    version: int = OWN_MEMBER_ID_VERSION

    @property
    def is_full(self) -> bool:
        """Return whether the client says everything, and so wants to hear everything."""
        return (
            self.rebalance_timeout_ms != NOT_TOLD
            and (self.topic_names is not None or self.topic_regex is not None)
            and self.owned is not None
        )


class HeartbeatAnswer(NamedTuple):
    """The answer to the member."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    """All that it may own; None: as before."""


def check(request: Heartbeat, assignors: Collection[str]) -> None:
    """Raises KafkaError for a request that makes no sense, in Kafka's order of checks:
    INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if request.version >= OWN_MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH:
        _refuse_blank(request.member_id, "MemberId can't be empty.")
    _refuse_blank(request.group_id, "GroupId can't be empty.")
    _refuse_blank(request.instance_id, "InstanceId can't be empty.")
    _refuse_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == NOT_TOLD:
            _refuse("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            _refuse("TopicPartitions must be empty when (re-)joining.")
        if request.topic_names is None and request.topic_regex is None:
            _refuse(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
                " (re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            _refuse("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        _refuse("MemberEpoch is invalid.")
    if request.assignor_name is not None and request.assignor_name not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.assignor_name} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def _refuse_blank(text: str | None, detail: str) -> None:
    if text is not None and not text.strip():
        _refuse(detail)


def _refuse(detail: str) -> None:
    raise KafkaError(ErrorCode.INVALID_REQUEST, detail)


def on_heartbeat(group: ConsumerGroup, step: Step, request: Heartbeat) -> HeartbeatAnswer:
    """Take the step of a heartbeat, and return its answer. Raises KafkaError:
    GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID,
    FENCED_INSTANCE_ID, INVALID_REGULAR_EXPRESSION.
    """
    refuse_if_full(group, step, request.member_id, request.instance_id)
    member_id = request.member_id or step.new_member_id()
    is_joining = request.member_epoch == JOIN_EPOCH
    if request.instance_id is None:
        old_member = group.members.get(member_id) if is_joining else group.member(member_id)
        old = old_member or Member(member_id)
        _check_epoch(old, request)
    else:
        old = _static_member(group, step, request, member_id)
    new = _with_request(old, request)
    have_names_changed = record_member(group, step, old, new)
    regex = change_regex(group, step, old, new)
    default = step.settings.assignors[0]
    has_assignor_changed = new != old and (
        group.preferred_assignor(default) != group.preferred_assignor(default, old, new)
    )
    must_bump = have_names_changed or regex is RegexChange.RESOLVED or has_assignor_changed
    group_epoch = current_epoch(group)
    if must_bump or is_metadata_stale(group, step.topics):
        group_epoch = next_epoch(group, step, old, new, must_bump=must_bump)
    target = next_target(group, step, old, new, group_epoch)
    has_changed = have_names_changed or regex is not RegexChange.NONE
    new_member = reconcile(
        group, step, new, target, request.owned, has_subscription_changed=has_changed
    )
    step.start_timer(TimerKind.SESSION, step.settings.session_timeout_ms, member_id)
    has_assignment = is_joining or request.is_full or old.assigned != new_member.assigned
    return HeartbeatAnswer(
        new_member.member_id,
        new_member.member_epoch,
        step.settings.heartbeat_interval_ms,
        without_epochs(new_member.assigned) if has_assignment else None,
    )


def refuse_if_full(
    group: ConsumerGroup, step: Step, member_id: str, instance_id: str | None
) -> None:
    """Raises KafkaError GROUP_MAX_SIZE_REACHED; a known static member takes no new place."""
    if instance_id is not None and instance_id in group.static_members:
        return
    max_size = step.settings.max_size
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def _with_request(old: Member, request: Heartbeat) -> Member:
    """Return the member with the facts of its request."""
    timeout_ms = request.rebalance_timeout_ms
    return old._replace(
        instance_id=old.instance_id if request.instance_id is None else request.instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == NOT_TOLD else timeout_ms,
        assignor_name=old.assignor_name if request.assignor_name is None else request.assignor_name,
        topic_names=old.topic_names if request.topic_names is None else request.topic_names,
        topic_regex=old.topic_regex if request.topic_regex is None else request.topic_regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _check_epoch(member: Member, request: Heartbeat) -> None:
    """Raise KafkaError FENCED_MEMBER_EPOCH for a wrong epoch.

    The previous epoch is good as well if the client owns only partitions that it may own: the
    answer with the new epoch may have been lost.
    """
    epoch, member_epoch = request.member_epoch, member.member_epoch
    if epoch in (JOIN_EPOCH, member_epoch):
        return
    is_previous = epoch == member.previous_member_epoch and epoch < member_epoch
    if is_previous and holds_only(request.owned, member.assigned):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if epoch > member_epoch else 'smaller'} member"
        f" epoch ({epoch}) than the one known by the group coordinator ({member_epoch}). The member"
        " must abandon all its partitions and rejoin.",
    )


def _static_member(group: ConsumerGroup, step: Step, request: Heartbeat, member_id: str) -> Member:
    """Return the static member.

    When it joins, it takes the place of the absent member of the same name.
    """
    static_member = group.static_member(request.instance_id)
    if request.member_epoch != JOIN_EPOCH:
        static_member = require_static_member(group, request.instance_id or "", member_id)
        _check_epoch(static_member, request)
        return static_member
    if static_member is None:
        return group.members.get(member_id) or Member(member_id)
    if not static_member.is_classic and static_member.member_epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {request.instance_id} cannot join the"
            f" group because the instance id is owned by {static_member.member_id} member.",
        )
    return replace_static(group, step, static_member, member_id)


def require_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """Return the static member of an instance id.

    Raises KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID (another member has the name).
    """
    static_member = group.static_member(instance_id)
    if static_member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static_member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {static_member.member_id}.",
        )
    return static_member


def replace_static(group: ConsumerGroup, step: Step, old_member: Member, member_id: str) -> Member:
    """Return the same member under another id, at epoch 0."""
    new = old_member._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    # Its timers stay: if this step fails the old member is still there, and else they find nobody.
    step.records += member_tombstones(group_id, old_member.member_id)
    step.records.append(member_record(group_id, new))
    step.records.append(target_record(group_id, member_id, group.target_of(old_member.member_id)))
    step.records.append(current_record(group_id, new))
    logger.info("%s: %s replaces static member %s", group, member_id, old_member.member_id)
    return new


def record_member(group: ConsumerGroup, step: Step, old: Member, new: Member) -> bool:
    """Store the member if it has changed; return whether it names other topics than before."""
    if new == old:
        return False
    step.records.append(member_record(group.group_id, new))
    return new.topic_names != old.topic_names


def reconcile(
    group: ConsumerGroup,
    step: Step,
    member: Member,
    target: MemberTarget,
    owned: Mapping[bytes, list[int]] | None,
    *,
    has_subscription_changed: bool,
) -> Member:
    """Return the member one stage nearer to its target. A member of the consumer protocol that has
    to give up partitions has its rebalance time-out for it.
    """
    if not has_subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    new_member = next_assignment(
        member,
        Target(
            target.epoch,
            target.assignment,
            step.topics.ids_of(group.topics_of(member)),
            has_subscription_changed,
            owned,
            group.partition_epoch,
        ),
    )
    if new_member == member:
        return member
    step.records.append(current_record(group.group_id, new_member))
    if not new_member.is_classic:
        if new_member.state is MemberState.UNREVOKED_PARTITIONS:
            step.start_timer(
                TimerKind.REBALANCE,
                new_member.rebalance_timeout_ms,
                new_member.member_id,
                member_epoch=new_member.member_epoch,
            )
        else:
            step.stop_timer(TimerKind.REBALANCE, new_member.member_id)
    return new_member
