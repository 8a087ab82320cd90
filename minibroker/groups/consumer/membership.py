"""Carries out what the steps of consumer groups ask for: stands between the handlers and the steps.

    request ─► step ─► records appended ─► replayed ─► timers set ─► answer

Records are in the file before anything of them counts; where the log refuses, the group is as it
was. The look-up of patterns is done on the worker and comes back as a step.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from minibroker.cluster.paths import sanitize
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, MinibrokerError
from minibroker.groups.classic.events import JoinAnswer, SyncAnswer
from minibroker.groups.consumer.classic_members import (
    on_classic_heartbeat,
    on_classic_leave,
    on_join,
    on_sync,
)
from minibroker.groups.consumer.group import ConsumerGroup
from minibroker.groups.consumer.heartbeat import HeartbeatAnswer, check, on_heartbeat
from minibroker.groups.consumer.leaving import fence, on_leave
from minibroker.groups.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, MemberState
from minibroker.groups.consumer.migration import group_for
from minibroker.groups.consumer.regexes import match_topics, on_resolved
from minibroker.groups.consumer.step import BIDIRECTIONAL, Settings, StartTimer, Step, TimerKind
from minibroker.groups.consumer.topics import Topics
from minibroker.groups.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.clock import Clock
    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.image import TopicImage
    from minibroker.config.broker import BrokerConfig
    from minibroker.groups.classic.events import Join, JoinWaiter, Sync, SyncWaiter
    from minibroker.groups.classic.membership import ClassicMembership
    from minibroker.groups.classic.sessions import Leaving
    from minibroker.groups.consumer.heartbeat import Heartbeat
    from minibroker.groups.shard import GroupShard
    from minibroker.timers import Timers

    RunThen = Callable[
        [Callable[[], None], Callable[[MinibrokerError | OSError | None], None]], None
    ]
    """(what may take long, called on the loop with what went wrong)."""

logger = logging.getLogger(__name__)

RETRY_MS: Final = 500
"""When the log refuses what a time-out brings, it is tried again after this; as Kafka's timers."""


def settings_of(config: BrokerConfig, group_config: dict[str, str]) -> Settings:
    """The keys that one group goes by; `group_config` are its own (resource type GROUP)."""

    def limited(name: str) -> int:
        own = group_config.get(f"consumer.{name}")
        if own is None:
            return config.integer(f"group.consumer.{name}")
        low = config.integer(f"group.consumer.min.{name}")
        return max(low, min(int(own), config.integer(f"group.consumer.max.{name}")))

    return Settings(
        session_timeout_ms=limited("session.timeout.ms"),
        heartbeat_interval_ms=limited("heartbeat.interval.ms"),
        assignment_interval_ms=limited("assignment.interval.ms"),
        max_size=config.integer("group.consumer.max.size"),
        assignors=assignors_of(config),
        migration_policy=_migration_policy(config),
        regex_refresh_interval_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
        classic_max_size=config.integer("group.max.size"),
    )


def _migration_policy(config: BrokerConfig) -> str:
    """Kafka 4 migrates unless told otherwise; 3.9, whose table of keys this is, did not."""
    key = "group.consumer.migration.policy"
    return (config.text(key) or "").lower() if key in config.originals else BIDIRECTIONAL


def assignors_of(config: BrokerConfig) -> tuple[str, ...]:
    """Names of the assignors, the default one first; Kafka's class names stand for them too."""
    return tuple(
        name.rpartition(".")[2].lower().removesuffix("assignor")
        for name in config.words("group.consumer.assignors")
    )


def new_member_id() -> str:
    """An id that nobody has, as Kafka's Uuid shows itself: 22 characters, the first no dash."""
    while True:
        text = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


