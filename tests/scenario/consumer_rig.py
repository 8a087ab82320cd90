"""Consumer groups without a broker: commands in; answers, records and states out.

| command                                            | what it is                            |
|----------------------------------------------------|---------------------------------------|
| set KEY=VALUE …                                    | broker keys, before the rest          |
| group KEY=VALUE …                                  | keys of the group itself              |
| topic NAME PARTITIONS                              | a topic comes, or has more            |
| drop NAME                                          | a topic goes                          |
| join WHO [names=a,b] [regex=…] [instance=…]        | heartbeat with epoch 0                |
|      … [assignor=…] [timeout=MS] [rack=…]          | what else it says                     |
| beat WHO [epoch=N] [owns=a:0,1;b:2] [names=…] …    | heartbeat; epoch: as last told        |
| report WHO                                         | heartbeat; it owns what it was told   |
| leave WHO [epoch=-2] [instance=…]                  | heartbeat with a leaving epoch        |
| cjoin WHO [names=a] [owns=a:0] [protocols=range,…] | JoinGroup, also instance=, id=        |
| csync WHO [gen=N] [share=WHO:a:0,1;…]              | SyncGroup, also protocol=             |
| cbeat WHO [gen=N]                                  | Heartbeat                             |
| cleave WHO … [instance=…]                          | LeaveGroup                            |
| commit WHO TOPIC PARTITION [epoch=N] [version=N]   | what an OffsetCommit would hear       |
| fetch WHO [epoch=N]                                | what an OffsetFetch would hear        |
| resolve                                            | the worker looks up patterns          |
| records                                            | what was recorded since the last time |
| show                                               | the members                           |
| advance MS                                         | time goes by                          |
| fail                                               | the log refuses the next records      |
| reload                                             | as after a restart                    |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.classic.membership import ClassicMembership
from minibroker.broker.groups.consumer.embedded_protocol import read_assignment, write_assignment
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.heartbeat import Heartbeat, HeartbeatAnswer
from minibroker.broker.groups.consumer.member import without_epochs
from minibroker.broker.groups.consumer.membership import ConsumerMembership
from minibroker.broker.groups.member_requests import Departure, Join, JoinAnswer, Sync, SyncAnswer
from minibroker.broker.groups.records import decode_record
from minibroker.broker.groups.shard import GroupShard
from minibroker.broker.groups.steps import classic_settings_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicId
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.scenario.surroundings import ListCluster, ListRuntime, ManualTimers
from tests.scenario.transcripts import words_of
from tests.support.evidence import MARKED
from tests.support.images import partition_image
from tests.support.in_process import ManualClock
from tests.support.runners import HeldRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.member import OwnedPartitions

GROUP = "g"
START_MS = 1_000_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000


class ConsumerRig:
    """One shard with one group, its clock, its timers, its topics."""

    def __init__(self, **settings: str) -> None:
        self.settings = {"group.initial.rebalance.delay.ms": "0", **settings}
        self.clock = ManualClock(START_MS)
        self.timers = ManualTimers(self.clock)
        self.runtime = ListRuntime()
        self.cluster = ListCluster()
        self.lines: list[str] = []
        self.answers: dict[str, HeartbeatAnswer] = {}
        self.classic_ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self._worker = HeldRunner()
        self._printed_count = 0
        self._next_id = 0
        self._begin()

    def _begin(self) -> None:
        clock: Any = self.clock
        timers: Any = self.timers
        runtime: Any = self.runtime
        cluster: Any = self.cluster
        config = BrokerConfig(self.settings)
        self.shard = GroupShard(0, runtime, clock, make_simple_group=ClassicGroup, offset_version=3)
        self.classic = ClassicMembership(
            clock=clock,
            timers=timers,
            settings=classic_settings_of(config),
            new_member_id=self._new_id,
        )
        self.consumer = ConsumerMembership(
            clock=clock,
            timers=timers,
            config=config,
            cluster=cluster,
            classic=self.classic,
            worker=self._worker,
            new_member_id=lambda: self._new_id("member"),
        )

    def _new_id(self, name: str) -> str:
        self._next_id += 1
        return f"{name}-{self._next_id}"

    @property
    def group(self) -> ConsumerGroup:
        """Return the group, which has to be a consumer group."""
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    # The transcript.

    def play(self, command: str) -> list[str]:
        """Run one command; return its output, and the state if it changed."""
        words, options = words_of(command)
        old_line = self.state_line()
        self.lines = []
        handler: Callable[[list[str], dict[str, str]], None] = getattr(self, f"on_{words[0]}")
        handler(words[1:], options)
        self.timers.run_until(self.clock.ms)
        after = self.state_line()
        if after != old_line:
            self.lines.append(after)
        return self.lines

    def state_line(self) -> str:
        """Return the group in one line."""
        group = self.shard.groups.get(GROUP)
        if group is None:
            return "= no group"
        if not isinstance(group, ConsumerGroup):
            return f"= classic {group.state_name} members={','.join(group.members)}"
        return (
            f"= {group.state_name} epoch={group.epoch} target={group.assignment_epoch}"
            f" members={','.join(group.members) or 'none'}"
        )

    def names(self, assignment: Mapping[bytes, Any]) -> str:
        """Return `a:0,1 b:2`; the epoch of a partition follows an @, where there is one."""
        image = self.cluster.image
        parts = []
        for topic_id, partitions in assignment.items():
            topic = image.topic_by_id.get(topic_id)
            marks = [
                f"{number}@{partitions[number]}" if isinstance(partitions, dict) else str(number)
                for number in sorted(partitions)
            ]
            parts.append(f"{topic.name if topic else '?'}:{','.join(marks)}")
        return " ".join(sorted(parts)) or "nothing"

    def _owned(self, text: str | None) -> dict[bytes, list[int]] | None:
        if text is None:
            return None
        partitions_of: dict[bytes, list[int]] = {}
        for entry in text.split(";"):
            if entry not in ("", "-"):
                name, _, numbers = entry.partition(":")
                topic_id = self.cluster.image.topics[name].topic_id
                partitions_of[topic_id] = [int(number) for number in numbers.split(",")]
        return partitions_of

    # Surroundings.

    def on_set(self, words: list[str], options: dict[str, str]) -> None:
        self.settings |= options
        self._begin()

    def on_group(self, words: list[str], options: dict[str, str]) -> None:
        self.cluster.group_config |= options

    def on_topic(self, words: list[str], options: dict[str, str]) -> None:
        name, count = words[0], int(words[1])
        image = self.cluster.image
        old_topic = image.topics.get(name)
        topic_id = old_topic.topic_id if old_topic else TopicId(name.encode().ljust(16, b"\1"))
        topic = TopicImage(name, topic_id, [partition_image()] * count)
        image.topics[name] = image.topic_by_id[topic_id] = topic
        if old_topic:
            self.consumer.on_partitions_added(topic, len(old_topic.partitions))
        else:
            self.consumer.on_topic_created(topic)

    def on_drop(self, words: list[str], options: dict[str, str]) -> None:
        topic = self.cluster.image.topics.pop(words[0])
        del self.cluster.image.topic_by_id[topic.topic_id]
        self.consumer.on_topic_deleted(topic, MARKED)

    def on_advance(self, words: list[str], options: dict[str, str]) -> None:
        self.timers.run_until(self.clock.ms + int(words[0]))

    def on_resolve(self, words: list[str], options: dict[str, str]) -> None:
        tasks = self._worker.work
        self._worker.work = []
        for task, done in tasks:
            task()
            done(None)

    def on_fail(self, words: list[str], options: dict[str, str]) -> None:
        self.runtime.is_failing = True

    def on_reload(self, words: list[str], options: dict[str, str]) -> None:
        """Forget everything but the log."""
        self.timers.timers.clear()
        self._worker.work.clear()
        self._begin()
        for key, value in self.runtime.records:
            entry = decode_record(key, value)
            assert entry is not None
            self.shard.replay(entry)
        self.classic.on_shard_loaded(self.shard)
        self.consumer.on_shard_loaded(self.shard)

    # The consumer protocol.

    def on_join(self, words: list[str], options: dict[str, str]) -> None:
        self.beat(words[0], {"timeout": str(REBALANCE_MS), "owns": "-", **options, "epoch": "0"})

    def on_beat(self, words: list[str], options: dict[str, str]) -> None:
        self.beat(words[0], options)

    def on_report(self, words: list[str], options: dict[str, str]) -> None:
        assignment = self.answers[words[0]].assignment or {}
        owned = {topic_id: list(partitions) for topic_id, partitions in assignment.items()}
        self.beat(words[0], options, owned)

    def on_leave(self, words: list[str], options: dict[str, str]) -> None:
        self.beat(words[0], {"epoch": "-1", **options})

    def beat(
        self, alias: str, options: dict[str, str], owned: dict[bytes, list[int]] | None = None
    ) -> HeartbeatAnswer | None:
        """Send a heartbeat and record its answer; return None if it was refused."""
        last_answer = self.answers.get(alias)
        names = options.get("names")
        request = Heartbeat(
            GROUP,
            options.get("id", alias),
            int(options["epoch"])
            if "epoch" in options
            else (last_answer.member_epoch if last_answer else 0),
            "client",
            "/host",
            options.get("instance"),
            options.get("rack"),
            int(options.get("timeout", -1)),
            None if names is None else frozenset(names.split(",")) - {"-"},
            options.get("regex"),
            options.get("assignor"),
            self._owned(options.get("owns")) if owned is None else owned,
            int(options.get("version", 1)),
        )
        answers: list[Any] = []
        try:
            self.consumer.check(request)
            self.consumer.beat(self.shard, request, answers.append)
        except KafkaError as error:
            self.lines.append(f"{alias}: {error.code.name}")
            return None
        answer: HeartbeatAnswer = answers[0]
        line = f"{alias}: epoch={answer.member_epoch}"
        if answer.assignment is not None:
            line += f" has {self.names(answer.assignment)}"
        self.lines.append(line)
        old_assignment = last_answer.assignment if last_answer else None
        assignment = old_assignment if answer.assignment is None else answer.assignment
        self.answers[alias] = answer._replace(assignment=assignment)
        return answer

    # The classic protocol.

    def _manager(self) -> Any:
        group = self.shard.groups.get(GROUP)
        is_ours = isinstance(group, ConsumerGroup) and not group.is_empty
        return self.consumer if is_ours else self.classic

    def on_cjoin(self, words: list[str], options: dict[str, str]) -> None:
        alias = words[0]
        owned = [
            TopicPartition(topic=name, partitions=[int(n) for n in numbers.split(",")])
            for name, _, numbers in (
                entry.partition(":") for entry in options.get("owns", "").split(";") if entry
            )
        ]
        topics = [name for name in options.get("names", "").split(",") if name]
        subscription = ConsumerProtocolSubscription(
            topics=topics, owned_partitions=owned, user_data=None
        ).to_bytes(1)
        join = Join(
            options.get("id", self.classic_ids.get(alias, "")),
            options.get("instance"),
            alias,
            "/host",
            options.get("type", "consumer"),
            tuple((p, subscription) for p in options.get("protocols", "range").split(",")),
            int(options.get("session", 10_000)),
            int(options.get("timeout", REBALANCE_MS)),
            "v4" in words,
        )

        def hear(answer: JoinAnswer) -> None:
            if answer.error is not ErrorCode.NONE:
                self.lines.append(f"{alias}: {answer.error.name}")
                return
            self.classic_ids[alias] = answer.member_id
            self.generations[alias] = answer.generation_id
            self.lines.append(f"{alias}: joined generation={answer.generation_id}")

        self._manager().join(self.shard, GROUP, join, hear)

    def on_csync(self, words: list[str], options: dict[str, str]) -> None:
        alias = words[0]
        shares: dict[str, bytes] = {}
        for entry in options.get("share", "").split(";"):
            if entry:
                name, _, owned = entry.partition(":")
                partitions = self._owned(owned) or {}
                shares[self.classic_ids[name]] = write_assignment(
                    {t: tuple(p) for t, p in partitions.items()}, 1, self.consumer.topics
                )
        sync = Sync(
            options.get("id", self.classic_ids.get(alias, alias)),
            options.get("instance"),
            int(options.get("gen", self.generations.get(alias, -1))),
            "consumer",
            options.get("protocol", "range"),
            shares,
        )

        def hear(answer: SyncAnswer) -> None:
            if answer.error is not ErrorCode.NONE:
                self.lines.append(f"{alias}: {answer.error.name}")
                return
            share, _ = read_assignment(answer.assignment, self.consumer.topics)
            self.lines.append(f"{alias}: share {self.names(share)}")

        self._manager().sync(self.shard, GROUP, sync, hear)

    def on_cbeat(self, words: list[str], options: dict[str, str]) -> None:
        alias = words[0]
        code = self._manager().heartbeat(
            self.shard,
            GROUP,
            options.get("id", self.classic_ids.get(alias, alias)),
            options.get("instance"),
            int(options.get("gen", self.generations.get(alias, -1))),
        )
        self.lines.append(f"{alias}: {code.name}")

    def on_cleave(self, words: list[str], options: dict[str, str]) -> None:
        leaving = [
            Departure(self.classic_ids.get(alias, alias), options.get("instance"))
            for alias in words
        ]
        if not words:
            leaving = [Departure("", options["instance"])]
        answers: list[Any] = []
        self._manager().leave(self.shard, GROUP, leaving, answers.append)
        self.lines.append(f"left: {', '.join(code.name for code in answers[0])}")

    # Offsets.

    def _epoch_of(self, alias: str, options: dict[str, str]) -> int:
        if "epoch" in options:
            return int(options["epoch"])
        return (
            self.answers[alias].member_epoch if alias in self.answers else self.generations[alias]
        )

    def on_commit(self, words: list[str], options: dict[str, str]) -> None:
        alias, topic, partition = words
        member_id = "" if alias == "-" else self.classic_ids.get(alias, alias)
        try:
            validator = self.shard.groups[GROUP].validate_offset_commit(
                member_id,
                None,
                self._epoch_of(alias, options),
                is_transactional="transactional" in options,
                version=int(options.get("version", 9)),
            )
            if validator is not None:
                validator(topic, self.cluster.image.topics[topic].topic_id, int(partition))
        except KafkaError as error:
            self.lines.append(f"{alias}: {error.code.name}")
        else:
            self.lines.append(f"{alias}: may commit")

    def on_fetch(self, words: list[str], options: dict[str, str]) -> None:
        alias = words[0]
        try:
            member_id = None if alias == "-" else self.classic_ids.get(alias, alias)
            self.shard.groups[GROUP].validate_offset_fetch(
                member_id, self._epoch_of(alias, options)
            )
        except KafkaError as error:
            self.lines.append(f"{alias}: {error.code.name}")
        else:
            self.lines.append(f"{alias}: may fetch")

    # Looking.

    def on_show(self, words: list[str], options: dict[str, str]) -> None:
        group = self.group
        for member_id, member in group.members.items():
            line = f"  {member_id}: epoch={member.member_epoch} {member.state.name}"
            line += f" has {self.names(_plain(member.assigned))}"
            if member.revoking:
                line += f" gives up {self.names(_plain(member.revoking))}"
            line += f" shall have {self.names(group.target_of(member_id))}"
            if member.is_classic:
                line += " (classic)"
            self.lines.append(line)

    def on_records(self, words: list[str], options: dict[str, str]) -> None:
        for key, value in self.runtime.records[self._printed_count :]:
            entry = decode_record(key, value)
            assert entry is not None
            stem = type(entry.key).__name__.removesuffix("Key").removeprefix("ConsumerGroup")
            alias = getattr(entry.key, "member_id", getattr(entry.key, "regular_expression", ""))
            line = f"  {stem} {alias}".rstrip()
            self.lines.append(
                f"{line} gone" if value is None else f"{line}{_numbers_of(entry.value)}"
            )
        self._printed_count = len(self.runtime.records)


def _plain(owned: OwnedPartitions) -> dict[bytes, dict[int, int]]:
    return {topic_id: dict(partitions) for topic_id, partitions in owned.items()}


def _numbers_of(value: Any) -> str:
    """Return the numbers of a record that matter to a reader."""
    names = ("epoch", "assignment_epoch", "member_epoch", "previous_member_epoch", "state")
    texts = [f"{name}={getattr(value, name)}" for name in names if hasattr(value, name)]
    texts += [f"topics={','.join(value.topics)}" for _ in (1,) if hasattr(value, "topics")]
    return "".join(f" {number}" for number in texts)


def assignments_of(group: ConsumerGroup) -> dict[str, Assignment]:
    """Return the partitions that every member may read or still reads."""
    assignments: dict[str, Assignment] = {}
    for member_id, member in group.members.items():
        partitions_of = without_epochs(member.assigned)
        for topic_id, partitions in without_epochs(member.revoking).items():
            partitions_of[topic_id] = tuple(sorted({*partitions_of.get(topic_id, ()), *partitions}))
        assignments[member_id] = partitions_of
    return assignments
