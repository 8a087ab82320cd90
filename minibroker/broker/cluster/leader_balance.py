"""Leaders return to preferred replicas by themselves: `auto.leader.rebalance.enable`.

A broker that comes back leads nothing: others lead what it led. The controller looks from time to
time. Where a broker lacks more than a share of the leaderships that it is preferred for
(`leader.imbalance.per.broker.percentage`), it gets those back that it may have.

Source: Kafka KafkaController.checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.tree import TreeError
from minibroker.broker.event_loop import cancel_all
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.errors import CoordinationError, KafkaError

if TYPE_CHECKING:
    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.controller import Controller
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.timers import Timer, Timers

FIRST_LOOK_MS: Final = 5_000
"""Time from an election of the controller to its first look, as in Kafka."""


class BalanceRule(NamedTuple):
    """The settings; constant."""

    interval_ms: int
    """`leader.imbalance.check.interval.seconds`, in milliseconds."""
    percentage: int
    """`leader.imbalance.per.broker.percentage`."""


class Imbalance:
    """Counts, topic by topic, which leaders are not the preferred replicas. No I/O."""

    def __init__(self) -> None:
        self._preferred_counts: Counter[int] = Counter()
        """Broker → partitions whose preferred replica it has."""
        self._elsewhere: dict[int, list[tuple[str, int]]] = {}
        """Broker → those of them that another broker leads, or none."""

    def note(self, topic: TopicImage) -> None:
        """Count the partitions of a topic that have a state."""
        for index, partition in enumerate(topic.partitions):
            if not partition.replicas or partition.partition_epoch < 0:
                continue
            preferred_leader = partition.replicas[0]
            self._preferred_counts[preferred_leader] += 1
            if partition.leader != preferred_leader:
                self._elsewhere.setdefault(preferred_leader, []).append((topic.name, index))

    def to_elect(self, percentage: int) -> dict[str, list[int]]:
        """Return topic → partitions of the brokers that lack more than `percentage` of theirs."""
        indexes_by_topic: dict[str, list[int]] = {}
        for broker_id, elsewhere in self._elsewhere.items():
            if len(elsewhere) / self._preferred_counts[broker_id] > percentage / 100:
                for name, index in elsewhere:
                    indexes_by_topic.setdefault(name, []).append(index)
        return indexes_by_topic


class LeaderBalancer:
    """Looks while this broker is the controller. Owned by the loop."""

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        controller: Controller,
        *,
        timers: Timers,
        rule: BalanceRule,
    ) -> None:
        # Constant after construction.
        self._context = context
        self._election = election
        self._controller = controller
        self._timers = timers
        self._rule = rule
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        election.listeners.append(self._on_election)

    def _on_election(self, is_controller: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if is_controller and self._context.tree.is_shared:
            self._timer = self._timers.after(FIRST_LOOK_MS, self._look)

    def _look(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._balance())

    async def _balance(self) -> None:
        """Elect, then set the timer for the next look."""
        try:
            async with self._context.lock:
                await self._elect()
        except (CoordinationError, KafkaError, TreeError) as error:
            self._context.log.warning("leaders are not balanced at this look: %s", error)
        except Exception:  # a bug of ours: the next look tries again
            self._context.log.exception("leaders are not balanced at this look")
        if self._election.is_controller:
            self._timer = self._timers.after(self._rule.interval_ms, self._look)

    async def _elect(self) -> None:
        """Give the preferred replicas what they lack and may have."""
        topics = self._context.updater.image.topics
        imbalance = Imbalance()
        turn = TimeSlice()
        for topic in list(topics.values()):
            imbalance.note(topic)
            if turn.is_over:
                await turn.pause()
        for name, indexes in imbalance.to_elect(self._rule.percentage).items():
            topic_indexes = topics.get(name)
            if topic_indexes is None or not self._election.is_controller:
                continue
            if await self._controller.elect_preferred(topic_indexes, indexes):
                self._context.log.info("preferred replicas lead topic %s again", name)

    async def close(self) -> None:
        """Look no more."""
        self._on_election(False)
        await cancel_all(self._task)
