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
    from minibroker.config.broker import BrokerConfig, Listener
    from minibroker.config.dynamic import DynamicConfig
    from minibroker.metrics import Metrics
    from minibroker.partitions.fetch_session import FetchSessionCache
    from minibroker.partitions.manager import PartitionManager
    from minibroker.quotas.manager import Client, QuotaManager

ANONYMOUS = "User:ANONYMOUS"


class Services:
    """The parts of the broker that handlers may use; filled once by `app.py`."""

    __slots__ = (
        "advertised_apis",
        "clock",
        "cluster",
        "dynamic",
        "fetch_sessions",
        "metrics",
        "partitions",
        "quotas",
        "supported_apis",
    )

    def __init__(
        self,
        *,
        clock: Clock,
        cluster: Cluster,
        dynamic: DynamicConfig,
        fetch_sessions: FetchSessionCache,
        metrics: Metrics,
        partitions: PartitionManager,
        quotas: QuotaManager,
        supported_apis: dict[int, tuple[int, int]],
        advertised_apis: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        self.clock = clock
        self.cluster = cluster
        self.dynamic = dynamic
        self.fetch_sessions = fetch_sessions
        self.metrics = metrics
        self.partitions = partitions
        self.quotas = quotas
        self.supported_apis = supported_apis
        """API key → (lowest, highest version) that this broker serves."""
        self.advertised_apis = supported_apis if advertised_apis is None else advertised_apis
        """The same as ApiVersions tells it: differs only where a pinned Kafka release did."""

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
