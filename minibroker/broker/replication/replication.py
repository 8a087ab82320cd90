"""Replication of one broker: a fetcher for each leader that it follows, the ISR of what it leads.

The `PartitionManager` tells it of each role that a partition takes. A broker alone makes nothing of
this: no task, no connection, no import of what fetches. A broker that may have others beside it
imports that at its start (`has_peers`), so that no request waits for it.

Source: Kafka ReplicaManager, ReplicaFetcherManager.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.partitions.replicas import FollowerId
    from minibroker.broker.peers import PeerClient
    from minibroker.broker.quotas.replication_quota import ReplicationQuota
    from minibroker.broker.replication.fetcher import Fetcher
    from minibroker.broker.replication.isr import IsrKeeper
    from minibroker.broker.replication.isr_requests import IsrRequests
    from minibroker.broker.timers import Timers


class Replication:
    """Owned by the loop; `close` ends the fetchers."""

    __slots__ = (
        "_cluster",
        "_config",
        "_controller_peers",
        "_dynamic",
        "_fetchers",
        "_is_closed",
        "_is_stopping",
        "_isr",
        "_isr_requests",
        "_partitions",
        "_peers",
        "_quota",
        "_timers",
    )

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        config: BrokerConfig,
        dynamic: DynamicConfig,
        timers: Timers,
        quota: ReplicationQuota,
        has_peers: bool,
    ) -> None:
        """`quota`: the throttle of what is fetched. `has_peers`: other brokers may be in the
        cluster.
        """
        if has_peers:
            import_module("minibroker.broker.replication.fetcher")
            import_module("minibroker.broker.replication.isr")
            import_module("minibroker.broker.peers")
        self._cluster = cluster
        self._partitions = partitions
        self._config = config
        self._dynamic = dynamic
        self._timers = timers
        self._quota = quota
        self._is_closed = False
        self._is_stopping = False
        self._peers: PeerClient | None = None
        self._fetchers: dict[int, Fetcher] = {}
        """Broker id of a leader → what fetches from it."""
        self._controller_peers: PeerClient | None = None
        self._isr_requests: IsrRequests | None = None
        self._isr: IsrKeeper | None = None

    @property
    def isr(self) -> IsrKeeper:
        """Return what keeps the ISR of partitions that are led here; the first call makes it."""
        if self._isr is None:
            from minibroker.broker.replication.isr import IsrKeeper  # noqa: PLC0415  see above

            self._isr = IsrKeeper(
                cluster=self._cluster,
                partitions=self._partitions,
                dynamic=self._dynamic,
                timers=self._timers,
                requests=self._requests,
            )
        return self._isr

    def on_role(self, partition: Partition) -> None:
        """Follow the leader that a partition has now, and no other."""
        if self._is_closed:
            return
        leader = partition.followed_leader
        if self._fetchers or leader != NO_LEADER:
            leader = self._fetch_from(leader, partition)
        if leader == NO_LEADER and partition.replicas is not None and partition.is_leader:
            self.isr.note_leader()

    def _fetch_from(self, leader: int, partition: Partition) -> int:
        """Follow this leader (NO_LEADER: none), and no other; return the one that is followed."""
        name = TopicPartition(partition.topic, partition.index)
        if self._is_stopping and not self._is_in_sync(name):
            leader = NO_LEADER
        for broker_id, fetcher in self._fetchers.items():
            if broker_id != leader:
                fetcher.remove(name)
        if leader != NO_LEADER:
            self._fetcher(leader).add(name, partition)
        return leader

    def note_fetch(self, partition: Partition, follower: FollowerId) -> None:
        """Take a follower that fetched into the ISR, if it has caught up."""
        self.isr.note_fetch(partition, follower)

    def prepare_stop(self) -> None:
        """Follow no partition any more once this broker has left its ISR.

        It would come back into the ISR that the controller took it out of, and leave it a second
        time when it stops. Kafka's controller sends StopReplica for that.
        """
        self._is_stopping = True

    def _is_in_sync(self, name: TopicPartition) -> bool:
        partition = self._cluster.image.partition(*name)
        return partition is not None and self._cluster.broker_id in partition.isr

    def _requests(self) -> IsrRequests | None:
        """Return the way to a controller of Apache Kafka, None beside another controller, and for
        an inter-broker protocol before 2.7.
        """
        image = self._cluster.image
        controller = image.brokers.get(image.controller_id)
        if controller is None or controller.is_minibroker:
            return None
        if not self._config.inter_broker_protocol.asks_controller:
            return None
        if self._isr_requests is None:
            # Most brokers never need it.
            from minibroker.broker.replication.isr_requests import IsrRequests  # noqa: PLC0415

            # Its own connection: a fetch that waits must not hold other requests.
            self._controller_peers = self._client_of(
                self._config.controller_listener_name, self._config.controller_socket_timeout_ms
            )
            self._isr_requests = IsrRequests(self._cluster, self._controller_peers)
        return self._isr_requests

    def _fetcher(self, leader: int) -> Fetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            if self._peers is None:
                # Its own connections: a fetch that waits must not hold other requests.
                self._peers = self._client_of(
                    self._config.inter_broker_listener_name, self._config.replica_socket_timeout_ms
                )
            from minibroker.broker.replication.fetcher import Fetcher  # noqa: PLC0415  see above

            fetcher = self._fetchers[leader] = Fetcher(
                leader,
                partitions=self._partitions,
                peers=self._peers,
                config=self._config,
                image=lambda: self._cluster.image,
                quota=self._quota,
            )
        return fetcher

    def _client_of(self, listener: str, timeout_ms: int) -> PeerClient:
        from minibroker.broker.peers import PeerClient  # noqa: PLC0415  see above

        return PeerClient.of(self._cluster, self._config, listener=listener, timeout_ms=timeout_ms)

    async def close(self) -> None:
        """Fetch nothing any more."""
        self._is_closed = True
        if self._isr is not None:
            await self._isr.close()
        if self._isr_requests is not None:
            await self._isr_requests.close()
        for fetcher in self._fetchers.values():
            await fetcher.close()
        self._fetchers.clear()
        for peers in (self._peers, self._controller_peers):
            if peers is not None:
                await peers.close()
