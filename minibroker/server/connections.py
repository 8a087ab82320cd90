"""The open connections of a broker: their number, idle ones, places for tasks.

Listeners ask here before they let a client in. Transports report here, and find here what all
connections of a broker share. No timer runs while no client is connected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter, deque
from typing import TYPE_CHECKING, Protocol

from minibroker.server.request_memory import RequestMemory
from minibroker.server.turns import DataTurns
from minibroker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.config.broker import BrokerConfig, Listener
    from minibroker.errors import StorageError
    from minibroker.handlers.context import Services
    from minibroker.server.dispatch import Dispatcher
    from minibroker.server.interceptor import LoginInterceptor

logger = logging.getLogger(__name__)


class ClientConnection(Protocol):
    """One open connection: a `transport.ClientTransport`, or a `tls_transport.TlsTransport` in its
    handshake.
    """

    listener: Listener
    host: str
    address: str
    is_control: bool
    last_active_s: float

    @property
    def idle_since_s(self) -> float:
        """Return when the idle time began, on the loop's clock."""

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in hand."""

    def is_taking(self) -> bool:
        """Return whether the peer took bytes since the last call."""

    def start_queued(self) -> None:
        """Start the task of the request that waits, because a place is free."""

    def stop(self) -> None:
        """Close now, or as soon as the request in hand is answered."""

    def abort(self) -> None:
        """Close at once."""


class Connections:
    """The open connections of one broker. Belongs to the loop's thread."""

    __slots__ = (
        "_all_closed",
        "_connections_per_host",
        "_idle_timer",
        "_open",
        "_overrides",
        "_room",
        "_tasks_queued",
        "_tasks_running",
        "dispatcher",
        "handshakes",
        "login_interceptor",
        "loop",
        "memory",
        "request_bytes_max",
        "services",
        "turns",
    )

    def __init__(
        self, services: Services, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop
    ) -> None:
        config = services.config
        self.services = services
        """Constant, as are the next five."""
        self.dispatcher = dispatcher
        self.loop = loop
        self.request_bytes_max = config.socket_request_max_bytes
        self.memory = RequestMemory(config.queued_max_request_bytes, loop.call_soon)
        self.handshakes = Worker(_no_storage, "minibroker-handshakes")
        """For steps of TLS handshakes; its thread begins with the first."""
        self.handshakes.begin(loop)
        self.turns = DataTurns(loop.call_soon)
        self.login_interceptor: LoginInterceptor | None = None
        """The interceptor of logins; set by `minibroker.testing`."""
        self._open: set[ClientConnection] = set()
        self._connections_per_host: Counter[str] = Counter()
        self._overrides: tuple[dict[str, int], dict[str, int]] = ({}, {})
        """The setting that was resolved last, and its limits by address."""
        self._room = asyncio.Event()
        """Set when a connection ended, or when there may be more of them."""
        self._room.set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._tasks_running = 0
        self._tasks_queued: deque[ClientConnection] = deque()
        self._all_closed: asyncio.Future[None] | None = None
        """Done with the last connection; set while `wait_until_closed` waits."""

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def __iter__(self) -> Iterator[ClientConnection]:
        """Iterate over the connections that are open now; they may close meanwhile."""
        return iter(list(self._open))

    # Listeners of the brokers.

    def is_control_plane(self, listener: Listener) -> bool:
        """Return whether only the controller comes by this listener
        (`control.plane.listener.name`).
        """
        return listener.name == self.services.config.control_plane_listener_name

    def is_protected(self, listener: Listener) -> bool:
        """Return whether clients of other listeners take no place away from this one: limits of
        the whole broker do not hold here.

        Source: Kafka ConnectionQuotas.protectedListener.
        Differs from Kafka: the controller's listener is protected, too.
        """
        config = self.services.config
        is_between_brokers = listener.name == config.inter_broker_listener_name
        return self.is_control_plane(listener) or (is_between_brokers and len(config.listeners) > 1)

    # Limits on connections.

    async def wait_for_room(self) -> None:
        """Return when there are fewer connections than `max.connections`, as Kafka waits."""
        while len(self._open) >= self.services.config.max_connections:
            self._room.clear()
            await self._room.wait()

    async def wait_for_departure(self, timeout_s: float) -> None:
        """Return when a connection has ended, or after `timeout_s`."""
        self._room.clear()
        try:
            await asyncio.wait_for(self._room.wait(), timeout_s)
        except TimeoutError:
            return

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """Let waiting clients in if `max.connections` is larger now."""
        if "max.connections" in changed:
            self._room.set()

    def on_topic_config(self, topic: str | None) -> None:
        """Do nothing: connections do not depend on topics."""

    def refuses_host(self, host: str) -> bool:
        """Return whether the address has as many connections as `max.connections.per.ip` and its
        overrides allow."""
        config = self.services.config
        limit = config.max_connections_per_ip
        if config.max_connections_per_ip_overrides:
            limit = self._overrides_of(config.max_connections_per_ip_overrides).get(host, limit)
        if self._connections_per_host[host] < limit:
            return False
        self.services.metrics.refused_connections += 1
        logger.warning(
            "refused a connection from %s: it has %d already (max.connections.per.ip)",
            host,
            self._connections_per_host[host],
        )
        return True

    def _overrides_of(self, overrides: dict[str, int]) -> dict[str, int]:
        """Return the overrides by address; as in Kafka a name is looked up once per setting."""
        if self._overrides[0] is not overrides:
            self._overrides = (overrides, _by_address(overrides))
        return self._overrides[1]

    def add(self, connection: ClientConnection) -> None:
        """Count an open connection."""
        self._open.add(connection)
        self._connections_per_host[connection.host] += 1
        self.services.metrics.connections = len(self._open)
        if self._idle_timer is None:
            self._watch_idle(self.loop.time())

    def remove(self, connection: ClientConnection) -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)
        self._connections_per_host[connection.host] -= 1
        if not self._connections_per_host[connection.host]:
            del self._connections_per_host[connection.host]
        self.services.metrics.connections = len(self._open)
        self._room.set()
        if self._all_closed is not None and not self._open and not self._all_closed.done():
            self._all_closed.set_result(None)

    # Idle connections.

    def _watch_idle(self, oldest_s: float) -> None:
        idle_ms = self.services.config.connections_max_idle_ms
        if idle_ms >= 0:
            self._idle_timer = self.loop.call_at(oldest_s + idle_ms / 1000, self._close_idle)

    def _close_idle(self) -> None:
        """Close connections without activity for `connections.max.idle.ms`, and set the timer for
        the next one.

        A peer that takes its answers is active. Only this check notices that. If the peer stops in
        between, it is closed later than by Kafka, by at most the same time. A peer that has to log
        in has this time for it, whatever it sends: with Kafka a byte now and then would do.
        """
        self._idle_timer = None
        limit_s = self.services.config.connections_max_idle_ms / 1000
        now_s = self.loop.time()
        oldest_s = now_s
        for connection in list(self._open):
            if not connection.is_idle:
                continue
            if now_s - connection.last_active_s >= limit_s and connection.is_taking():
                connection.last_active_s = now_s
            if now_s - connection.idle_since_s >= limit_s:
                # Not `close`: a peer that takes nothing would keep its answers, and its place.
                logger.debug("closing idle connection of %s", connection.address)
                connection.abort()
            else:
                oldest_s = min(oldest_s, connection.idle_since_s)
        if self._open:
            self._watch_idle(oldest_s)

    # Requests that run as tasks: `queued.max.requests` at once.

    def may_start_task(self, connection: ClientConnection) -> bool:
        """Take a place for a task, or queue the connection for one. The controller never queues."""
        if (
            not connection.is_control
            and self._tasks_running >= self.services.config.queued_max_requests
        ):
            self._tasks_queued.append(connection)
            return False
        self._tasks_running += 1
        return True

    def task_ended(self) -> None:
        """Give the place back, and start the next task in the queue."""
        self._tasks_running -= 1
        if self._tasks_queued:
            self.loop.call_soon(self._start_queued)

    def _start_queued(self) -> None:
        """Fill free places. A connection that is gone by now leaves its place to the next."""
        limit = self.services.config.queued_max_requests
        while self._tasks_queued and self._tasks_running < limit:
            self._tasks_queued.popleft().start_queued()

    # The end.

    def stop_idle_timer(self) -> None:
        """Close idle connections no more."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    async def wait_until_closed(self, timeout_s: float) -> bool:
        """Return True when no connection is left, False after `timeout_s`."""
        if not self._open:
            return True
        self._all_closed = self.loop.create_future()
        try:
            await asyncio.wait_for(self._all_closed, timeout_s)
        except TimeoutError:
            return False
        return True


def _no_storage(error: StorageError) -> None:
    """Do nothing: no step of a handshake touches a log directory."""


def _by_address(overrides: dict[str, int]) -> dict[str, int]:
    """Return `max.connections.per.ip.overrides` by address: a host name gives all its addresses."""
    limits: dict[str, int] = {}
    for name, limit in overrides.items():
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError as error:
            logger.warning("max.connections.per.ip.overrides: no address of %s: %s", name, error)
            continue
        limits.update((str(address[0]), limit) for *_, address in found)
    return limits
