"""Steps of JoinGroup: who may join, who has to come again with an id, what a join changes.

Source: Kafka 4.4, GroupMetadataManager.classicGroupJoinToClassicGroup and what it calls.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.groups.classic.events import NEW_MEMBER_JOIN_TIMEOUT_MS
from minibroker.broker.groups.classic.group import State
from minibroker.broker.groups.classic.group_value import value_of
from minibroker.broker.groups.classic.member import Member
from minibroker.broker.groups.classic.rebalance import (
    complete_join_if_all_are_here,
    generation_answer,
    prepare_rebalance,
    rebalance_or_complete_join,
    start_session,
)
from minibroker.broker.groups.member_requests import UNKNOWN_MEMBER_ID, JoinAnswer
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from minibroker.broker.groups.classic.events import Step
    from minibroker.broker.groups.classic.group import ClassicGroup
    from minibroker.broker.groups.member_requests import Join, JoinWaiter

logger = logging.getLogger(__name__)


def on_join(group: ClassicGroup, step: Step, join: Join, waiter: JoinWaiter) -> None:
    """Handle a JoinGroup request that came to the right coordinator with a session time-out in
    bounds.
    """
    error = _refusal(group, step, join)
    if error is not ErrorCode.NONE:
        is_member_told = error is not ErrorCode.GROUP_MAX_SIZE_REACHED
        step.answer_join(
            waiter, JoinAnswer(error, join.member_id if is_member_told else UNKNOWN_MEMBER_ID)
        )
    elif join.member_id == UNKNOWN_MEMBER_ID:
        _join_new(group, step, join, waiter)
    elif join.member_id in group.pending_join:
        if join.instance_id is not None:
            # An id is given out to dynamic members only; Kafka fails inside.
            step.answer_join(waiter, JoinAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER_ID))
            return
        _add_member(group, step, join, join.member_id, waiter)
    else:
        try:
            group.validate_member(join.member_id, join.instance_id)
        except KafkaError as error_found:
            logger.info("join refused: %s", error_found)
            step.answer_join(waiter, JoinAnswer(error_found.code, join.member_id))
        else:
            _rejoin(group, step, join, group.members[join.member_id], waiter)


def _refusal(group: ClassicGroup, step: Step, join: Join) -> ErrorCode:
    """Return the error for a join that any member would get, or NONE.

    If the group is full, also remove the joining member.
    """
    if not _has_room(group, step, join.member_id):
        group.remove(join.member_id)
        step.stop_timer(TimerKind.SESSION, join.member_id)
        complete_join_if_all_are_here(group, step)
        logger.warning(
            "%s has as many members as group.max.size=%d allows: client %r at %s may not join",
            group,
            step.settings.max_size,
            join.client_id,
            join.client_host,
        )
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if group.state is State.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group.supports(join.protocol_type, join.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _has_room(group: ClassicGroup, step: Step, member_id: str) -> bool:
    """Return whether the group has room for this member.

    During a rebalance only members that joined again count, so that a smaller `group.max.size`
    refuses those that come last. At other times every member counts, and only a new member can
    be refused.
    """
    max_size = step.settings.max_size
    member = group.members.get(member_id)
    if group.state is State.PREPARING_REBALANCE:
        is_waiting = member is not None and member.join_waiter is not None
        return is_waiting or group.awaiting_join_count < max_size
    if group.state in {State.COMPLETING_REBALANCE, State.STABLE}:
        return member is not None or len(group.members) < max_size
    return True


def _join_new(group: ClassicGroup, step: Step, join: Join, waiter: JoinWaiter) -> None:
    """Join a member that has no member id: a static member that came back, or a new one."""
    member_id = step.new_member_id(join.client_id if join.instance_id is None else join.instance_id)
    if join.instance_id is not None:
        if join.instance_id in group.static_members:
            _replace_static(group, step, join, member_id, waiter)
        else:
            _add_member(group, step, join, member_id, waiter)
    elif join.is_member_id_required:
        group.pending_join[member_id] = None
        step.start_timer(TimerKind.SESSION, join.session_timeout_ms, member_id)
        step.answer_join(waiter, JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add_member(group, step, join, member_id, waiter)


def _add_member(
    group: ClassicGroup, step: Step, join: Join, member_id: str, waiter: JoinWaiter
) -> None:
    member = Member(
        member_id,
        instance_id=join.instance_id,
        client_id=join.client_id,
        client_host=join.client_host,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        session_timeout_ms=join.session_timeout_ms,
        protocols=join.protocols,
    )
    member.is_new = True
    if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
        group.is_joined_by_new_member = True
    group.add(member, join.protocol_type, waiter)
    # It may go away unseen (its connection is not read while it waits) and come again as somebody
    # else: without an end, such ghosts would hold up every rebalance.
    step.start_timer(TimerKind.SESSION, NEW_MEMBER_JOIN_TIMEOUT_MS, member_id)
    rebalance_or_complete_join(group, step, f"{member} is new{_because(join)}")


def _rejoin(
    group: ClassicGroup, step: Step, join: Join, member: Member, waiter: JoinWaiter
) -> None:
    """Join a member again. It is a rebalance, unless nothing changed and it only missed its
    answer.
    """
    is_unchanged = member.protocols == join.protocols
    missed_its_answer = is_unchanged and (
        group.state is State.COMPLETING_REBALANCE
        or (group.state is State.STABLE and group.leader_id != member.member_id)
    )
    if group.state is State.EMPTY:
        step.answer_join(waiter, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, join.member_id))
    elif missed_its_answer:
        step.answer_join(waiter, generation_answer(group, member))
    else:
        # A leader joins again when what it assigns has changed: the topics, say.
        _update(group, step, join, member, waiter)
        rebalance_or_complete_join(
            group,
            step,
            f"{member} joins again"
            + ("" if is_unchanged else " with other protocols")
            + _because(join),
        )


def _update(
    group: ClassicGroup, step: Step, join: Join, member: Member, waiter: JoinWaiter
) -> None:
    group.update(
        step,
        member,
        join.protocols,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        session_timeout_ms=join.session_timeout_ms,
        waiter=waiter,
    )


def _replace_static(
    group: ClassicGroup, step: Step, join: Join, member_id: str, waiter: JoinWaiter
) -> None:
    """Give a static member that is back its new id. In a stable group that would choose the same
    protocol nothing has to be assigned anew: the new id is stored, then it is told.
    """
    assert join.instance_id is not None
    old_member_id = group.static_members[join.instance_id]
    old_leader_id = group.leader_id
    member = group.replace_static(step, join.instance_id, member_id)
    step.stop_timer(TimerKind.SESSION, old_member_id)
    start_session(step, member)
    old_facts = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    _update(group, step, join, member, waiter)
    logger.info("%s: %s replaces %s", group, member, old_member_id)
    if group.state is State.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id at this moment.
        prepare_rebalance(group, step, f"{member} replaces {old_member_id}{_because(join)}")
    elif group.state is not State.STABLE:
        complete_join_if_all_are_here(group, step)
    elif group.select_protocol() != group.protocol_name:
        rebalance_or_complete_join(
            group, step, f"{member} is back and changes the protocol{_because(join)}"
        )
    else:

        def on_stored(next_step: Step, error: ErrorCode | None) -> None:
            """Answer the member; give its id back to the old one if the group was not stored. A
            member that has its answer keeps its id: it is gone, was replaced again, or joined the
            next generation under the new one.
            """
            if member.join_waiter is not waiter:
                return
            if error is None:
                answer = _replaced_answer(group, member, join, old_leader_id)
            else:
                answer = _put_back(group, next_step, member, old_member_id, old_facts)._replace(
                    error=error, leader_id=old_leader_id
                )
            group.answer_join(next_step, member, answer)

        shares = {member.member_id: member.assignment for member in group.members.values()}
        step.store(value_of(group, shares), on_stored)


def _replaced_answer(
    group: ClassicGroup, member: Member, join: Join, old_leader_id: str | None
) -> JoinAnswer:
    """Before v9 a leader that came back must not assign: it hears the old leader's id, which is
    nobody's. From v9 on it is told that it leads and need not assign."""
    answer = generation_answer(group, member)
    if join.may_skip_assignment:
        return answer._replace(skip_assignment=group.leader_id == member.member_id)
    return answer._replace(leader_id=old_leader_id, members=())


def _put_back(
    group: ClassicGroup,
    step: Step,
    member: Member,
    old_member_id: str,
    old_facts: tuple[tuple[tuple[str, bytes], ...], int, int],
) -> JoinAnswer:
    """Give the member its old id again, as the new one was not stored; return the answer to its
    join.
    """
    assert member.instance_id is not None
    waiter, member.join_waiter = member.join_waiter, None
    group.awaiting_join_count -= waiter is not None
    new_member_id = member.member_id
    protocols, rebalance_timeout_ms, session_timeout_ms = old_facts
    group.update(
        step,
        member,
        protocols,
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        waiter=None,
    )
    group.replace_static(step, member.instance_id, old_member_id)
    step.stop_timer(TimerKind.SESSION, new_member_id)
    start_session(step, member)
    member.join_waiter = waiter
    group.awaiting_join_count += waiter is not None
    answer = generation_answer(group, member)
    return answer._replace(member_id=UNKNOWN_MEMBER_ID, members=())


def _because(join: Join) -> str:
    return f"; client reason: {join.reason!r}" if join.reason else ""
