"""Carries out what the steps of classic groups ask for: stands between the handlers and the steps.

A handler brings a request and a waiter (a function that takes the answer, now or later). The step
that it makes leaves effects: answers are given, records appended, timers started. A record is in
the file before its step goes on (`done`), so nobody hears of what a crash would take back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.groups.classic.events import (
    UNKNOWN_MEMBER_ID,
    AnswerJoin,
    JoinAnswer,
    Settings,
    StartTimer,
    Step,
    StopTimer,
    Store,
    SyncAnswer,
    TimerKind,
)
from minibroker.groups.classic.group import ClassicGroup, State
from minibroker.groups.classic.joining import on_join
from minibroker.groups.classic.rebalance import (
    on_join_timer,
    on_sync_timer,
    prepare_rebalance,
    start_session,
)
from minibroker.groups.classic.sessions import (
    on_heartbeat,
    on_leave,
    on_loaded,
    on_session_timer,
    on_unloaded,
)
from minibroker.groups.classic.stored import VERSION_WITH_INSTANCE_IDS, value_of
from minibroker.groups.classic.syncing import on_sync
from minibroker.groups.deadlines import Deadlines
from minibroker.groups.records import GROUP_METADATA
from minibroker.protocol.stored.group_metadata import GroupMetadataKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.clock import Clock
    from minibroker.config.broker import BrokerConfig
    from minibroker.groups.classic.events import (
        Effect,
        Join,
        JoinWaiter,
        Sync,
        SyncWaiter,
    )
    from minibroker.groups.classic.sessions import Leaving
    from minibroker.groups.group import Group, GroupRecord
    from minibroker.groups.shard import GroupShard
    from minibroker.protocol.stored.group_metadata import GroupMetadataValue
    from minibroker.timers import Timers

logger = logging.getLogger(__name__)


def settings_of(config: BrokerConfig) -> Settings:
    """The keys of `config` that classic groups go by."""
    return Settings(
        config.integer("group.initial.rebalance.delay.ms"),
        config.integer("group.max.size"),
        config.integer("group.min.session.timeout.ms"),
        config.integer("group.max.session.timeout.ms"),
    )


CLIENT_ID_CHARACTERS_MAX: Final = 8_000
"""Longest client id within a member id; each character takes up to four bytes."""


def new_member_id(client_id: str) -> str:
    """Return an id for a new member: its client (or instance) id and a random part, as in Kafka.

    A client id may have 32,767 bytes and a member id may have no more: a long one is cut. Kafka
    cannot answer such a member, nor describe its group afterwards.
    """
    return f"{client_id[:CLIENT_ID_CHARACTERS_MAX]}-{uuid4()}"


class ClassicMembership:
    """All classic groups that are coordinated here; belongs to the loop's thread."""

    __slots__ = (
        "_clock",
        "_deadlines",
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
        settings: Settings,
        value_version: int = VERSION_WITH_INSTANCE_IDS,
        new_member_id: Callable[[str], str] = new_member_id,
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._settings = settings
        self._value_version = value_version
        self._new_member_id = new_member_id
        self._deadlines: dict[int, Deadlines] = {}
        """By the index of the shard; a key is (group id, kind, member id)."""

    def check_instance_id(self, instance_id: str | None) -> None:
        """Raises KafkaError UNSUPPORTED_VERSION for static members that could not be stored.

        Brokers before Kafka 2.3 would take them for dynamic ones (inter.broker.protocol.version).
        """
        if instance_id is not None and self._value_version < VERSION_WITH_INSTANCE_IDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    # Requests. A group of another kind that has members is not for here: the handler looks.

    def join(self, shard: GroupShard, group_id: str, join: Join, waiter: JoinWaiter) -> None:
        """JoinGroup; `waiter` is called once, perhaps before this returns."""
        settings = self._settings
        group = shard.groups.get(group_id)
        if not (
            settings.min_session_timeout_ms
            <= join.session_timeout_ms
            <= settings.max_session_timeout_ms
        ):
            waiter(JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, join.member_id))
            return
        if not isinstance(group, ClassicGroup):
            if group is None and join.member_id != UNKNOWN_MEMBER_ID:
                waiter(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, join.member_id))
                return
            try:
                group = self._create(shard, group_id, group)
            except KafkaError as error:
                logger.warning("cannot create group %s: %s", group_id, error)
                waiter(JoinAnswer(error.code, UNKNOWN_MEMBER_ID))
                return
        step = self._step()
        on_join(group, step, join, waiter)
        self._carry_out(shard, group, step)

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
        self, shard: GroupShard, group_id: str, leaving: Sequence[Leaving]
    ) -> list[ErrorCode]:
        """LeaveGroup; one code per entry. Raises KafkaError COORDINATOR_NOT_AVAILABLE."""
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        step = self._step()
        codes = on_leave(group, step, leaving)
        self._carry_out(shard, group, step)
        return codes

    # What others do to a group.

    def keep_alive(self, shard: GroupShard, group: ClassicGroup, member_id: str) -> None:
        """The member committed offsets: that is a sign of life as well."""
        member = group.members.get(member_id)
        if member is not None and group.state in {State.STABLE, State.PREPARING_REBALANCE}:
            step = self._step()
            start_session(step, member)
            self._carry_out(shard, group, step)

    def adopt(self, shard: GroupShard, group: ClassicGroup, reason: str | None = None) -> None:
        """A group that was made of another kind: its sessions begin, and with a reason a
        rebalance. It is in `groups` already, and stored."""
        step = self._step()
        for member in group.members.values():
            start_session(step, member)
        if reason is not None:
            prepare_rebalance(group, step, reason)
        self._carry_out(shard, group, step)

    def release(self, shard: GroupShard, group: ClassicGroup, error: ErrorCode) -> None:
        """The group becomes another kind, or is deleted: no timers, and who waits is told."""
        step = self._step()
        on_unloaded(group, step, error)
        self._carry_out(shard, group, step)
        for member_id in (*group.members, *group.pending_join):
            self._stop(shard, group.group_id, TimerKind.SESSION, member_id)
        self._stop(shard, group.group_id, TimerKind.JOIN, "")
        self._stop(shard, group.group_id, TimerKind.SYNC, "")

    # The shards (`coordinator.ShardFollower`).

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """All groups of the partition are as they were: the members' sessions begin."""
        for group in list(shard.groups.values()):
            if isinstance(group, ClassicGroup) and group.members:
                step = self._step()
                on_loaded(group, step)
                self._carry_out(shard, group, step)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """The partition is led elsewhere, or the broker stops: everybody who waits is told."""
        for group in list(shard.groups.values()):
            if isinstance(group, ClassicGroup):
                step = self._step()
                on_unloaded(group, step, ErrorCode.NOT_COORDINATOR)
                self._carry_out(shard, group, step)
        deadlines = self._deadlines.pop(shard.index, None)
        if deadlines is not None:
            deadlines.clear()

    def _create(self, shard: GroupShard, group_id: str, replaced: Group | None) -> ClassicGroup:
        """A new group, stored as empty; in the place of an empty one of another kind.

        Raises KafkaError as `append` does; then there is no such group.
        """
        group = ClassicGroup(group_id, self._clock.now_ms())
        records = [] if replaced is None else replaced.tombstones()
        records.append(self._record(group_id, value_of(group, {})))
        shard.append(records)
        shard.groups[group_id] = group
        return group

    def _record(self, group_id: str, value: GroupMetadataValue) -> GroupRecord:
        key = GroupMetadataKey(group=group_id).to_bytes(GROUP_METADATA)
        return key, value.to_bytes(self._value_version)

    # Steps and effects.

    def _step(self) -> Step:
        return Step(self._clock.now_ms(), self._settings, self._new_member_id)

    def _carry_out(self, shard: GroupShard, group: ClassicGroup, step: Step) -> None:
        """Do what the step asks for, in its order."""
        for effect in step.effects:
            self._do(shard, group, effect)

    def _do(self, shard: GroupShard, group: ClassicGroup, effect: Effect) -> None:
        if isinstance(effect, StartTimer):
            self._start(shard, group.group_id, effect)
        elif isinstance(effect, StopTimer):
            self._stop(shard, group.group_id, effect.kind, effect.member_id)
        elif isinstance(effect, AnswerJoin):
            effect.waiter(effect.answer)
        elif isinstance(effect, Store):
            self._store(shard, group, effect)
        else:
            effect.waiter(effect.answer)

    def _store(self, shard: GroupShard, group: ClassicGroup, effect: Store) -> None:
        error: ErrorCode | None = None
        try:
            shard.append([self._record(group.group_id, effect.value)])
        except KafkaError as refused:
            logger.warning("%s: its state was not stored: %s", group, refused)
            error = refused.code
        step = self._step()
        effect.done(step, error)
        self._carry_out(shard, group, step)

    # Timers.

    def _start(self, shard: GroupShard, group_id: str, timer: StartTimer) -> None:
        deadlines = self._deadlines.get(shard.index)
        if deadlines is None:
            deadlines = self._deadlines[shard.index] = Deadlines(self._clock, self._timers)
        kind, member_id, delay_ms = timer
        deadlines.set(
            (group_id, kind, member_id),
            delay_ms,
            lambda: self._fire(shard, group_id, kind, member_id),
        )

    def _stop(self, shard: GroupShard, group_id: str, kind: TimerKind, member_id: str) -> None:
        deadlines = self._deadlines.get(shard.index)
        if deadlines is not None:
            deadlines.cancel((group_id, kind, member_id))

    def _fire(self, shard: GroupShard, group_id: str, kind: TimerKind, member_id: str) -> None:
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return
        step = self._step()
        if kind is TimerKind.SESSION:
            on_session_timer(group, step, member_id)
        elif kind is TimerKind.JOIN:
            on_join_timer(group, step)
        else:
            on_sync_timer(group, step)
        self._carry_out(shard, group, step)
