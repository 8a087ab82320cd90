"""Consumer groups under any sequence of requests: rules that hold after every step.

A partition has one owner. A stable group reads every subscribed partition once. Epochs only grow. A
restart reads the same state from the log. A group whose members all behave becomes stable.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from minibroker.broker.groups.consumer.group import ConsumerGroup
from tests.scenario.consumer_rig import GROUP, ConsumerRig, assignments_of

NAMES = st.sampled_from(["m1", "m2", "m3", "m4"])
INSTANCES = {"s1": "i1", "s2": "i1", "s3": "i2"}
"""Id of a static member → its instance. An id that comes back with another one gets nothing from
Kafka, and no client does it.
"""
STATIC_NAMES = st.sampled_from(sorted(INSTANCES))
ALL_NAMES = NAMES | STATIC_NAMES
CLASSIC = st.sampled_from(["c1", "c2"])
TOPICS = st.sampled_from(["a", "b", "a,b", "b,c"])
"""Topics of a new member. With none of its own the epoch does not grow in Kafka, and what it and
others get is not what they read until something changes.
"""
SUBSCRIPTIONS = TOPICS | st.just("-")
ASSIGNORS = st.sampled_from(["uniform", "range"])
ROUNDS = 12


class GroupMachine(RuleBasedStateMachine):
    """Clients that join, send heartbeats, revoke, go silent and come back, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = ConsumerRig()
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}

    def play(self, command: str) -> None:
        self.rig.play(command)
        group = self.group
        if group is None:
            self.epochs, self.member_epochs = (0, 0), {}
            return
        epochs = (group.epoch, group.assignment_epoch)
        assert epochs >= self.epochs, f"{command}: from {self.epochs} to {epochs}"
        assert group.assignment_epoch <= group.epoch
        self.epochs = epochs
        for member_id, member in group.members.items():
            old_epoch = self.member_epochs.get(member_id, 0)
            assert member.member_epoch >= old_epoch or member.member_epoch == -2, command
            assert member.member_epoch <= group.epoch
            self.member_epochs[member_id] = max(member.member_epoch, 0)
        self.member_epochs = {m: e for m, e in self.member_epochs.items() if m in group.members}

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.rig.shard.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @property
    def is_classic(self) -> bool:
        """Return whether the group is a classic one."""
        group = self.rig.shard.groups.get(GROUP)
        return group is not None and not isinstance(group, ConsumerGroup)

    @initialize(counts=st.tuples(st.integers(1, 5), st.integers(1, 3)))
    def make_topics(self, counts: tuple[int, int]) -> None:
        self.play(f"topic a {counts[0]}")
        self.play(f"topic b {counts[1]}")

    # Members.

    @rule(name=NAMES, names=TOPICS)
    def join(self, name: str, names: str) -> None:
        self.play(f"join {name} names={names}")

    @rule(name=ALL_NAMES, names=SUBSCRIPTIONS, assignor=ASSIGNORS)
    def change(self, name: str, names: str, assignor: str) -> None:
        self.play(f"beat {name} names={names} assignor={assignor}")

    @precondition(lambda self: not self.is_classic)
    @rule(name=NAMES)
    def join_by_pattern(self, name: str) -> None:
        self.play(f"join {name} regex=[ab] names=-")

    @rule()
    def resolve(self) -> None:
        self.play("resolve")

    @rule(name=ALL_NAMES)
    def beat(self, name: str) -> None:
        self.play(f"beat {name}")

    @rule(name=ALL_NAMES)
    def report(self, name: str) -> None:
        if name in self.rig.answers:
            self.play(f"report {name}")

    @rule(name=ALL_NAMES)
    def leave(self, name: str) -> None:
        self.play(f"leave {name}")

    @rule(name=STATIC_NAMES, names=TOPICS)
    def join_static(self, name: str, names: str) -> None:
        self.play(f"join {name} instance={INSTANCES[name]} names={names}")

    @rule(name=STATIC_NAMES)
    def leave_for_a_while(self, name: str) -> None:
        self.play(f"leave {name} epoch=-2 instance={INSTANCES[name]}")

    # Members of the classic protocol, only beside others: alone they are another kind of group.

    @precondition(lambda self: self.group is not None and self.group.members)
    @rule(name=CLASSIC, names=st.sampled_from(["a", "a,b"]))
    def join_classic(self, name: str, names: str) -> None:
        member = self.rig.group.members.get(self.rig.classic_ids.get(name, ""))
        if member is None:
            self.rig.classic_ids.pop(name, None)
        owned = self.rig.names(member.assigned).replace(" ", ";") if member else ""
        owns = "" if owned == "nothing" else ";".join(_without_epochs(owned))
        self.play(f"cjoin {name} names={names} owns={owns}")

    @precondition(lambda self: self.group is not None and self.group.members)
    @rule(name=CLASSIC)
    def beat_classic(self, name: str) -> None:
        self.play(f"csync {name}")
        self.play(f"cbeat {name}")

    # The world.

    @rule(count=st.integers(1, 7))
    def grow(self, count: int) -> None:
        topic = self.rig.cluster.image.topics["a"]
        if count > len(topic.partitions):
            self.play(f"topic a {count}")

    @rule()
    def come_and_go(self) -> None:
        self.play("drop c" if "c" in self.rig.cluster.image.topics else "topic c 2")

    @rule(elapsed_ms=st.sampled_from([1, 1000, 11_000, 46_000, 61_000]))
    def advance(self, elapsed_ms: int) -> None:
        self.play(f"advance {elapsed_ms}")

    @rule()
    def fail(self) -> None:
        self.play("fail")

    @rule()
    def restart(self) -> None:
        """Replay the log: it gives the same state."""
        old_snapshot = self.snapshot()
        self.play("reload")
        assert self.snapshot() == old_snapshot

    def snapshot(self) -> Any:
        group = self.group
        if group is None:
            return None
        names = ("epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp_ms")
        counts = ("target", "owners", "partition_epochs", "static_members", "regex_counts")
        return (
            {name: getattr(group, name) for name in (*names, *counts, "resolved_regexes")},
            dict(group.members),
            dict(group.subscriptions.by_name),
            dict(group.subscriptions.by_regex),
        )

    @rule()
    def everybody_behaves(self) -> None:
        """Let every member send heartbeats and revoke as asked: the group becomes stable."""
        if self.group is None or any(m.is_classic for m in self.group.members.values()):
            return
        self.rig.runtime.is_failing = False
        for _ in range(ROUNDS):
            self.play("resolve")
            # As long as the assignment waits, and a look-up of patterns.
            self.play("advance 3000")
            for member_id, member in list(self.rig.group.members.items()):
                if member.member_epoch < 0:
                    continue
                instance = f" instance={member.instance_id}" if member.instance_id else ""
                owned = ";".join(_without_epochs(self.rig.names(member.assigned).replace(" ", ";")))
                self.play(f"beat {member_id}{instance} epoch={member.member_epoch} owns={owned}")
        group = self.rig.group
        if all(member.member_epoch >= 0 for member in group.members.values()):
            assert group.state_name in {"Stable", "Empty"}, self.rig.play("show")

    # What always holds.

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        if self.group is None:
            return
        assigned = [
            (topic_id, partition)
            for assignment in assignments_of(self.group).values()
            for topic_id, partitions in assignment.items()
            for partition in partitions
        ]
        assert len(assigned) == len(set(assigned))
        owned = {
            (topic_id, partition)
            for topic_id, partitions in self.group.partition_epochs.items()
            for partition in partitions
        }
        assert set(assigned) == owned

    @invariant()
    def a_stable_group_reads_everything(self) -> None:
        group = self.group
        topics = self.rig.consumer.topics
        if group is None or group.state_name != "Stable":
            return
        if group.checked_topics_version != topics.version:
            return  # the next heartbeat will look
        subscribed = {
            (topic_id, partition)
            for member in group.members.values()
            for name in group.topics_of(member)
            if (topic_id := topics.id_of(name)) is not None
            for partition in range(topics.partition_count(topic_id))
        }
        assigned = {
            (topic_id, partition)
            for member in group.members.values()
            for topic_id, partitions in member.assigned.items()
            for partition in partitions
        }
        assert assigned == subscribed

    @invariant()
    def counts_are_those_of_the_members(self) -> None:
        group = self.group
        if group is None:
            return
        again = ConsumerGroup(GROUP)
        for member in group.members.values():
            again.put_member(member)
        assert again.subscriptions.by_name == group.subscriptions.by_name
        assert again.regex_counts == group.regex_counts
        assert again.assignor_counts == group.assignor_counts
        assert again.protocol_counts == group.protocol_counts
        assert again.static_members == group.static_members


def _without_epochs(owned: str) -> list[str]:
    """Return `a:0,1`, `b:0` for `a:0@2,1@2;b:0@3`."""
    if owned in {"", "nothing"}:
        return []
    entries = (entry.partition(":") for entry in owned.split(";"))
    return [
        f"{name}:{','.join(mark.partition('@')[0] for mark in marks.split(','))}"
        for name, _, marks in entries
        if name != "?"
    ]


TestConsumerGroups = GroupMachine.TestCase
TestConsumerGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
