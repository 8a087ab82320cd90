"""Steps of SyncGroup: the leader hands in the assignment, everybody gets a share.

Nobody gets a share before the assignment is in the journal: after a crash the group goes on with
what its members hold.

Source: Kafka 4.4, GroupMetadataManager.classicGroupSyncToClassicGroup.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.groups.classic.group import State
from minibroker.broker.groups.classic.group_value import value_of
from minibroker.broker.groups.classic.rebalance import (
    give_assignment,
    rebalance_or_complete_join,
    start_session,
    withdraw_assignment,
)
from minibroker.broker.groups.member_requests import SyncAnswer
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from minibroker.broker.groups.classic.events import Step
    from minibroker.broker.groups.classic.group import ClassicGroup
    from minibroker.broker.groups.member_requests import Sync, SyncWaiter

logger = logging.getLogger(__name__)


def on_sync(group: ClassicGroup, step: Step, sync: Sync, waiter: SyncWaiter) -> None:
    """Handle a SyncGroup request for a group that exists."""
    error = _refusal(group, sync)
    if error is not ErrorCode.NONE:
        step.answer_sync(waiter, SyncAnswer(error))
        return
    member = group.members[sync.member_id]
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        step.stop_timer(TimerKind.SYNC)
    if group.state is State.STABLE:
        answer = SyncAnswer(
            ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment
        )
        step.answer_sync(waiter, answer)
        start_session(step, member)
        return
    # An earlier sync that still waits is the same client's, which gave it up.
    group.answer_sync(step, member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_waiter = waiter
    if group.leader_id == member.member_id:
        _take_assignment(group, step, sync)


def _refusal(group: ClassicGroup, sync: Sync) -> ErrorCode:
    """Return why this sync gets no share, in Kafka's order; NONE if it does."""
    if group.state is State.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is State.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    try:
        group.validate_member(sync.member_id, sync.instance_id)
    except KafkaError as error:
        logger.info("sync refused: %s", error)
        return error.code
    if sync.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if (sync.protocol_type is not None and sync.protocol_type != group.protocol_type) or (
        sync.protocol_name is not None and sync.protocol_name != group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is State.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _take_assignment(group: ClassicGroup, step: Step, sync: Sync) -> None:
    """Store the shares of the leader's sync, then give them out. A member without one gets an empty
    one.
    """
    shares = {member_id: sync.assignments.get(member_id, b"") for member_id in group.members}
    without = [member_id for member_id in shares if member_id not in sync.assignments]
    if without:
        logger.warning("%s: the leader assigned nothing to %s", group, without)

    def on_stored(next_step: Step, error: ErrorCode | None) -> None:
        # The group may have gone on to another generation meanwhile.
        if (
            group.state is not State.COMPLETING_REBALANCE
            or group.generation_id != sync.generation_id
        ):
            return
        if error is None:
            give_assignment(group, next_step, shares)
            return
        withdraw_assignment(group, next_step, error)
        rebalance_or_complete_join(
            group, next_step, f"the assignment of {sync.member_id} was not stored ({error.name})"
        )

    step.store(value_of(group, shares), on_stored)
