"""Steps of a rebalance: it begins, everybody joins, a generation begins, shares are given out.

Also the two timers of a group: the end of the join phase, and the end of the patience with members
that joined and never ask for their share (KAFKA-9752).

Source: Kafka 4.4, GroupMetadataManager: prepareRebalance, completeClassicGroupJoin,
expirePendingSync.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.groups.classic.group import State
from minibroker.broker.groups.classic.group_value import value_of
from minibroker.broker.groups.member_requests import JoinAnswer, SyncAnswer
from minibroker.broker.groups.steps import TimerKind
from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.groups.classic.events import Step
    from minibroker.broker.groups.classic.group import ClassicGroup
    from minibroker.broker.groups.classic.member import Member

logger = logging.getLogger(__name__)


def rebalance_or_complete_join(group: ClassicGroup, step: Step, reason: str) -> None:
    """Begin a rebalance, or go on with the one under way: something about the members changed."""
    if group.can_rebalance:
        prepare_rebalance(group, step, reason)
    else:
        complete_join_if_all_are_here(group, step)


def prepare_rebalance(group: ClassicGroup, step: Step, reason: str) -> None:
    """Have everybody join again; the first join of an empty group may be delayed for others."""
    if group.state is State.COMPLETING_REBALANCE:
        withdraw_assignment(group, step, ErrorCode.REBALANCE_IN_PROGRESS)
    forget_pending_sync(group, step)
    logger.info("rebalancing %s: %s", group, reason)
    is_initial = group.state is State.EMPTY
    group.go(State.PREPARING_REBALANCE, step.now_ms)
    if is_initial:
        delay_ms = step.settings.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.is_joined_by_new_member = False
        step.start_timer(TimerKind.JOIN, delay_ms)
        return
    group.initial_remaining_ms = -1
    if group.have_all_joined:
        complete_join(group, step)
    else:
        step.start_timer(TimerKind.JOIN, group.rebalance_timeout_ms)


def complete_join_if_all_are_here(group: ClassicGroup, step: Step) -> None:
    """End the join phase early; an initial rebalance waits for its delay all the same."""
    if (
        group.state is State.PREPARING_REBALANCE
        and group.previous_state is not State.EMPTY
        and group.have_all_joined
    ):
        complete_join(group, step)


def on_join_timer(group: ClassicGroup, step: Step) -> None:
    """End the join phase, whose time is over. A delayed initial rebalance is delayed once more if
    somebody joined meanwhile, as long as the rebalance time-out allows.
    """
    if group.state is not State.PREPARING_REBALANCE:
        return
    remaining_ms = group.initial_remaining_ms
    if remaining_ms > 0 and group.is_joined_by_new_member:
        group.is_joined_by_new_member = False
        delay_ms = min(step.settings.initial_rebalance_delay_ms, remaining_ms)
        group.initial_remaining_ms = max(remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        step.start_timer(TimerKind.JOIN, delay_ms)
    else:
        complete_join(group, step)


def complete_join(group: ClassicGroup, step: Step) -> None:
    """End the join phase: who did not join is out (static members stay), the next generation
    begins and every member is told of it. A group without members is stored as empty."""
    step.stop_timer(TimerKind.JOIN)
    absent = [
        member
        for member in group.members.values()
        if member.join_waiter is None and member.instance_id is None
    ]
    for member in absent:
        group.remove(member.member_id)
        step.stop_timer(TimerKind.SESSION, member.member_id)
    if absent:
        logger.info("%s: removed members that did not join in time: %s", group, absent)
    if not group.elect_joined_leader() and group.members:
        # Static members only, and none is back: wait until their sessions end.
        logger.warning("%s: no member joined, waiting on", group)
        step.start_timer(TimerKind.JOIN, group.rebalance_timeout_ms)
        return
    group.begin_generation(step.now_ms)
    if group.state is State.EMPTY:
        logger.info("%s has no members left", group)
        step.store(value_of(group, {}), lambda _step, error: _warn_not_stored(group, error))
        return
    logger.info("%s: everybody has joined, protocol %s", group, group.protocol_name)
    for member in group.members.values():
        group.answer_join(step, member, generation_answer(group, member))
        start_session(step, member)
        member.is_new = False
        group.pending_sync[member.member_id] = None
    step.start_timer(TimerKind.SYNC, group.rebalance_timeout_ms)


def _warn_not_stored(group: ClassicGroup, error: ErrorCode | None) -> None:
    """Warn that the generation before may come back after a crash; the sessions of its members end
    then.
    """
    if error is not None:
        logger.warning("%s: its end was not stored (%s)", group, error.name)


def generation_answer(group: ClassicGroup, member: Member) -> JoinAnswer:
    """Return the generation as it is; the leader also hears who is in it."""
    return JoinAnswer(
        ErrorCode.NONE,
        member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id,
        members=group.everybody() if group.leader_id == member.member_id else (),
    )


def start_session(step: Step, member: Member) -> None:
    """Start the session time-out anew, at a sign of life."""
    step.start_timer(TimerKind.SESSION, member.session_timeout_ms, member.member_id)


# Shares.


def give_assignment(group: ClassicGroup, step: Step, assignments: Mapping[str, bytes]) -> None:
    """Give each member that waits its share: the assignment is stored, and the group is stable."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    _answer_syncs(group, step, ErrorCode.NONE)
    group.go(State.STABLE, step.now_ms)


def withdraw_assignment(group: ClassicGroup, step: Step, error: ErrorCode) -> None:
    """Tell those that wait for the assignment of this generation that there will be none."""
    for member in group.members.values():
        member.assignment = b""
    _answer_syncs(group, step, error)


def _answer_syncs(group: ClassicGroup, step: Step, error: ErrorCode) -> None:
    is_good = error is ErrorCode.NONE
    for member in group.members.values():
        answer = SyncAnswer(
            error,
            group.protocol_type if is_good else None,
            group.protocol_name if is_good else None,
            member.assignment,
        )
        if group.answer_sync(step, member, answer):
            # Its session did not count while it waited.
            start_session(step, member)


def forget_pending_sync(group: ClassicGroup, step: Step) -> None:
    """Wait for nobody's share of this generation any more."""
    group.pending_sync.clear()
    step.stop_timer(TimerKind.SYNC)


def on_sync_timer(group: ClassicGroup, step: Step) -> None:
    """Members that joined this generation and never asked for their share are out."""
    if group.state not in {State.COMPLETING_REBALANCE, State.STABLE} or not group.pending_sync:
        return
    silent = list(group.pending_sync)
    for member_id in silent:
        group.remove(member_id)
        step.stop_timer(TimerKind.SESSION, member_id)
    prepare_rebalance(group, step, f"members {silent} joined and sent no SyncGroup in time")
