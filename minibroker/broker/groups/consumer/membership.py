"""Carries out what the steps of consumer groups ask for: stands between the handlers and the steps.

    request ─► step ─► records written ─► replayed ─► visible ─► timers set ─► answer

Records are in the file before anything of them counts; where the log refuses, the group is as it
was. The look-up of patterns is done on the worker and comes back as a step.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from minibroker.broker.cluster.paths import sanitize
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.groups.consumer.classic_members import (
    on_classic_heartbeat,
    on_classic_leave,
    on_join,
    on_sync,
)
from minibroker.broker.groups.consumer.departures import fence, on_leave
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.heartbeat import HeartbeatAnswer, check, on_heartbeat
from minibroker.broker.groups.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, MemberState
from minibroker.broker.groups.consumer.migration import group_for
from minibroker.broker.groups.consumer.regexes import match_topics, on_resolved, permitted_topics
from minibroker.broker.groups.consumer.step import BIDIRECTIONAL, Settings, Step
from minibroker.broker.groups.consumer.topics import ImageTopics
from minibroker.broker.groups.group import CLASSIC
from minibroker.broker.groups.member_requests import JoinAnswer, SyncAnswer
from minibroker.broker.groups.steps import GroupTimers, TimerKind, classic_settings_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, MinibrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.groups.classic.membership import ClassicMembership
    from minibroker.broker.groups.consumer.heartbeat import Heartbeat
    from minibroker.broker.groups.member_requests import (
        Departure,
        Join,
        JoinWaiter,
        LeaveWaiter,
        MayDescribe,
        Sync,
        SyncWaiter,
    )
    from minibroker.broker.groups.members import Surroundings
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.groups.steps import StartTimer
    from minibroker.broker.timers import Timers
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock

    BeatWaiter = Callable[[HeartbeatAnswer | KafkaError], None]

logger = logging.getLogger(__name__)

RETRY_MS: Final = 500
"""When the log refuses what a time-out brings, it is tried again after this; as Kafka's timers."""


