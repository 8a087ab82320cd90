"""The group and the transaction coordinator, made when somebody needs them.

A broker without groups and transactions pays neither for the import nor at start. Where there is
something to go on with (committed offsets, transactions that were decided before the last stop)
they are made right after the start, or when this broker begins to lead a partition of their topic.
They do not know each other: what a transaction's marker means
for committed offsets is told here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.cluster.image import INTERNAL_TOPICS
from minibroker.cluster.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from minibroker.clock import Clock
    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.image import TopicImage
    from minibroker.config.broker import BrokerConfig
    from minibroker.config.dynamic import DynamicConfig
    from minibroker.groups.coordinator import GroupCoordinator
    from minibroker.partitions.manager import PartitionManager
    from minibroker.timers import Timers
    from minibroker.transactions.coordinator import TransactionCoordinator
    from minibroker.worker import Worker


class Coordinators:
    """Belongs to the loop's thread."""

    __slots__ = (
        "_clock",
        "_cluster",
        "_config",
        "_dynamic",
        "_groups",
        "_is_closed",
        "_partitions",
        "_timers",
        "_transactions",
        "_worker",
    )

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        config: BrokerConfig,
        dynamic: DynamicConfig,
        clock: Clock,
        timers: Timers,
        worker: Worker,
    ) -> None:
        """`config`: as the broker was started; what groups go by does not change at run time."""
        self._cluster = cluster
        self._partitions = partitions
        self._config = config
        self._dynamic = dynamic
        self._clock = clock
        self._timers = timers
        self._worker = worker
        self._is_closed = False
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator; the first who asks waits for the import."""
        if self._groups is None:
            from minibroker.groups.coordinator import GroupCoordinator  # noqa: PLC0415  see above

            self._groups = GroupCoordinator(
                cluster=self._cluster,
                partitions=self._partitions,
                clock=self._clock,
                timers=self._timers,
                config=self._config,
                run_later=self._worker.run_later,
                run_then=self._worker.run_then,
            )
            self._groups.start()
        return self._groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator; as `groups`."""
        if self._transactions is None:
            from minibroker.partitions.markers import MarkerWriter  # noqa: PLC0415  see above
            from minibroker.transactions.coordinator import (  # noqa: PLC0415  see above
                TransactionCoordinator,
            )
            from minibroker.transactions.peers import BrokerRequests  # noqa: PLC0415  see above

            self._transactions = TransactionCoordinator(
                cluster=self._cluster,
                partitions=self._partitions,
                clock=self._clock,
                timers=self._timers,
                dynamic=self._dynamic,
                run_later=self._worker.run_later,
                markers=MarkerWriter(self._partitions, self._clock, offsets=lambda: self.groups),
                peers=BrokerRequests(self._cluster, self._config.inter_broker_listener_name),
            )
            self._transactions.start()
        return self._transactions

    def start(self) -> None:
        """Have `resume` done now and with every leadership that comes later.

        Start it after the `PartitionManager` was subscribed to the cluster.
        """
        self._cluster.subscribe(self)
        self.resume()

    def resume(self) -> None:
        """Make those whose journal has partitions on this broker, before anybody asks."""
        if self._is_closed:
            return
        if self._partitions.of_topic(OFFSETS_TOPIC):
            _ = self.groups
        if self._partitions.of_topic(TRANSACTIONS_TOPIC):
            _ = self.transactions

    # Changes of the cluster (`cluster.updates.ClusterListener`).

    def on_topic_created(self, topic: TopicImage) -> None:
        """Resume what the topic is a journal of."""
        if topic.name in INTERNAL_TOPICS:
            self.resume()

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Resume the coordinators, like `on_topic_created`."""
        self.on_topic_created(topic)

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Resume the coordinators, like `on_topic_created`."""
        self.on_topic_created(topic)

    def on_topic_deleted(self, topic: TopicImage) -> None:
        """A coordinator that is there stays."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        """Nothing here depends on it."""

    def release_waiting(self) -> None:
        """The broker stops: members that wait for others are answered."""
        if self._groups is not None:
            self._groups.close()

    async def close(self) -> None:
        """No marker is sent any more, no journal read; call it when no request is in hand."""
        self._is_closed = True
        if self._groups is not None:
            self._groups.journal.close()
        if self._transactions is not None:
            await self._transactions.close()
            self._transactions.journal.close()
