"""The open connections of a broker: their number, idle ones, places for tasks.

Listeners take a place here before they let a client in (`connection_limits.py` says when there is
one). Transports report here, and find here what all connections of a broker share. No timer runs
while no client is connected.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from minibroker.broker.server.connection_limits import ConnectionLimits
from minibroker.broker.server.request_memory import RequestMemory
from minibroker.broker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.handlers.common.context import Services
    from minibroker.broker.server.dispatch import Dispatcher
    from minibroker.broker.server.interceptor import LoginInterceptor
    from minibroker.kafka.errors import StorageError

    class ClientConnection(Protocol):
        """One open connection: a `transport.ClientTransport`, or a `tls_transport.TlsTransport` in
        its handshake.
        """

        listener: Listener
        host: str
        address: str
        is_control: bool
        last_active_s: float

        @property
        def idle_since_s(self) -> float:
            """Return when the idle time began, on the loop's clock."""

        def is_taking(self) -> bool:
            """Return whether the peer took bytes since the last call."""

        def start_queued(self) -> None:
            """Start the task of the request that waits, because a place is free."""

        def stop(self) -> None:
            """Close now, or as soon as the request in hand is answered."""

        def drop(self) -> None:
            """Close at once; work in hand goes on, without an answer."""

        def abort(self) -> None:
            """Close at once, and end the work in hand."""


logger = logging.getLogger(__name__)


class Connections:
    """The open connections of one broker. Belongs to the loop's thread."""

    __slots__ = (
        "_all_closed",
        "_idle_timer",
        "_open",
        "_tasks_queued",
        "_tasks_running",
        "dispatcher",
        "handshakes",
        "limits",
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
        """Constant."""
        self.dispatcher = dispatcher
        """Constant."""
        self.loop = loop
        """Constant."""
        self.request_bytes_max = config.socket_request_max_bytes
        """Constant. The largest request, in bytes."""
        self.memory = RequestMemory(config.queued_max_request_bytes, loop.call_soon)
        """Constant."""
        self.handshakes = Worker(_no_storage, "minibroker-handshakes")
        """Constant. For steps of TLS handshakes; its thread begins with the first."""
        self.handshakes.begin(loop)
        self.turns = DataTurns(loop.call_soon)
        """Constant."""
        self.limits = ConnectionLimits(services)
        """Constant."""
        self.login_interceptor: LoginInterceptor | None = None
        """Constant after the start. The interceptor of logins; the rig sets it."""
        self._open: dict[ClientConnection, None] = {}
        """In the order in which they came."""
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

    # Places for connections.

    def take_place(self, listener: Listener, host: str) -> None:
        """Take the place of a connection that will be served. Where only the protected listener
        had room, another connection makes way.
        """
        self.limits.take(listener, host)
        self._close_excess()

    def _close_excess(self) -> None:
        """Close the connections beyond `max.connections` that were silent for longest. Those of
        the protected listener stay.

        Source: Kafka Processor.closeExcessConnections, which looks at one thread's connections.
        """
        excess = self.limits.excess
        if not excess:
            return
        unprotected = (
            client for client in self._open if not self.limits.is_protected(client.listener)
        )
        for connection in heapq.nsmallest(
            excess, unprotected, key=lambda client: client.last_active_s
        ):
            logger.info("closing %s: max.connections is exceeded", connection.address)
            connection.drop()

    def on_broker_config(self, config: BrokerConfig, keys: frozenset[str]) -> None:
        """Apply altered limits to connections that wait, and to open ones."""
        self.limits.look_again()
        self._close_excess()

    def on_topic_config(self, topic: str | None) -> None:
        """Do nothing: connections do not depend on topics."""

    # Connections that come and go.

    def add(self, connection: ClientConnection) -> None:
        """Add an open connection, for which a place was taken."""
        self._open[connection] = None
        self.services.metrics.connections = len(self._open)
        if self._idle_timer is None:
            self._watch_idle(self.loop.time())

    def remove(self, connection: ClientConnection) -> None:
        """Forget a connection that is closed, and give its place back."""
        self.hand_over(connection)
        self.limits.give_back(connection.listener, connection.host)
        if self._all_closed is not None and not self._open and not self._all_closed.done():
            self._all_closed.set_result(None)

    def hand_over(self, connection: ClientConnection) -> None:
        """Forget a connection whose place another one has now."""
        del self._open[connection]
        self.services.metrics.connections = len(self._open)

    # Idle connections.

    def _watch_idle(self, oldest_s: float) -> None:
        idle_ms = self.services.config.connections_max_idle_ms
        if idle_ms >= 0:
            self._idle_timer = self.loop.call_at(oldest_s + idle_ms / 1000, self._close_idle)

    def _close_idle(self) -> None:
        """Close connections without activity for `connections.max.idle.ms`, and set the timer for
        the next one. A request that waits, as a long Fetch does, is no activity.

        A peer that takes its answers is active. Only this check notices that. If the peer stops in
        between, it is closed later than by Kafka, by at most the same time. A peer that has to log
        in has this time for it, whatever it sends: with Kafka a byte now and then would do.
        """
        self._idle_timer = None
        limit_s = self.services.config.connections_max_idle_ms / 1000
        now_s = self.loop.time()
        oldest_s = now_s
        for connection in list(self._open):
            if now_s - connection.last_active_s >= limit_s and connection.is_taking():
                connection.last_active_s = now_s
            if now_s - connection.idle_since_s >= limit_s:
                # Not `close`: a peer that takes nothing would keep its answers, and its place.
                logger.debug("closing idle connection of %s", connection.address)
                connection.drop()
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
        """Stop to close idle connections."""
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


DATA_PART_MS: Final = 2
"""Time in which runs of data requests may begin; the first one of a part always may."""


class DataTurns:
    """Shared by all connections of a broker. Belongs to the loop."""

    __slots__ = ("_call_soon", "_calls", "_ends_ns", "_has_turned", "_now_ns", "controllers")

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        now_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        """`call_soon`: the loop's. `now_ns`: a clock that only grows."""
        self._call_soon = call_soon
        self._now_ns = now_ns
        self.controllers = 0
        """Open connections of controllers; their transports count them."""
        self._ends_ns = 0
        """End of the part."""
        self._has_turned = True
        """True once the loop has turned since the part began."""
        self._calls: dict[Callable[[], None], None] = {}
        """Called when the loop has looked at its sockets, in this order: each asks again."""

    def may_run(self, ask_again: Callable[[], None]) -> bool:
        """Return whether a run of data requests may begin now; else call `ask_again` when the loop
        has looked at its sockets.
        """
        now_ns = self._now_ns()
        if now_ns >= self._ends_ns or self._calls:
            if self._calls or not self._has_turned:
                self._calls[ask_again] = None
                return False
            self._ends_ns = now_ns + DATA_PART_MS * 1_000_000
            self._has_turned = False
            self._call_soon(self._turn)
        return True

    def _turn(self) -> None:
        """Note that the loop turns. It calls this before it looks at its sockets."""
        self._has_turned = True
        if self._calls:
            self._call_soon(self._go_on)

    def _go_on(self) -> None:
        calls, self._calls = self._calls, {}
        for ask_again in calls:
            ask_again()
