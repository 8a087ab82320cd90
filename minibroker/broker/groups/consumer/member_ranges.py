"""Finds the subscriber of a topic that gets the next partition, or gives one up.

The subscribers are sorted by how many partitions they have. Two ranges lie at the ends: the
emptiest members, all with equally many, grow to the right as they are filled; the fullest ones grow
to the left as they are drained. Nobody is sorted again meanwhile, and a choice costs constant time.

Source: Kafka 4.4, UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
