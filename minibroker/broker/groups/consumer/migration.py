"""A group changes its protocol while its members go on reading (KIP-848, online migration).

Upgrade: the first member of the consumer protocol comes to a classic group; the classic members go
on in the consumer group, their generation is their epoch. Downgrade: the last member of the
consumer protocol leaves, or a static one comes back as a classic one; the group is classic again.

`group.consumer.migration.policy` limits the directions. Source: Kafka 4.4,
GroupMetadataManager.convertToConsumerGroup, convertToClassicGroup; ConsumerGroup.fromClassicGroup,
ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.groups.classic.group_value import value_of
from minibroker.broker.groups.classic.member import Member as ClassicMember
from minibroker.broker.groups.consumer.embedded_protocol import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from minibroker.broker.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from minibroker.broker.groups.consumer.member import ClassicFacts, Member, with_epoch
from minibroker.broker.groups.consumer.records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from minibroker.broker.groups.consumer.step import Downgrade
from minibroker.broker.groups.kinds import GROUP_METADATA
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.broker.groups.consumer.step import Step
    from minibroker.broker.groups.group import Group

logger = logging.getLogger(__name__)

CLASSIC_VALUE_VERSION: Final = 3
"""Version of the value of a classic group, as `ClassicMembership` stores it."""


def group_for(group_id: str, group: Group | None, step: Step, *, is_joining: bool) -> ConsumerGroup:
    """Return the consumer group of a heartbeat: the existing one, a new one, or the upgrade of a
    classic group. Raises KafkaError GROUP_ID_NOT_FOUND.
    """
    if isinstance(group, ConsumerGroup):
        return group
    if not is_joining:
        if group is None:
            _refuse(f"Consumer group {group_id} not found.")
        _refuse(f"Group {group_id} is not a consumer group.")
    if isinstance(group, ClassicGroup):
        if group.is_empty:
            step.records += group.tombstones()
            step.replaced_group = group
        else:
            return _upgrade(group, step)
    return ConsumerGroup(group_id)


def _refuse(detail: str) -> None:
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, detail)


def _upgrade(classic: ClassicGroup, step: Step) -> ConsumerGroup:
    """Return a group with the same members and assignments; the generation becomes the epoch."""
    group_id = classic.group_id
    why_not = None
    if not step.settings.may_upgrade:
        why_not = "online upgrade is disabled"
    elif not classic.uses_consumer_protocol:
        why_not = "the group does not use the consumer embedded protocol"
    elif classic.member_count > step.settings.max_size:
        why_not = "the group size exceeds the consumer group maximum size"
    if why_not is not None:
        logger.info("cannot upgrade %s to a consumer group: %s", classic, why_not)
        _refuse(f"Cannot upgrade classic group {group_id} to consumer group because {why_not}.")
    group = ConsumerGroup(group_id)
    group.epoch = group.assignment_epoch = classic.generation_id
    try:
        for member in classic.members.values():
            _take_over(group, classic, member, step)
    except ProtocolError as error:
        logger.warning("cannot upgrade %s to a consumer group: %s", classic, error)
        _refuse(
            f"Cannot upgrade classic group {group_id} to consumer group because the embedded"
            " consumer protocol is malformed."
        )
    group.metadata_hash = step.topics.hash_of(group.subscriptions)
    step.records += classic.tombstones()
    _record_all(group, step)
    for new_member in group.members.values():
        if new_member.classic is not None:
            step.start_timer(
                TimerKind.SESSION, new_member.classic.session_timeout_ms, new_member.member_id
            )
    step.replaced_group = classic
    logger.info("%s becomes a consumer group", classic)
    return group


def _take_over(
    group: ConsumerGroup, classic: ClassicGroup, member: ClassicMember, step: Step
) -> None:
    """Take over one classic member. Raises ProtocolError; KafkaError GROUP_ID_NOT_FOUND for an
    assignor that keeps data of its own in the assignments, which would be lost.
    """
    assignment, has_user_data = (
        read_assignment(member.assignment, step.topics) if member.assignment else ({}, False)
    )
    if has_user_data:
        _refuse(
            f"Cannot upgrade classic group {group.group_id} to consumer group because an"
            " unsupported custom assignor is in use. Please refer to the documentation or switch"
            " to a default assignor before re-attempting the upgrade."
        )
    protocol_name = classic.protocol_name or classic.select_protocol()
    subscription = read_subscription(member.metadata_of(protocol_name), step.topics)
    epoch = classic.generation_id
    group.put_target(member.member_id, assignment)
    group.put_member(
        Member(
            member.member_id,
            member_epoch=epoch,
            previous_member_epoch=epoch,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=subscription.topic_names,
            assigned=with_epoch(assignment, epoch),
            classic=ClassicFacts(member.session_timeout_ms, member.protocols),
        )
    )


def _record_all(group: ConsumerGroup, step: Step) -> None:
    group_id, members = group.group_id, group.members.values()
    step.records += [member_record(group_id, member) for member in members]
    step.records.append(epoch_record(group_id, group.epoch, group.metadata_hash))
    step.records += [
        target_record(group_id, member_id, target) for member_id, target in group.target.items()
    ]
    step.records.append(target_epoch_record(group_id, group.assignment_epoch, 0))
    step.records += [current_record(group_id, member) for member in members]


# Back again.


def can_downgrade(group: ConsumerGroup, step: Step, departing_members: Sequence[Member]) -> bool:
    """Return whether the group may become classic: all other members are classic ones."""
    departing_ids = {member.member_id for member in departing_members}
    remaining_members = [
        member for member in group.members.values() if member.member_id not in departing_ids
    ]
    return bool(remaining_members) and _may_be_classic(
        group, step, remaining_members, len(remaining_members)
    )


def can_downgrade_replacing(group: ConsumerGroup, step: Step, static_member: Member) -> bool:
    """Return the same for the moment when a classic member takes the place of a static one of the
    consumer protocol.
    """
    remaining_members = [member for member in group.members.values() if member != static_member]
    return not static_member.is_classic and _may_be_classic(
        group, step, remaining_members, len(group.members)
    )


def _may_be_classic(
    group: ConsumerGroup, step: Step, members: Iterable[Member], count: int
) -> bool:
    if not all(member.is_classic for member in members):
        return False
    if not step.settings.may_downgrade:
        logger.info("%s does not become classic: online downgrade is disabled", group)
        return False
    if count > step.settings.classic.max_size:
        logger.info("%s does not become classic: it is larger than group.max.size", group)
        return False
    return True


def downgrade(
    group: ConsumerGroup,
    step: Step,
    *,
    departing_members: Sequence[Member] = (),
    new_member: Member | None = None,
    rebalance_reason: str | None = None,
) -> None:
    """Make the group classic without `departing_members`.

    `new_member`, whose records are in the step already, takes the place of the static member that
    has its name.
    """
    departing_ids = {member.member_id for member in departing_members}
    static_member = group.static_member(new_member.instance_id) if new_member is not None else None
    member_ids = list(group.members)
    members = [member for member in group.members.values() if member.member_id not in departing_ids]
    if new_member is not None and static_member is not None:
        member_ids = [
            new_member.member_id if name == static_member.member_id else name for name in member_ids
        ]
        members = [member for member in members if member.member_id != static_member.member_id]
        members.append(new_member)
    step.records += group_tombstones(group.group_id, member_ids, group.resolved_regexes)
    classic = ClassicGroup(
        group.group_id,
        step.now_ms,
        state=State.STABLE,
        generation_id=group.epoch,
        protocol_type=PROTOCOL_TYPE,
    )
    for member in members:
        if member.classic is not None:
            classic.add(_classic_member(member, member.classic), PROTOCOL_TYPE)
    classic.protocol_name = classic.select_protocol()
    classic.learn_topics()
    for classic_member in classic.members.values():
        member_id = classic_member.member_id
        if (
            new_member is not None
            and static_member is not None
            and member_id == new_member.member_id
        ):
            member_id = static_member.member_id
        metadata = classic_member.metadata_of(classic.protocol_name)
        classic_member.assignment = write_assignment(
            group.target_of(member_id), _version_or_refuse(group, metadata), step.topics
        )
    shares = {member.member_id: member.assignment for member in classic.members.values()}
    key = GroupMetadataKey(group=group.group_id).to_bytes(GROUP_METADATA)
    step.records.append((key, value_of(classic, shares).to_bytes(CLASSIC_VALUE_VERSION)))
    step.timers.clear()
    for member in group.members.values():
        step.stop_timers(member.member_id)
    step.downgrade = Downgrade(classic, rebalance_reason)
    logger.info("%s becomes a classic group", group)


def _classic_member(member: Member, facts: ClassicFacts) -> ClassicMember:
    return ClassicMember(
        member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=facts.session_timeout_ms,
        protocols=facts.protocols,
    )


def _version_or_refuse(group: ConsumerGroup, metadata: bytes) -> int:
    try:
        return version_of(metadata)
    except ProtocolError as error:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot downgrade the classic group {group.group_id}: {error}.",
        ) from error