class ConsumerMembership:
    """All consumer groups that are coordinated here; belongs to the loop's thread."""

    __slots__ = (
        "_classic",
        "_clock",
        "_cluster",
        "_config",
        "_deadlines",
        "_new_member_id",
        "_own_settings",
        "_run_then",
        "_settings",
        "_timers",
        "topics",
    )

    def __init__(
        self,
        *,
        clock: Clock,
        timers: Timers,
        config: BrokerConfig,
        cluster: Cluster,
        classic: ClassicMembership,
        run_then: RunThen,
        new_member_id: Callable[[], str] = new_member_id,
    ) -> None:
        """The caller subscribes this to `cluster`."""
        self._clock = clock
        self._timers = timers
        self._config = config
        self._settings = settings_of(config, {})
        self._own_settings: dict[str, tuple[dict[str, str], Settings]] = {}
        """Group, by its name in the tree → its own keys when they were read, and what they give."""
        self._cluster = cluster
        self.topics = Topics(lambda: cluster.image, clock.now_ms)
        self._classic = classic
        self._run_then = run_then
        self._new_member_id = new_member_id
        self._deadlines: dict[int, Deadlines] = {}
        """By the index of the shard; a key is (group id, kind, member id)."""

    # The consumer protocol.

    def check(self, request: Heartbeat) -> None:
        """Before the group is looked for. Raises KafkaError: see `heartbeat.check`."""
        check(request, self._settings.assignors)

    def beat(self, shard: GroupShard, request: Heartbeat) -> HeartbeatAnswer:
        """ConsumerGroupHeartbeat, checked. Raises KafkaError: GROUP_ID_NOT_FOUND, those of
        `heartbeat.on_heartbeat` and `leaving.on_leave`, and those of `shard.append`."""
        group_id = request.group_id
        step = self._step(group_id)
        there = shard.groups.get(group_id)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            if there is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            group = group_for(group_id, there, step, is_joining=False)
            answer = on_leave(group, step, request)
        else:
            group = group_for(group_id, there, step, is_joining=request.member_epoch == 0)
            answer = on_heartbeat(group, step, request)
        self._carry_out(shard, group_id, step)
        return answer

    # The classic protocol, in a consumer group that has members; as `ClassicMembership`.

    def join(self, shard: GroupShard, group_id: str, join: Join, waiter: JoinWaiter) -> None:
        """JoinGroup; `waiter` is called before this returns."""
        config = self._config
        if not (
            config.integer("group.min.session.timeout.ms")
            <= join.session_timeout_ms
            <= config.integer("group.max.session.timeout.ms")
        ):
            waiter(JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, join.member_id))
            return
        group = _consumer_group(shard, group_id)
        step = self._step(group_id)
        try:
            answer = on_join(group, step, join)
            self._carry_out(shard, group_id, step)
        except KafkaError as error:
            logger.info("%s: join of %r refused: %s", group, join.member_id, error)
            answer = JoinAnswer(error.code, "")
        waiter(answer)

    def sync(self, shard: GroupShard, group_id: str, sync: Sync, waiter: SyncWaiter) -> None:
        """SyncGroup; `waiter` is called before this returns."""
        group = _consumer_group(shard, group_id)
        step = self._step(group_id)
        try:
            answer = on_sync(group, step, sync)
        except KafkaError as error:
            answer = SyncAnswer(error.code)
        self._set_timers(shard, group_id, step)
        waiter(answer)

    def heartbeat(
        self,
        shard: GroupShard,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation_id: int,
    ) -> ErrorCode:
        """Heartbeat."""
        group = _consumer_group(shard, group_id)
        step = self._step(group_id)
        try:
            code = on_classic_heartbeat(group, step, member_id, instance_id, generation_id)
        except KafkaError as error:
            return error.code
        self._set_timers(shard, group_id, step)
        return code

    def leave(
        self, shard: GroupShard, group_id: str, leaving: Sequence[Leaving]
    ) -> list[ErrorCode]:
        """LeaveGroup; one code per entry. Raises KafkaError as `shard.append`."""
        group = _consumer_group(shard, group_id)
        step = self._step(group_id)
        codes = on_classic_leave(group, step, leaving)
        self._carry_out(shard, group_id, step)
        return codes

    # The shards (`coordinator.ShardFollower`).

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """All groups of the partition are as they were: the members' sessions begin."""
        for group in list(shard.groups.values()):
            if isinstance(group, ConsumerGroup) and group.members:
                step = self._step(group.group_id)
                for member in group.members.values():
                    timeout_ms = step.settings.session_timeout_ms
                    step.start_timer(TimerKind.SESSION, member.member_id, timeout_ms)
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        step.start_timer(
                            TimerKind.REBALANCE,
                            member.member_id,
                            member.rebalance_timeout_ms,
                            member_epoch=member.member_epoch,
                        )
                self._set_timers(shard, group.group_id, step)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """The partition is led elsewhere, or the broker stops."""
        for group in shard.groups.values():
            if isinstance(group, ConsumerGroup):
                group.is_resolving = False
        deadlines = self._deadlines.pop(shard.index, None)
        if deadlines is not None:
            deadlines.clear()

    # The cluster (`ClusterListener`): groups look at their topics again with the next heartbeat.

    def on_topic_created(self, topic: TopicImage) -> None:
        """Somebody may have waited for it, or have a pattern that matches it."""
        self.topics.note_created()

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """Nobody has its partitions any more."""
        self.topics.forget(topic.name)
        self.topics.note_changed()

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """There is more to give out."""
        self.topics.note_changed()

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Do nothing: an assignment does not depend on leaders."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """A group's keys are read with every request."""

    # Steps and what they ask for.

    def _step(self, group_id: str) -> Step:
        settings = self._settings_for(group_id)
        return Step(self._clock.now_ms(), settings, self.topics, self._new_member_id)

    def _settings_for(self, group_id: str) -> Settings:
        name = sanitize(group_id)
        own = self._cluster.config_of("groups", name)
        if not own:
            return self._settings
        known = self._own_settings.get(name)
        if known is None or known[0] != own:
            known = self._own_settings[name] = dict(own), settings_of(self._config, own)
        return known[1]

    def _carry_out(self, shard: GroupShard, group_id: str, step: Step) -> None:
        """Raises KafkaError as `shard.append`; then nothing has happened."""
        if step.downgrade is not None:
            shard.append(step.records)
            classic = step.downgrade.group
            shard.groups[group_id] = classic
            self._set_timers(shard, group_id, step)
            self._classic.adopt(shard, classic, step.downgrade.rebalance_reason)
            return
        if step.records:
            shard.append_and_replay(step.records)
        if step.upgraded is not None:
            self._classic.release(shard, step.upgraded, ErrorCode.REBALANCE_IN_PROGRESS)
        group = shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            if step.checked_topics_version is not None:
                group.checked_topics_version = step.checked_topics_version
            if step.regexes:
                self._look_up(shard, group, step.regexes)
        self._set_timers(shard, group_id, step)

    def _look_up(self, shard: GroupShard, group: ConsumerGroup, regexes: tuple[str, ...]) -> None:
        group.is_resolving = True
        names = self.topics.names()
        version = self.topics.new_topics_version
        matched: dict[str, frozenset[str]] = {}

        def match() -> None:
            matched.update(match_topics(regexes, names))

        def take(failure: MinibrokerError | OSError | None) -> None:
            if not group.is_resolving:
                return  # the shard was unloaded: the journal may be another one's by now
            group.is_resolving = False
            if failure is not None:
                logger.error("%s: cannot look up %s: %s", group, regexes, failure)
            elif shard.groups.get(group.group_id) is group:
                self._take(shard, group, matched, version)

        self._run_then(match, take)

    def _take(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        matched: dict[str, frozenset[str]],
        version: int,
    ) -> None:
        step = self._step(group.group_id)
        on_resolved(group, step, matched, version)
        try:
            self._carry_out(shard, group.group_id, step)
        except KafkaError as error:  # looked up again with the next heartbeat
            logger.warning("%s: what its patterns match was not stored: %s", group, error)

    # Timers.

    def _set_timers(self, shard: GroupShard, group_id: str, step: Step) -> None:
        deadlines = self._deadlines.get(shard.index)
        if deadlines is None:
            deadlines = self._deadlines[shard.index] = Deadlines(self._clock, self._timers)
        for timer in step.timers:
            key = (group_id, timer.kind, timer.member_id)
            if not isinstance(timer, StartTimer):
                deadlines.cancel(key)
            elif not (timer.only_if_absent and key in deadlines):
                self._start(deadlines, shard, key, timer)

    def _start(
        self,
        deadlines: Deadlines,
        shard: GroupShard,
        key: tuple[str, TimerKind, str],
        timer: StartTimer,
    ) -> None:
        deadlines.set(key, timer.delay_ms, lambda: self._fire(shard, key[0], timer))

    def _fire(self, shard: GroupShard, group_id: str, timer: StartTimer) -> None:
        group = shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        member = group.members.get(timer.member_id)
        if member is None or timer.member_epoch not in (None, member.member_epoch):
            return
        logger.info(
            "%s: member %s is out, its %s time-out is over",
            group,
            member.member_id,
            timer.kind.value,
        )
        step = self._step(group_id)
        try:
            fence(group, step, [member])
            self._carry_out(shard, group_id, step)
        except KafkaError as error:
            logger.warning("%s: member %s cannot be removed: %s", group, member.member_id, error)
            step.timers = [timer._replace(delay_ms=RETRY_MS)]
            self._set_timers(shard, group_id, step)


def _consumer_group(shard: GroupShard, group_id: str) -> ConsumerGroup:
    group = shard.groups[group_id]
    assert isinstance(group, ConsumerGroup), f"{group} is not for the consumer membership"
    return group
