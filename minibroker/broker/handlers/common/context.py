"""The arguments of a handler: `RequestContext`, the client, and in it `Services`, the broker.

A `RequestContext` lives as long as its connection. A connection handles one request at a time, so
the fields of the request are overwritten in place. A handler that waits finds them unchanged when
it continues, because its connection is not read meanwhile. The loop owns both classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.security.acls import Operation
from minibroker.kafka.ids import ANONYMOUS
from minibroker.kafka.java_strings import host_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.features import Features
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.coordinators import Coordinators
    from minibroker.broker.groups.coordinator import GroupCoordinator
    from minibroker.broker.metrics import Metrics
    from minibroker.broker.partitions.fetch_session import FetchSessionCache
    from minibroker.broker.partitions.log_directories import LogMoves
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.quotas.manager import Client, QuotaManager
    from minibroker.broker.quotas.replication_quota import ReplicationQuotas
    from minibroker.broker.resolver import Resolver
    from minibroker.broker.security.acls import ResourceType
    from minibroker.broker.security.authorizer import Authorizer
    from minibroker.broker.security.stored_passwords import StoredPasswords
    from minibroker.broker.security.token_store import TokenStore
    from minibroker.broker.timers import Timers
    from minibroker.broker.transactions.coordinator import TransactionCoordinator
    from minibroker.clock import Clock
    from minibroker.kafka.protocol.header import RepeatedHeader

PERMITTED_MAX = 1_000
"""Topics that a client may read, or write to, are forgotten all at once beyond this."""
PERMITTED_LENGTH_MAX = 249
"""A longer name is no topic's, and is not remembered."""


class Services:
    """The parts of the broker that handlers use. Constant after construction, but for the
    passwords, which are made when they are asked for first.
    """

    __slots__ = (
        "_coordinators",
        "_passwords",
        "advertised_apis",
        "authorizer",
        "clock",
        "cluster",
        "dynamic",
        "features",
        "fetch_sessions",
        "log_moves",
        "metrics",
        "partitions",
        "quotas",
        "replication_quotas",
        "resolver",
        "supported_apis",
        "timers",
        "tokens",
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
        replication_quotas: ReplicationQuotas,
        resolver: Resolver,
        timers: Timers,
        coordinators: Coordinators,
        supported_apis: dict[int, tuple[int, int]],
        advertised_apis: dict[int, tuple[int, int]] | None = None,
        authorizer: Authorizer | None = None,
        tokens: TokenStore | None = None,
    ) -> None:
        self._coordinators = coordinators
        self._passwords: StoredPasswords | None = None
        self.authorizer = authorizer
        """None: everyone may do everything."""
        self.clock = clock
        self.cluster = cluster
        self.dynamic = dynamic
        self.features = features
        self.fetch_sessions = fetch_sessions
        self.log_moves = log_moves
        self.metrics = metrics
        self.partitions = partitions
        self.quotas = quotas
        self.replication_quotas = replication_quotas
        self.resolver = resolver
        self.timers = timers
        self.tokens = tokens
        """None: no secret is set, so there are no delegation tokens."""
        self.supported_apis = supported_apis
        """API key → (lowest, highest version) that this broker serves."""
        self.advertised_apis = supported_apis if advertised_apis is None else advertised_apis
        """The ranges that ApiVersions lists: the same, unless an advertised release lists others.
        """

    @property
    def groups(self) -> GroupCoordinator:
        """Return the group coordinator; the first call makes it."""
        return self._coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """Return the transaction coordinator; the first call makes it."""
        return self._coordinators.transactions

    @property
    def passwords(self) -> StoredPasswords:
        """Return the passwords of altered settings; the first call makes it. Raises ConfigError."""
        if self._passwords is None:
            from minibroker.broker.security.stored_passwords import (  # noqa: PLC0415  most do without
                StoredPasswords,
            )

            self._passwords = StoredPasswords(self.dynamic.static)
        return self._passwords

    @property
    def config(self) -> BrokerConfig:
        """Return the broker's current settings, dynamic changes included."""
        return self.dynamic.broker


class RequestContext:
    """The identity of a connection, and the header of the request that it handles now."""

    __slots__ = (
        "api_key",
        "client_address",
        "client_id",
        "client_software_name",
        "client_software_version",
        "close_connection",
        "correlation_id",
        "host",
        "is_token",
        "listener",
        "note_controller",
        "principal",
        "readable",
        "repeated_header",
        "services",
        "version",
        "writable",
    )

    def __init__(
        self,
        *,
        services: Services,
        listener: Listener,
        client_address: str,
        close_connection: Callable[[str], None],
        note_controller: Callable[[], None] | None = None,
        principal: str = ANONYMOUS,
    ) -> None:
        self.services = services
        self.listener = listener
        self.client_address = client_address
        self.host = host_address(client_address.rpartition(":")[0].strip("[]"))
        """The client's address as Java writes it: ACLs and groups have it so."""
        self.principal: str
        """Changed by `identify` alone, as are the next two."""
        self.readable: set[str] | None
        """Topics that the client may read, as far as it asked; None: there is no authorizer."""
        self.writable: set[str] | None
        """The same for writing."""
        self.identify(principal)
        self.is_token = False
        """True where a delegation token was the credential."""
        self.close_connection = close_connection
        """Closes the connection once the finished answers are sent; the argument is the reason."""
        self.note_controller = note_controller or _ignore
        """Hears that the controller is at the other end: one of its requests passed its epochs."""
        # Of the client, told by ApiVersions.
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        # Of the request in hand; `server/dispatch` sets them before the handler runs.
        self.api_key = -1
        self.version = -1
        self.correlation_id = 0
        self.client_id: str | None = None
        self.repeated_header: RepeatedHeader | None = None
        """The header that the last two requests had, None: they differ."""

    def identify(self, principal: str) -> None:
        """Take over the principal that the client proved to be."""
        self.principal = principal
        authorizer = self.services.authorizer
        self.readable = self.writable = None
        if authorizer is not None:
            self.readable = authorizer.permitted_names(principal, self.host, Operation.READ)
            self.writable = authorizer.permitted_names(principal, self.host, Operation.WRITE)

    @property
    def quota_client(self) -> Client:
        """Return the client that is charged for the request in hand."""
        return self.principal, self.client_id or ""

    # Authorize: the questions of handlers. Without an authorizer each answer is yes.

    def authorize(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        is_filter: bool = False,
    ) -> bool:
        """Return whether the client may do this to the resource.

        `is_filter`: a refusal leaves something out of the answer, and is logged at DEBUG only.
        """
        authorizer = self.services.authorizer
        return authorizer is None or authorizer.allows(
            self.principal, self.host, operation, resource_type, name, self.api_key, is_filter
        )

    def authorize_once(
        self,
        permitted: set[str] | None,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        is_filter: bool = False,
    ) -> bool:
        """Do `authorize`, and remember a yes in `permitted`, which is `readable` or `writable`.

        A yes is not remembered while each one is to be logged.
        """
        authorizer = self.services.authorizer
        if authorizer is None or permitted is None or name in permitted:
            return True
        if not self.authorize(operation, resource_type, name, is_filter=is_filter):
            return False
        if not authorizer.logs_all and len(name) <= PERMITTED_LENGTH_MAX:
            if len(permitted) >= PERMITTED_MAX:
                permitted.clear()
            permitted.add(name)
        return True

    def authorize_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether the client may do this to at least one resource of the type."""
        authorizer = self.services.authorizer
        return authorizer is None or authorizer.allows_any(
            self.principal, self.host, operation, resource_type, self.api_key
        )


def _ignore() -> None:
    """Do nothing: the context has no connection."""
