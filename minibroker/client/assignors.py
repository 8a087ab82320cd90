"""The plain assignors of Java's consumers: each partition gets one of a group's members.

Source: Kafka RangeAssignor, RoundRobinAssignor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

Assignment = dict[str, list[TopicPartition]]
"""Member id → its partitions."""


def by_range(topics_of: Mapping[str, Collection[str]], counts: Mapping[str, int]) -> Assignment:
    """Return an assignment that gives each member neighbouring partitions of each topic.

    Args:
        topics_of: member id → the topics that it reads.
        counts: topic → its partitions; topics without any are left out.
    """
    assigned: Assignment = {member: [] for member in topics_of}
    for topic in sorted(counts):
        members = sorted(member for member, topics in topics_of.items() if topic in topics)
        start = 0
        for number, member in enumerate(members):
            share = (counts[topic] + len(members) - 1 - number) // len(members)
            assigned[member] += [TopicPartition(topic, start + at) for at in range(share)]
            start += share
    return assigned


def by_turns(topics_of: Mapping[str, Collection[str]], counts: Mapping[str, int]) -> Assignment:
    """Return an assignment that deals out all partitions in turn. Arguments are `by_range`'s."""
    assigned: Assignment = {member: [] for member in topics_of}
    members = sorted(topics_of)
    turn = 0
    for topic in sorted(counts):
        if not any(topic in topics for topics in topics_of.values()):
            continue
        for number in range(counts[topic]):
            while topic not in topics_of[members[turn % len(members)]]:
                turn += 1
            assigned[members[turn % len(members)]].append(TopicPartition(topic, number))
            turn += 1
    return assigned


ASSIGNORS: Final[
    Mapping[str, Callable[[Mapping[str, Collection[str]], Mapping[str, int]], Assignment]]
] = {"range": by_range, "roundrobin": by_turns}
"""Kafka's name of an assignor → its function, the one that is preferred first."""
