"""Carries out the steps of classic groups: stands between the handlers and the steps.

A handler brings a request and a waiter (a function that takes the answer, now or later). A step
changes the group and lists timers, answers and records. Timers are set and answers given at once.
A step that depends on a record (`done`) follows when the record is visible, so no member hears of a
change that a crash takes back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from minibroker.broker.groups.classic.events import Step
from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.groups.classic.group_value import (
    VERSION_WITH_INSTANCE_IDS,
    value_of,
    value_version_for,
)
from minibroker.broker.groups.classic.joins import on_join
from minibroker.broker.groups.classic.rebalance import (
    on_join_timer,
    on_sync_timer,
    rebalance_or_complete_join,
    start_session,
)
from minibroker.broker.groups.classic.sessions import (
    on_heartbeat,
    on_leave,
    on_loaded,
    on_session_timer,
    on_unloaded,
)
from minibroker.broker.groups.classic.syncing import on_sync
from minibroker.broker.groups.group import CLASSIC
from minibroker.broker.groups.kinds import GROUP_METADATA
from minibroker.broker.groups.member_requests import UNKNOWN_MEMBER_ID, JoinAnswer, SyncAnswer
from minibroker.broker.groups.steps import GroupTimers, TimerKind, classic_settings_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.groups.classic.events import Store
    from minibroker.broker.groups.group import Group, GroupRecord
    from minibroker.broker.groups.member_requests import (
        Departure,
        Join,
        JoinWaiter,
        LeaveWaiter,
        Sync,
        SyncWaiter,
    )
    from minibroker.broker.groups.members import Surroundings
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.groups.steps import ClassicSettings, StartTimer
    from minibroker.broker.timers import Timers
    from minibroker.clock import Clock
    from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataValue

logger = logging.getLogger(__name__)


CLIENT_ID_CHARACTERS_MAX: Final = 8_000
"""Longest client id within a member id; each character takes up to four bytes."""


def new_member_id(client_id: str) -> str:
    """Return an id for a new member: its client (or instance) id and a random part, as in Kafka.

    A client id may have 32,767 bytes and a member id may have no more: a long one is cut. Kafka
    cannot answer such a member, nor describe its group afterwards.
    """
    return f"{client_id[:CLIENT_ID_CHARACTERS_MAX]}-{uuid4()}"


def _do_nothing() -> None:
    """Do nothing: the state has changed already."""


class ClassicMembership:
    """All classic groups that are coordinated here; belongs to the loop's thread."""

    __slots__ = (
        "_clock",
        "_new_member_id",
        "_settings",
        "_timers",
        "_value_version",
    )

    def __init__(
        self,
        *,
        clock: Clock,
        timers: Timers,
        settings: ClassicSettings,
        value_version: int = VERSION_WITH_INSTANCE_IDS,
        new_member_id: Callable[[str], str] = new_member_id,
    ) -> None:
        self._clock = clock
        self._timers = GroupTimers(clock, timers)
        self._settings = settings
        self._value_version = value_version
        self._new_member_id = new_member_id

    def check_instance_id(self, instance_id: str | None) -> None:
        """Raises KafkaError UNSUPPORTED_VERSION for static members that could not be stored.

        Brokers before Kafka 2.3 would take them for dynamic ones (inter.broker.protocol.version).
        """
        if instance_id is not None and self._value_version < VERSION_WITH_INSTANCE_IDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    # Requests. A group of another kind that has members is not for here: the handler looks.

    def join(self, shard: GroupShard, group_id: str, join: Join, waiter: JoinWaiter) -> None:
        """JoinGroup; `waiter` is called once, perhaps before this returns."""
        group = shard.groups.get(group_id)
        if not self._settings.allows_session_timeout(join.session_timeout_ms):
            waiter(JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, join.member_id))
        elif isinstance(group, ClassicGroup):
            self._join(shard, group, join, waiter)
        elif group is None and join.member_id != UNKNOWN_MEMBER_ID:
            waiter(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, join.member_id))
        else:
            self._join_new(shard, group_id, group, join, waiter)

    def _join(self, shard: GroupShard, group: ClassicGroup, join: Join, waiter: JoinWaiter) -> None:
        step = self._step()
        on_join(group, step, join, waiter)
        self._carry_out(shard, group, step)

    def _join_new(
        self,
        shard: GroupShard,
        group_id: str,
        replaced_group: Group | None,
        join: Join,
        waiter: JoinWaiter,
    ) -> None:
        """Store an empty group, in the place of an empty one of another kind, then join its first
        member."""

        def refuse(code: ErrorCode) -> None:
            logger.warning("cannot create group %s: %s", group_id, code.name)
            waiter(JoinAnswer(code, UNKNOWN_MEMBER_ID))

        def join_stored() -> None:
            """Join, unless the group is being deleted, or has members of another kind by now."""
            stored_group = shard.groups.get(group_id)
            kind = CLASSIC if stored_group is None else stored_group.serving_kind
            if group_id in shard.deleted_groups or kind != CLASSIC:
                refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # the client comes again
            else:
                self.join(shard, group_id, join, waiter)

        group = ClassicGroup(group_id, self._clock.now_ms())
        records = [] if replaced_group is None else replaced_group.tombstones()
        records.append(self._record(group_id, value_of(group, {})))
        try:
            shard.write(records, then=join_stored, failed=refuse)
        except KafkaError as error:
            refuse(error.code)

    def sync(self, shard: GroupShard, group_id: str, sync: Sync, waiter: SyncWaiter) -> None:
        """SyncGroup; `waiter` is called once, perhaps before this returns."""
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            waiter(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
            return
        step = self._step()
        on_sync(group, step, sync, waiter)
        self._carry_out(shard, group, step)

    def heartbeat(
        self,
        shard: GroupShard,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation_id: int,
    ) -> ErrorCode:
        """Heartbeat."""
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        step = self._step()
        code = on_heartbeat(group, step, member_id, instance_id, generation_id)
        self._carry_out(shard, group, step)
        return code

    def leave(
        self, shard: GroupShard, group_id: str, departures: Sequence[Departure], waiter: LeaveWaiter
    ) -> None:
        """LeaveGroup; `waiter` gets one code per entry when the group's record is visible.

        A group without members left has one. `waiter` gets the error where the record is refused.
        Raises KafkaError COORDINATOR_NOT_AVAILABLE.
        """
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            waiter([ErrorCode.UNKNOWN_MEMBER_ID] * len(departures))
            return
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        step = self._step()
        codes = on_leave(group, step, departures)
        error = self._carry_out(shard, group, step)
        if error is not None:
            waiter(KafkaError(error))
            return
        shard.when_visible(lambda: waiter(codes), lambda code: waiter(KafkaError(code)))

    # Calls of other parts of the broker.

    def keep_alive(self, shard: GroupShard, group: ClassicGroup, member_id: str) -> None:
        """Begin the session of a member anew that committed offsets."""
        member = group.members.get(member_id)
        if member is not None and group.state in {State.STABLE, State.PREPARING_REBALANCE}:
            step = self._step()
            start_session(step, member)
            self._carry_out(shard, group, step)

    def adopt(self, shard: GroupShard, group: ClassicGroup, reason: str | None = None) -> None:
        """Begin the sessions of a group that was of another kind, and a rebalance if there is a
        reason. The group is stored and in `groups` already: somebody may have joined it.
        """
        step = self._step()
        for member in group.members.values():
            start_session(step, member)
        if reason is not None:
            rebalance_or_complete_join(group, step, reason)
        self._carry_out(shard, group, step)

    def release(self, shard: GroupShard, group: ClassicGroup, error: ErrorCode) -> None:
        """Stop the timers of a group that becomes another kind, and answer all waiting members."""
        step = self._step()
        on_unloaded(group, step, error)
        for member_id in (*group.members, *group.pending_join):
            step.stop_timer(TimerKind.SESSION, member_id)
        step.stop_timer(TimerKind.JOIN)
        step.stop_timer(TimerKind.SYNC)
        self._carry_out(shard, group, step)

    # The shards (`coordinator.ShardFollower`).

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """Begin the sessions of all members: the groups of the partition are loaded."""
        for group in list(shard.groups.values()):
            if isinstance(group, ClassicGroup) and group.members:
                step = self._step()
                on_loaded(group, step)
                self._carry_out(shard, group, step)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Answer all waiting members: the partition is led elsewhere, or the broker stops."""
        for group in list(shard.groups.values()):
            if isinstance(group, ClassicGroup):
                step = self._step()
                on_unloaded(group, step, ErrorCode.NOT_COORDINATOR)
                self._carry_out(shard, group, step)
        self._timers.clear(shard.index)

    def _record(self, group_id: str, value: GroupMetadataValue) -> GroupRecord:
        key = GroupMetadataKey(group=group_id).to_bytes(GROUP_METADATA)
        return key, value.to_bytes(self._value_version)

    # Steps and what they ask for.

    def _step(self) -> Step:
        return Step(self._clock.now_ms(), self._settings, self._new_member_id)

    def _carry_out(self, shard: GroupShard, group: ClassicGroup, step: Step) -> ErrorCode | None:
        """Carry out the step. Return the error of a record that was refused at once."""
        if step.timers:
            group_id = group.group_id
            self._timers.set(
                shard.index, group_id, step.timers, lambda timer: self._fire(shard, group_id, timer)
            )
        for waiter, answer in step.answers:
            waiter(answer)
        error = None
        for store in step.stores:
            error = self._store(shard, group, store) or error
        return error

    def _store(self, shard: GroupShard, group: ClassicGroup, store: Store) -> ErrorCode | None:
        def go_on(error: ErrorCode | None) -> None:
            if error is not None:
                logger.warning("%s: its state was not stored: %s", group, error.name)
            step = self._step()
            store.done(step, error)
            self._carry_out(shard, group, step)

        try:
            shard.write(
                [self._record(group.group_id, store.value)],
                apply=_do_nothing,  # the group has changed already, all but what `done` does
                then=lambda: go_on(None),
                failed=go_on,
            )
        except KafkaError as refused:
            go_on(refused.code)
            return refused.code
        return None

    def _fire(self, shard: GroupShard, group_id: str, timer: StartTimer) -> None:
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return
        step = self._step()
        if timer.kind is TimerKind.SESSION:
            on_session_timer(group, step, timer.member_id)
        elif timer.kind is TimerKind.JOIN:
            on_join_timer(group, step)
        else:
            on_sync_timer(group, step)
        self._carry_out(shard, group, step)


def make_members(surroundings: Surroundings) -> ClassicMembership:
    """Make the manager of the members of classic groups."""
    config = surroundings.config
    return ClassicMembership(
        clock=surroundings.clock,
        timers=surroundings.timers,
        settings=classic_settings_of(config),
        value_version=value_version_for(str(config.get("inter.broker.protocol.version"))),
    )
