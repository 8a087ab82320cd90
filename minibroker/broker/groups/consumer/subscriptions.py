"""How many members subscribe to each topic by name, and how many patterns match it.

Source: Kafka 4.4, SubscriptionCount, ConsumerGroup.subscriptionType.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class ResolvedRegex(NamedTuple):
    """The topics that a pattern matched when it was resolved last."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class Subscriptions:
    """The subscriptions of one group; change a `copy` to see the effect of a change."""

    __slots__ = ("by_name", "by_regex")

    def __init__(self) -> None:
        self.by_name: Counter[str] = Counter()
        """Topic → members that name it."""
        self.by_regex: Counter[str] = Counter()
        """Topic → resolved patterns that match it."""

    def __contains__(self, topic: str) -> bool:
        return topic in self.by_name or topic in self.by_regex

    def __iter__(self) -> Iterator[str]:
        yield from self.by_name
        yield from (topic for topic in self.by_regex if topic not in self.by_name)

    def copy(self) -> Subscriptions:
        """Return an independent copy."""
        result = Subscriptions()
        result.by_name = self.by_name.copy()
        result.by_regex = self.by_regex.copy()
        return result

    def add_names(self, topics: Iterable[str]) -> None:
        """Count the names that a member subscribes to."""
        self.by_name.update(topics)

    def drop_names(self, topics: Iterable[str]) -> None:
        """Count these names no more for a member."""
        discount(self.by_name, topics)

    def add_matches(self, topics: Iterable[str]) -> None:
        """Count the topics that a pattern matches."""
        self.by_regex.update(topics)

    def drop_matches(self, topics: Iterable[str]) -> None:
        """Count these no more: the pattern does not match them any more, or is gone."""
        discount(self.by_regex, topics)

    def is_homogeneous(self, regexes: Mapping[str, int], member_count: int) -> bool:
        """Return whether all members subscribe to the same topics.

        `regexes`: pattern → members that use it.
        With patterns: everybody uses the one pattern and nobody names a topic.
        """
        if not regexes:
            return not self.by_regex and all(
                count == member_count for count in self.by_name.values()
            )
        if next(iter(regexes.values())) != member_count:
            return False
        return not self.by_name and all(count == 1 for count in self.by_regex.values())


def discount(counter: Counter[str], names: Iterable[str]) -> None:
    """Count one less of each, and forget those that come to nothing."""
    for name in names:
        if counter[name] <= 1:
            del counter[name]
        else:
            counter[name] -= 1
