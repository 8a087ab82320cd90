"""The plan of a run: how large the cluster is, and which things happen in it, drawn from the seed.

A run has some of them only, so that a few simulated seconds are enough for each.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

TOPIC: Final = "t"
"""Nothing acknowledged is lost in it."""
UNCLEAN_TOPIC: Final = "u"
"""A replica that is not in sync may lead it, so records may be lost; replicas have to agree."""
BRIEF_TOPIC: Final = "d"
"""It is deleted and created again and again."""
MIN_INSYNC: Final = 2
REPLICAS: Final = 3
BRIEF_PARTITIONS: Final = 2
SETTINGS: Final = {
    "min.insync.replicas": str(MIN_INSYNC),
    "segment.bytes": "4000",
    "index.interval.bytes": "200",
}


class Plan(NamedTuple):
    """The parts of one run."""

    broker_count: int
    partition_count: int
    """Count of partitions of the topic that loses nothing."""
    has_transactions: bool
    deletes_records: bool
    moves_replicas: bool
    has_unclean_topic: bool
    has_brief_topic: bool
    has_stale_requests: bool
    """A controller that was deposed sends requests late."""
    changes_configs: bool

    @property
    def assignment(self) -> dict[int, list[int]]:
        """Return partition → replicas of the topic that loses nothing."""
        return self.assignment_of(self.partition_count)

    def assignment_of(self, partition_count: int) -> dict[int, list[int]]:
        """Return partition → replicas: the brokers in turn."""
        return {
            index: [(index + turn) % self.broker_count for turn in range(REPLICAS)]
            for index in range(partition_count)
        }

    def __str__(self) -> str:
        """Return the numbers, and the names of what happens."""
        happening = [name for name, value in self._asdict().items() if value is True]
        return (
            f"{self.broker_count} brokers, {self.partition_count} partitions,"
            f" {', '.join(happening) or 'nothing else'}"
        )


def plan_of(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = random.Random(f"plan {seed}")
    return Plan(
        broker_count=chance.choice([3, 3, 4]),
        partition_count=chance.choice([1, 1, 2, 3]),
        has_transactions=chance.random() < 0.4,
        deletes_records=chance.random() < 0.4,
        moves_replicas=chance.random() < 0.5,
        has_unclean_topic=chance.random() < 0.25,
        has_brief_topic=chance.random() < 0.3,
        has_stale_requests=chance.random() < 0.3,
        changes_configs=chance.random() < 0.3,
    )
