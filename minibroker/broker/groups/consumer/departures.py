"""Members go: they leave, their time is up, or an admin client removes them.

Source: Kafka 4.4, GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from minibroker.broker.groups.consumer.heartbeat import HeartbeatAnswer, require_static_member
from minibroker.broker.groups.consumer.member import NOTHING_OWNED, STATIC_LEAVE_EPOCH
from minibroker.broker.groups.consumer.migration import can_downgrade, downgrade
from minibroker.broker.groups.consumer.records import (
    current_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.groups.consumer.group import ConsumerGroup
    from minibroker.broker.groups.consumer.heartbeat import Heartbeat
    from minibroker.broker.groups.consumer.member import Member
    from minibroker.broker.groups.consumer.step import Step

logger = logging.getLogger(__name__)


def on_leave(group: ConsumerGroup, step: Step, request: Heartbeat) -> HeartbeatAnswer:
    """Handle a heartbeat with a leaving epoch. Raises KafkaError UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID.
    """
    answer = HeartbeatAnswer(request.member_id, request.member_epoch)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = require_static_member(group, request.instance_id, request.member_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            _leave_for_a_while(group, step, member)
            return answer
    logger.info("%s: member %s left", group, member.member_id)
    fence(group, step, [member])
    return answer


def _leave_for_a_while(group: ConsumerGroup, step: Step, member: Member) -> None:
    """Let a static member keep its partitions until its session ends; who comes back under its name
    has had them all the time, so they count as got at epoch 0.
    """
    logger.info("%s: static member %s left for a while", group, member.member_id)
    absent_member = member._replace(
        member_epoch=STATIC_LEAVE_EPOCH,
        assigned={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in member.assigned.items()
        },
        revoking=NOTHING_OWNED,
    )
    step.records.append(current_record(group.group_id, absent_member))


def fence(group: ConsumerGroup, step: Step, members: Sequence[Member]) -> None:
    """Remove members; the group gets a new epoch, or becomes classic if all others are."""
    if not members:
        return
    if can_downgrade(group, step, members):
        reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
        downgrade(group, step, departing_members=members, rebalance_reason=reason)
        return
    group_id = group.group_id
    for member in members:
        step.records += member_tombstones(group_id, member.member_id)
    subscriptions = group.subscriptions.copy()
    for member in members:
        subscriptions.drop_names(member.topic_names)
    departure_counts = Counter(member.topic_regex for member in members if member.topic_regex)
    for regex, count in departure_counts.items():
        if group.regex_counts[regex] == count:
            step.records.append(regex_tombstone(group_id, regex))
            resolution = group.resolved_regexes.get(regex)
            subscriptions.drop_matches(resolution.topics if resolution else ())
    epoch = group.epoch + 1
    step.records.append(epoch_record(group_id, epoch, step.topics.hash_of(subscriptions)))
    logger.info("%s goes to epoch %d", group, epoch)
    if len(members) == len(group.members):
        # Nobody is left: the next member shall not wait for the assignment interval.
        step.records.append(target_epoch_record(group_id, epoch, 0))
    for member in members:
        step.stop_timers(member.member_id)
