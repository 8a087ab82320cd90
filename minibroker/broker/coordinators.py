"""The group coordinator and the transaction coordinator, made at first use.

A broker without groups and transactions imports neither. If their topics hold records already
(committed offsets, transactions that the last run decided), the coordinators are made right after
the start, or when this broker becomes the leader of a partition of their topic. The two do not know
each other: this module tells groups about the markers of transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from minibroker.broker.cluster.updates import ClusterListener

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.groups.coordinator import GroupCoordinator
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.peers import PeerClient
    from minibroker.broker.timers import Timers
    from minibroker.broker.transactions.coordinator import TransactionCoordinator
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock


class Coordinators(ClusterListener):
    """Makes the coordinators and follows the cluster's changes for them. The loop owns it."""

    __slots__ = (
        "_clock",
        "_cluster",
        "_config",
        "_dynamic",
        "_groups",
        "_is_closed",
        "_partitions",
        "_peers",
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
        worker: Runner,
    ) -> None:
        """`config` is the configuration at start; the settings of groups do not change at
        run time.
        """
        self._cluster = cluster
        self._partitions = partitions
        self._config = config
        self._dynamic = dynamic
        self._clock = clock
        self._timers = timers
        self._worker = worker
        self._is_closed = False
        self._groups: GroupCoordinator | None = None
        self._peers: PeerClient | None = None
        self._transactions: TransactionCoordinator | None = None

    @property
    def groups(self) -> GroupCoordinator:
        """Return the group coordinator; the first call imports and makes it."""
        if self._groups is None:
            from minibroker.broker.groups.coordinator import GroupCoordinator  # noqa: PLC0415  see above

            self._groups = GroupCoordinator(
                cluster=self._cluster,
                partitions=self._partitions,
                clock=self._clock,
                timers=self._timers,
                config=self._config,
                worker=self._worker,
            )
            self._groups.start()
        return self._groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """Return the transaction coordinator; the first call imports and makes it."""
        if self._transactions is None:
            from minibroker.broker.partitions.markers import MarkerWriter  # noqa: PLC0415  see above
            from minibroker.broker.peers import PeerClient  # noqa: PLC0415  see above
            from minibroker.broker.transactions.broker_requests import BrokerRequests  # noqa: PLC0415
            from minibroker.broker.transactions.coordinator import (  # noqa: PLC0415  see above
                TransactionCoordinator,
            )

            self._peers = PeerClient.of(
                self._cluster,
                self._config,
                listener=self._config.inter_broker_listener_name,
                timeout_ms=self._config.request_timeout_ms,
            )
            self._transactions = TransactionCoordinator(
                cluster=self._cluster,
                partitions=self._partitions,
                clock=self._clock,
                timers=self._timers,
                dynamic=self._dynamic,
                worker=self._worker,
                markers=MarkerWriter(self._partitions, self._clock, offsets=lambda: self.groups),
                peers=BrokerRequests(self._peers),
            )
            self._transactions.start()
        return self._transactions

    def start(self) -> None:
        """Call `resume` now and after each later change of leadership.
        Call it after the `PartitionManager` has subscribed to the cluster.
        """
        self._cluster.subscribe(self)
        self.resume()

    def resume(self) -> None:
        """Make each coordinator whose topic has partitions on this broker."""
        if self._is_closed:
            return
        if self._partitions.of_topic(OFFSETS_TOPIC):
            _ = self.groups
        if self._partitions.of_topic(TRANSACTIONS_TOPIC):
            _ = self.transactions

    # Changes of the cluster (`ClusterListener`).

    def on_topic_created(self, topic: TopicImage) -> None:
        """Resume the coordinator if this is its topic."""
        if topic.name in INTERNAL_TOPICS:
            self.resume()

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """Resume the coordinators, like `on_topic_created`."""
        self.on_topic_created(topic)

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Resume the coordinators, like `on_topic_created`."""
        self.on_topic_created(topic)

    def release_waiting(self) -> None:
        """Answer the members that wait for others, because the broker stops."""
        if self._groups is not None:
            self._groups.close()

    async def close(self) -> None:
        """Send no more markers and read no more journals. Call it when no request is in hand."""
        self._is_closed = True
        if self._groups is not None:
            self._groups.journal.close()
        if self._transactions is not None:
            await self._transactions.close()
            self._transactions.journal.close()
        if self._peers is not None:
            await self._peers.close()
