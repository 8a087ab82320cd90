"""All listeners and connections of a broker: limits, idle connections, the clean stop.

Connections report here; `app.py` makes one `Server` and gives it its listeners. No timer runs
while nobody is connected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from minibroker.server.dispatch import Dispatcher
from minibroker.server.listener import ListeningSocket

if TYPE_CHECKING:
    from minibroker.config.broker import BrokerConfig, Listener
    from minibroker.handlers.context import Services
    from minibroker.server.connection import Connection

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 10.0
"""How long a stop waits for requests in hand; long polls are answered at once and do not count."""


class Server:
    """What the connections of one broker share."""

    def __init__(self, services: Services, loop: asyncio.AbstractEventLoop) -> None:
        config = services.config
        self.services = services
        self.loop = loop
        self.dispatcher = Dispatcher(services)
        self.request_bytes_max = config.socket_request_max_bytes
        self.connections: set[Connection] = set()
        self._connections_per_host: Counter[str] = Counter()
        self._overrides: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._sockets: list[ListeningSocket] = []
        self._room = asyncio.Event()
        self._room.set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._tasks_running = 0
        self._tasks_queued: deque[Connection] = deque()
        self._stopped: asyncio.Future[None] | None = None

    async def listen(self, listener: Listener) -> tuple[str, int]:
        """Bind one listener and accept from it; returns the bound host and port.

        Raises StorageError's cousin `OSError` (port in use, no permission) to `app.py`.
        """
        listening = ListeningSocket(self, listener)
        address = listening.bind()
        self._sockets.append(listening)
        return address

    def start_accepting(self) -> None:
        """Let clients in: called once everything behind the listeners is ready."""
        for listening in self._sockets:
            listening.start()

    # Limits on connections.

    @property
    def connections_max(self) -> int:
        return self.services.config.max_connections

    async def wait_for_room(self) -> None:
        """`max.connections`: a full broker accepts nobody until somebody leaves (as Kafka)."""
        while len(self.connections) >= self.connections_max:
            self._room.clear()
            await self._room.wait()

    async def wait_for_departure(self, timeout_s: float) -> None:
        """Until a connection ends, or for so long."""
        self._room.clear()
        try:
            await asyncio.wait_for(self._room.wait(), timeout_s)
        except TimeoutError:
            return

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """A larger `max.connections` lets those in who wait at the door."""
        if "max.connections" in changed:
            self._room.set()

    def on_topic_config(self, topic: str | None) -> None:
        """Topics do not matter to connections."""

    def refuses_host(self, host: str) -> bool:
        """`max.connections.per.ip` and overrides: True when this address has all it may have."""
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
        """By address; names are looked up once per configuration, as Kafka does."""
        if self._overrides[0] is not overrides:
            self._overrides = (overrides, _by_address(overrides))
        return self._overrides[1]

    def connection_opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._connections_per_host[connection.host] += 1
        self.services.metrics.connections = len(self.connections)
        if self._idle_timer is None:
            self._watch_idle(self.loop.time())

    def connection_closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._connections_per_host[connection.host] -= 1
        if not self._connections_per_host[connection.host]:
            del self._connections_per_host[connection.host]
        self.services.metrics.connections = len(self.connections)
        self._room.set()
        self._signal_stopped()

    # Idle connections.

    def _watch_idle(self, oldest_s: float) -> None:
        idle_ms = self.services.config.connections_max_idle_ms
        if idle_ms >= 0:
            self._idle_timer = self.loop.call_at(oldest_s + idle_ms / 1000, self._close_idle)

    def _close_idle(self) -> None:
        """`connections.max.idle.ms`: close who was silent too long, look again at the next one.

        Who takes its answers is not silent. It is known at such a look only: who stops in between
        is closed up to this time later than by Kafka.
        """
        self._idle_timer = None
        limit_s = self.services.config.connections_max_idle_ms / 1000
        now_s = self.loop.time()
        oldest_s = now_s
        for connection in list(self.connections):
            if not connection.is_idle:
                continue
            if now_s - connection.last_active_s >= limit_s and connection.is_taking():
                connection.last_active_s = now_s
            if now_s - connection.last_active_s >= limit_s:
                # Not `close`: a peer that takes nothing would keep its answers, and its place.
                logger.debug("closing idle connection of %s", connection.address)
                connection.abort()
            else:
                oldest_s = min(oldest_s, connection.last_active_s)
        if self.connections:
            self._watch_idle(oldest_s)

    # Requests that run as tasks: `queued.max.requests` at once.

    def may_start_task(self, connection: Connection) -> bool:
        """Take a place for a task, or queue the connection for one."""
        if self._tasks_running >= self.services.config.queued_max_requests:
            self._tasks_queued.append(connection)
            return False
        self._tasks_running += 1
        return True

    def task_ended(self) -> None:
        """Give the place back and start who waits for it."""
        self._tasks_running -= 1
        if self._tasks_queued:
            self.loop.call_soon(self._start_queued)

    def _start_queued(self) -> None:
        """Fill free places; connections that are gone by now leave theirs to the next."""
        limit = self.services.config.queued_max_requests
        while self._tasks_queued and self._tasks_running < limit:
            self._tasks_queued.popleft().start_queued()

    # The clean stop.

    async def stop(self) -> None:
        """Accept nobody, finish what is in hand, close every connection.

        The caller has woken the long polls (`PartitionManager.wake_all`), so what still waits are
        tasks of ours; `STOP_TIMEOUT_S` bounds them.
        """
        for listening in self._sockets:
            listening.stop_accepting()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for connection in list(self.connections):
            connection.stop()
        for listening in self._sockets:
            await listening.close()
        for connection in list(self.connections):
            connection.stop()  # who came through the door as it closed
        if self.connections:
            self._stopped = self.loop.create_future()
            try:
                await asyncio.wait_for(self._stopped, STOP_TIMEOUT_S)
            except TimeoutError:
                logger.warning("%d connections did not finish in time", len(self.connections))
                for connection in list(self.connections):
                    connection.abort()

    def abandon(self) -> None:
        """Let go of every connection as a dying process does; `stop` has to follow."""
        for listening in self._sockets:
            listening.stop_accepting()
        for connection in list(self.connections):
            connection.abort()

    def _signal_stopped(self) -> None:
        if self._stopped is not None and not self.connections and not self._stopped.done():
            self._stopped.set_result(None)


def _by_address(overrides: dict[str, int]) -> dict[str, int]:
    """`max.connections.per.ip.overrides` by address: host names stand for all of theirs."""
    limits: dict[str, int] = {}
    for name, limit in overrides.items():
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError as error:
            logger.warning("max.connections.per.ip.overrides: no address of %s: %s", name, error)
            continue
        limits.update((str(address[0]), limit) for *_, address in found)
    return limits
