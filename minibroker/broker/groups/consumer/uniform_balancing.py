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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.broker.groups.consumer.assignor import Assignment, AssignorInput

ROUNDS_MAX: Final = 16
"""After so many walks over all topics the balance is good enough."""
NOBODY: Final = -1


def assign_unlike(group: AssignorInput) -> dict[str, Assignment]:
    """See the module. Members are numbered in the order in which `group.members` has them."""
    balance = _Balance(group)
    if not balance.subscribers:
        return {}
    balance.keep()
    balance.fill()
    balance.balance()
    return {
        member_id: frozen(partitions)
        for member_id, partitions in zip(group.members, balance.assigned, strict=True)
    }


class _Balance:
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
        move_count = 0
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
            move_count += 1
        return move_count

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


class MemberRanges:
    """The two ranges of one topic; `sizes` is the caller's and changes with every move."""

    __slots__ = (
        "_least_end",
        "_least_level",
        "_members",
        "_most_end",
        "_most_level",
        "_most_start",
        "_next_least",
        "_next_most",
        "_sizes",
        "imbalance",
    )

    def __init__(self, members: Iterable[int], sizes: Sequence[int]) -> None:
        """`sizes[n]` is how many partitions member n has, of all topics."""
        self._sizes = sizes
        self._members = sorted(members, key=lambda number: (sizes[number], number))
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self.imbalance = highest - lowest
        self._least_end = 0  # exclusive
        self._least_level = lowest - 1
        self._next_least = 0
        self._most_start = self._most_end = len(self._members)  # inclusive, exclusive
        self._most_level = highest + 1
        self._next_most = len(self._members) - 1

    @property
    def is_balanced(self) -> bool:
        """Return whether the two ranges differ by one partition at most."""
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        """Return the member that gets the next partition."""
        if self._next_least >= self._least_end:
            # Everybody in the range got one more: it is one level higher, and may grow.
            self._least_level += 1
            while self._least_end < len(self._members) and (
                self._sizes[self._members[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._next_least = 0
        member = self._members[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int | None:
        """Return the member that gives up the next partition; None: nobody has one to give."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All were excluded: begin again with whoever comes next.
                self._most_level = self._sizes[self._members[self._most_start - 1]]
            else:
                self._most_level -= 1
            while self._most_start > 0 and (
                self._sizes[self._members[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._members[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Take the member that was named last out of the range: it has nothing of this topic to
        give.
        """
        place, last = self._next_most + 1, self._most_end - 1
        self._members[place], self._members[last] = self._members[last], self._members[place]
        self._most_end = last