def settings_of(config: BrokerConfig, group_config: dict[str, str]) -> Settings:
    """Return the keys that one group goes by; `group_config` are its own (resource type GROUP)."""

    def bounded_value(name: str) -> int:
        own = group_config.get(f"consumer.{name}")
        if own is None:
            return config.integer(f"group.consumer.{name}")
        low = config.integer(f"group.consumer.min.{name}")
        return max(low, min(int(own), config.integer(f"group.consumer.max.{name}")))

    return Settings(
        session_timeout_ms=bounded_value("session.timeout.ms"),
        heartbeat_interval_ms=bounded_value("heartbeat.interval.ms"),
        assignment_interval_ms=bounded_value("assignment.interval.ms"),
        max_size=config.integer("group.consumer.max.size"),
        assignors=assignors_of(config),
        migration_policy=_migration_policy(config),
        regex_refresh_interval_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
        classic=classic_settings_of(config),
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
    """Return an id that nobody has, as Kafka's Uuid shows itself: 22 characters, the first no
    dash.
    """
    while True:
        text = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _do_nothing() -> None:
    """Do nothing: nobody waits."""


class ConsumerMembership(ClusterListener):
    """All consumer groups that are coordinated here; belongs to the loop's thread."""

    __slots__ = (
        "_classic",
        "_clock",
        "_cluster",
        "_config",
        "_new_member_id",
        "_own_settings",
        "_settings",
        "_timers",
        "_worker",
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
        worker: Runner,
        new_member_id: Callable[[], str] = new_member_id,
    ) -> None:
        """The caller subscribes this to `cluster`."""
        self._clock = clock
        self._timers = GroupTimers(clock, timers)
        self._config = config
        self._settings = settings_of(config, {})
        self._own_settings: dict[str, tuple[dict[str, str], Settings]] = {}
        """Group, by its name in the tree → its own keys when they were read, and what they give."""
        self._cluster = cluster
        self.topics = ImageTopics(lambda: cluster.image, clock.now_ms)
        self._classic = classic
        self._worker = worker
        self._new_member_id = new_member_id

    # The consumer protocol.

    def check(self, request: Heartbeat) -> None:
        """Before the group is looked for. Raises KafkaError: see `heartbeat.check`."""
        check(request, self._settings.assignors)

    def beat(
        self,
        shard: GroupShard,
        request: Heartbeat,
        waiter: BeatWaiter,
        may_describe: MayDescribe | None = None,
    ) -> None:
        """ConsumerGroupHeartbeat, checked; `waiter` is called when what it tells is visible.

        Patterns that are looked up because of it match only topics that its client may describe;
        `may_describe` of None: all of them. Raises KafkaError: GROUP_ID_NOT_FOUND, those of
        `heartbeat.on_heartbeat` and `departures.on_leave`, and those of `shard.write`.
        """
        group_id = request.group_id
        step = self._step(group_id)
        old_group = shard.groups.get(group_id)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            if old_group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            group = group_for(group_id, old_group, step, is_joining=False)
            answer = on_leave(group, step, request)
        else:
            group = group_for(group_id, old_group, step, is_joining=request.member_epoch == 0)
            answer = on_heartbeat(group, step, request)
        self._carry_out(
            shard,
            group_id,
            step,
            then=lambda: waiter(answer),
            failed=lambda code: waiter(KafkaError(code)),
            may_describe=may_describe,
        )

    # The classic protocol, in a consumer group that has members; as `ClassicMembership`.

    def join(self, shard: GroupShard, group_id: str, join: Join, waiter: JoinWaiter) -> None:
        """JoinGroup; `waiter` is called when what it tells is visible."""
        if not self._settings.classic.allows_session_timeout(join.session_timeout_ms):
            waiter(JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, join.member_id))
            return
        group = _consumer_group(shard, group_id)
        step = self._step(group_id)
        try:
            answer = on_join(group, step, join)
            self._carry_out(
                shard,
                group_id,
                step,
                then=lambda: waiter(answer),
                failed=lambda code: waiter(JoinAnswer(code, "")),
                may_describe=join.may_describe,
            )
        except KafkaError as error:
            logger.info("%s: join of %r refused: %s", group, join.member_id, error)
            waiter(JoinAnswer(error.code, ""))

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
        self, shard: GroupShard, group_id: str, departures: Sequence[Departure], waiter: LeaveWaiter
    ) -> None:
        """Let members leave (LeaveGroup); `waiter` gets one code per entry when that is visible.

        Raises KafkaError with the journal's code.
        """
        group = _consumer_group(shard, group_id)
        step = self._step(group_id)
        codes = on_classic_leave(group, step, departures)
        self._carry_out(
            shard,
            group_id,
            step,
            then=lambda: waiter(codes),
            failed=lambda code: waiter(KafkaError(code)),
        )

    # The shards (`coordinator.ShardFollower`).

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """Begin the sessions of all members: the groups of the partition are loaded."""
        for group in list(shard.groups.values()):
            if isinstance(group, ConsumerGroup) and group.members:
                step = self._step(group.group_id)
                for member in group.members.values():
                    timeout_ms = step.settings.session_timeout_ms
                    step.start_timer(TimerKind.SESSION, timeout_ms, member.member_id)
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        step.start_timer(
                            TimerKind.REBALANCE,
                            member.rebalance_timeout_ms,
                            member.member_id,
                            member_epoch=member.member_epoch,
                        )
                self._set_timers(shard, group.group_id, step)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Stop all timers: the partition is led elsewhere, or the broker stops."""
        for group in shard.groups.values():
            if isinstance(group, ConsumerGroup):
                group.is_resolving = False
        self._timers.clear(shard.index)

    # The cluster (`ClusterListener`): groups look at their topics again with the next heartbeat.

    def on_topic_created(self, topic: TopicImage) -> None:
        """Note it: a group may subscribe to it, or have a pattern that matches it."""
        self.topics.note_created()

    def on_topic_deleted(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Forget it: no member has its partitions any more."""
        self.on_topic_missing(topic)

    def on_topic_missing(self, topic: TopicImage) -> None:
        """Forget it, like a deleted one."""
        self.topics.forget(topic.name)
        self.topics.note_changed()

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Note it: groups assign the new partitions with their next heartbeat."""
        self.topics.note_changed()

    # Steps and what they ask for.

    def _step(self, group_id: str) -> Step:
        settings = self._settings_for(group_id)
        return Step(self._clock.now_ms(), settings, self.topics, self._new_member_id)

    def _settings_for(self, group_id: str) -> Settings:
        name = sanitize(group_id)
        own = self._cluster.config_of("groups", name)
        if not own:
            return self._settings
        own_settings = self._own_settings.get(name)
        if own_settings is None or own_settings[0] != own:
            own_settings = self._own_settings[name] = dict(own), settings_of(self._config, own)
        return own_settings[1]

    def _carry_out(
        self,
        shard: GroupShard,
        group_id: str,
        step: Step,
        *,
        then: Callable[[], None] = _do_nothing,
        failed: Callable[[ErrorCode], None] | None = None,
        may_describe: MayDescribe | None = None,
    ) -> None:
        """Do what the step asks for, and `then` what follows when it is visible.

        A step without records may answer with a state that is not visible yet, so it waits, too.
        `failed` may be called because that takes too long; the timers are set all the same when the
        records are visible. Raises KafkaError with the journal's code; then nothing has happened.
        """

        def follow() -> None:
            self._follow(shard, group_id, step, may_describe)

        apply = None
        if step.downgrade is not None:
            classic = step.downgrade.group

            def apply() -> None:
                shard.groups[group_id] = classic

        if step.records:
            shard.write(step.records, apply=apply, then=follow)
        else:
            shard.when_visible(follow)
        replaced_group = step.replaced_group
        if replaced_group is not None:
            # Nobody finds that group any more, and its members wait for an answer.
            shard.when_visible(
                _do_nothing, lambda code: self._classic.release(shard, replaced_group, code)
            )
        shard.when_visible(then, failed)

    def _follow(
        self, shard: GroupShard, group_id: str, step: Step, may_describe: MayDescribe | None
    ) -> None:
        """Do what follows when the records of the step are visible."""
        if step.downgrade is not None:
            self._set_timers(shard, group_id, step)
            self._classic.adopt(shard, step.downgrade.group, step.downgrade.rebalance_reason)
            return
        if step.replaced_group is not None:
            self._classic.release(shard, step.replaced_group, ErrorCode.REBALANCE_IN_PROGRESS)
        group = shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            if step.checked_topics_version is not None:
                group.checked_topics_version = step.checked_topics_version
            if step.regexes:
                self._look_up(shard, group, step.regexes, may_describe)
        self._set_timers(shard, group_id, step)

    def _look_up(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        regexes: tuple[str, ...],
        may_describe: MayDescribe | None,
    ) -> None:
        group.is_resolving = True
        names = self.topics.names()
        version = self.topics.new_topics_version
        topics_by_regex: dict[str, frozenset[str]] = {}

        def match() -> None:
            topics_by_regex.update(match_topics(regexes, names))

        def take(failure: MinibrokerError | OSError | None) -> None:
            if not group.is_resolving:
                return  # the shard was unloaded: the journal may be another one's by now
            group.is_resolving = False
            if failure is not None:
                logger.error("%s: cannot look up %s: %s", group, regexes, failure)
            elif shard.groups.get(group.group_id) is group:
                permitted_by_regex = permitted_topics(topics_by_regex, may_describe)
                self._take(shard, group, permitted_by_regex, version)

        self._worker.run_then(match, take)

    def _take(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        topics_by_regex: dict[str, frozenset[str]],
        version: int,
    ) -> None:
        step = self._step(group.group_id)
        on_resolved(group, step, topics_by_regex, version)
        try:
            self._carry_out(shard, group.group_id, step)
        except KafkaError as error:  # looked up again with the next heartbeat
            logger.warning("%s: what its patterns match was not stored: %s", group, error)

    # Timers.

    def _set_timers(self, shard: GroupShard, group_id: str, step: Step) -> None:
        if step.timers:
            self._timers.set(
                shard.index, group_id, step.timers, lambda timer: self._fire(shard, group_id, timer)
            )

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


def make_members(surroundings: Surroundings) -> ConsumerMembership:
    """Make what manages the members of consumer groups; it follows the cluster's topics."""
    members = ConsumerMembership(
        clock=surroundings.clock,
        timers=surroundings.timers,
        config=surroundings.config,
        cluster=surroundings.cluster,
        classic=surroundings.members(CLASSIC),
        worker=surroundings.worker,
    )
    surroundings.cluster.subscribe(members)
    return members
