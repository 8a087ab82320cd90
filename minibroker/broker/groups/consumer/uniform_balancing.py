"""The `uniform` assignor for members whose subscriptions differ.

Everybody keeps what it may keep, free partitions go to the subscriber with the fewest, and then
partitions move from the fullest subscriber of a topic to the emptiest until no topic can be
improved (or `ROUNDS_MAX` rounds are over). Topics with the most partitions per subscriber come
first: those with few choices are placed while there is room.

Source: Kafka 4.4, UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.consumer.assignor import frozen
from minibroker.broker.groups.consumer.java_order import java_uuid_key
from minibroker.broker.groups.consumer.member_ranges import MemberRanges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.groups.consumer.assignor import Assignment, AssignorInput

ROUNDS_MAX: Final = 16
"""After so many walks over all topics the balance is good enough."""
NOBODY: Final = -1


def assign_unlike(group: AssignorInput) -> dict[str, Assignment]:
    """See the module. Members are numbered in the order in which `group.members` has them."""
    balancing = _Balancing(group)
    if not balancing.subscribers:
        return {}
    balancing.keep()
    balancing.fill()
    balancing.balance()
    return {
        member_id: frozen(partitions)
        for member_id, partitions in zip(group.members, balancing.assigned, strict=True)
    }


class _Balancing:
    """One run of the assignor."""

    __slots__ = ("_group", "_owners", "_sizes", "assigned", "subscribers")

    def __init__(self, group: AssignorInput) -> None:
        self._group = group
        self.subscribers: dict[bytes, list[int]] = {}
        """Topic id → numbers of its subscribers, ascending."""
        for number, member in enumerate(group.members.values()):
            for topic_id in member.topic_ids:
                self.subscribers.setdefault(topic_id, []).append(number)
        self.assigned: list[dict[bytes, set[int]]] = [{} for _ in group.members]
        self._sizes = [0] * len(group.members)
        self._owners = {
            topic_id: [NOBODY] * group.partition_counts[topic_id] for topic_id in self.subscribers
        }

    def keep(self) -> None:
        """Let every member keep what it has of the topics that it subscribes to."""
        for number, member in enumerate(self._group.members.values()):
            topic_ids = frozenset(member.topic_ids)
            for topic_id, partitions in member.assignment.items():
                if topic_id in topic_ids:
                    self.assigned[number][topic_id] = set(partitions)
                    self._sizes[number] += len(partitions)
                    for partition in partitions:
                        self._owners[topic_id][partition] = number

    def fill(self) -> None:
        """Give partitions without an owner to the subscribers with the fewest partitions."""
        free = {
            topic_id: [p for p, owner in enumerate(owners) if owner == NOBODY]
            for topic_id, owners in self._owners.items()
            if NOBODY in owners
        }
        for topic_id in self._in_order(free):
            ranges = MemberRanges(self.subscribers[topic_id], self._sizes)
            for partition in free[topic_id]:
                self._give(topic_id, partition, ranges.next_least_loaded())

    def balance(self) -> None:
        """Move partitions until a walk over all topics moved none."""
        topic_ids = self._in_order(t for t, members in self.subscribers.items() if len(members) > 1)
        last_moved = -1
        for _ in range(ROUNDS_MAX):
            for place, topic_id in enumerate(topic_ids):
                if place == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved == -1:
                    last_moved = place

    def _balance_topic(self, topic_id: bytes) -> int:
        """Move partitions of one topic; returns how many."""
        ranges = MemberRanges(self.subscribers[topic_id], self._sizes)
        if ranges.imbalance <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        moved = 0
        while not ranges.is_balanced:
            giver = ranges.next_most_loaded()
            while giver is not None and not owned.get(giver):
                ranges.exclude_most_loaded()
                giver = ranges.next_most_loaded()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = ranges.next_least_loaded()
            if ranges.is_balanced:
                break
            self._give(topic_id, partition, taker)
            moved += 1
        return moved

    def _in_order(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        def key(topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
            subscriber_count = len(self.subscribers[topic_id])
            per_subscriber = self._group.partition_counts[topic_id] / subscriber_count
            return -per_subscriber, subscriber_count, java_uuid_key(topic_id)

        return sorted(topic_ids, key=key)

    def _give(self, topic_id: bytes, partition: int, number: int) -> None:
        owner = self._owners[topic_id][partition]
        if owner != NOBODY:
            self.assigned[owner][topic_id].discard(partition)
            self._sizes[owner] -= 1
        self.assigned[number].setdefault(topic_id, set()).add(partition)
        self._owners[topic_id][partition] = number
        self._sizes[number] += 1
