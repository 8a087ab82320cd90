"""What a handler is given: who asks (`RequestContext`) and what it may use (`Services`).

One `RequestContext` lives as long as its connection. A connection has one request in hand at a
time, so the fields of the request are overwritten in place; a handler that waits finds them
unchanged when it goes on, because its connection is not read meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.clock import Clock
    from minibroker.cluster.cluster import Cluster
    from minibroker.cluster.features import Features
    from minibroker.config.broker import BrokerConfig, Listener
    from minibroker.config.dynamic import DynamicConfig
    from minibroker.coordinators import Coordinators
    from minibroker.groups.coordinator import GroupCoordinator
    from minibroker.metrics import Metrics
    from minibroker.partitions.fetch_session import FetchSessionCache
    from minibroker.partitions.log_moves import LogMoves
    from minibroker.partitions.manager import PartitionManager
    from minibroker.quotas.manager import Client, QuotaManager
    from minibroker.timers import Timers
    from minibroker.transactions.coordinator import TransactionCoordinator

ANONYMOUS = "User:ANONYMOUS"


class Services:
    """The parts of the broker that handlers may use; filled once by `app.py`."""

    __slots__ = (
        "_coordinators",
        "advertised_apis",
        "clock",
        "cluster",
        "dynamic",
        "features",
        "fetch_sessions",
        "log_moves",
        "metrics",
        "partitions",
        "quotas",
        "supported_apis",
        "timers",
    )

    def __init__(
        self,
        *,
        clock: Clock,
        cluster: Cluster,
        dynamic: DynamicConfig,
        features: Features,
        fetch_sessions: FetchSessionCache,
        log_moves: LogMoves,
        metrics: Metrics,
        partitions: PartitionManager,
        quotas: QuotaManager,
        timers: Timers,
        coordinators: Coordinators,
        supported_apis: dict[int, tuple[int, int]],
        advertised_apis: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        self._coordinators = coordinators
        self.clock = clock
        self.cluster = cluster
        self.dynamic = dynamic
        self.features = features
        self.fetch_sessions = fetch_sessions
        self.log_moves = log_moves
        self.metrics = metrics
        self.partitions = partitions
        self.quotas = quotas
        self.timers = timers
        self.supported_apis = supported_apis
        """API key → (lowest, highest version) that this broker serves."""
        self.advertised_apis = supported_apis if advertised_apis is None else advertised_apis
        """The same as ApiVersions tells it: differs only where a pinned Kafka release did."""

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator; made when it is first asked for."""
        return self._coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator; made when it is first asked for."""
        return self._coordinators.transactions

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings as they are now, dynamic changes included."""
        return self.dynamic.broker


class RequestContext:
    """One connection's identity, and the header of the request that it has in hand."""

    __slots__ = (
        "api_key",
        "client_address",
        "client_id",
        "client_software_name",
        "client_software_version",
        "close_connection",
        "correlation_id",
        "listener",
        "principal",
        "services",
        "version",
    )

    def __init__(
        self,
        *,
        services: Services,
        listener: Listener,
        client_address: str,
        close_connection: Callable[[str], None],
        principal: str = ANONYMOUS,
    ) -> None:
        self.services = services
        self.listener = listener
        self.client_address = client_address
        self.principal = principal
        self.close_connection = close_connection
        """Ends the connection after what is already answered; the argument says why."""
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.api_key = -1
        self.version = -1
        self.correlation_id = 0
        self.client_id: str | None = None

    @property
    def quota_client(self) -> Client:
        """Who is charged for the request in hand."""
        return self.principal, self.client_id or ""
