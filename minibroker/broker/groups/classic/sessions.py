"""Steps of a member's life between rebalances: heartbeats, silence, leaving.

Source: Kafka 4.4, GroupMetadataManager: classicGroupHeartbeatToClassicGroup,
expireClassicGroupMemberHeartbeat, classicGroupLeaveToClassicGroup.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.groups.classic.group import State
from minibroker.broker.groups.classic.rebalance import (
    complete_join,
    complete_join_if_all_are_here,
    prepare_rebalance,
    rebalance_or_complete_join,
    start_session,
)
from minibroker.broker.groups.member_requests import UNKNOWN_MEMBER_ID, JoinAnswer, SyncAnswer
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.groups.classic.events import Step
    from minibroker.broker.groups.classic.group import ClassicGroup
    from minibroker.broker.groups.classic.member import Member
    from minibroker.broker.groups.member_requests import Departure

logger = logging.getLogger(__name__)


def on_heartbeat(
    group: ClassicGroup, step: Step, member_id: str, instance_id: str | None, generation_id: int
) -> ErrorCode:
    """Begin the session anew. Return the code; REBALANCE_IN_PROGRESS: the member joins again."""
    if group.state is State.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    try:
        group.validate_member(member_id, instance_id)
    except KafkaError as error:
        return error.code
    if generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    start_session(step, group.members[member_id])
    if group.state is State.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def on_session_timer(group: ClassicGroup, step: Step, member_id: str) -> None:
    """Remove a member that sent no heartbeat in time, or an id that was not used in time."""
    if group.state is State.DEAD:
        return
    if member_id in group.pending_join:
        logger.info("%s: nobody joined as %s in time", group, member_id)
        group.remove(member_id)
        _go_on_without(group, step)
        return
    member = group.members.get(member_id)
    if member is None or member.is_alive_without_heartbeat:
        return
    logger.info(
        "%s: %s sent no heartbeat for %d ms, removing it", group, member, member.session_timeout_ms
    )
    _remove(group, step, member)
    if group.state in {State.STABLE, State.COMPLETING_REBALANCE}:
        rebalance_or_complete_join(group, step, f"{member} sent no heartbeat in time")
    else:
        _go_on_without(group, step)


def on_leave(group: ClassicGroup, step: Step, departures: Sequence[Departure]) -> list[ErrorCode]:
    """Remove members; return one code for each, in order. One rebalance for all of them."""
    codes = []
    departed = []
    for member in departures:
        try:
            departed.append(_leave(group, step, member))
        except KafkaError as error:
            codes.append(error.code)
        else:
            codes.append(ErrorCode.NONE)
    if departed:
        if group.state in {State.STABLE, State.COMPLETING_REBALANCE}:
            rebalance_or_complete_join(group, step, f"{', '.join(departed)} left")
        elif group.state is State.PREPARING_REBALANCE:
            complete_join_if_all_are_here(group, step)
    return codes


def _leave(group: ClassicGroup, step: Step, departure: Departure) -> str:
    """Remove a member and return its id.

    Raises KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    member_id = departure.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = group.static_members.get(departure.instance_id or "", "")
        if not member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    elif member_id in group.pending_join:
        group.remove(member_id)
        step.stop_timer(TimerKind.SESSION, member_id)
        return member_id
    else:
        group.validate_member(member_id, departure.instance_id)
    member = group.members[member_id]
    logger.info(
        "%s: %s leaves; client reason: %r", group, member, departure.reason or "not provided"
    )
    _remove(group, step, member)
    return member_id


def _remove(group: ClassicGroup, step: Step, member: Member) -> None:
    """Remove a member; a request of it that waits gets UNKNOWN_MEMBER_ID, so it joins anew."""
    group.answer_join(step, member, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
    # Kafka forgets a waiting sync here and its connection stays muted.
    group.answer_sync(step, member, SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    step.stop_timer(TimerKind.SESSION, member.member_id)


def _go_on_without(group: ClassicGroup, step: Step) -> None:
    """End the join phase if it waited only for the member that is gone now."""
    if group.state is State.PREPARING_REBALANCE and group.have_all_joined:
        complete_join(group, step)


def on_loaded(group: ClassicGroup, step: Step) -> None:
    """Begin a whole session for each member of a group that was loaded."""
    for member in group.members.values():
        start_session(step, member)
    if len(group.members) > step.settings.max_size:
        prepare_rebalance(
            group,
            step,
            f"{len(group.members)} members, group.max.size is {step.settings.max_size}",
        )


def on_unloaded(group: ClassicGroup, step: Step, error: ErrorCode) -> None:
    """Answer all waiting members with `error`: this broker coordinates the group no more."""
    for member in group.members.values():
        group.answer_join(step, member, JoinAnswer(error, member.member_id))
        group.answer_sync(step, member, SyncAnswer(error))
    group.go(State.DEAD, step.now_ms)
