"""A listening socket: binds, accepts, and stops accepting when the broker is full.

Accepting is a loop of ours, not `create_server`: a full listener holds one client back, and leaves
the next ones in the kernel's queue. asyncio's server cannot do that.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.quotas.rate import Rate
from minibroker.broker.resolver import is_address
from minibroker.broker.server.transport import ClientTransport
from minibroker.kafka.java_strings import host_address

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.handlers.common.context import Services
    from minibroker.broker.security.listener_tls import ListenerTls
    from minibroker.broker.security.sasl.mechanisms import Mechanisms
    from minibroker.broker.server.connections import Connections
    from minibroker.broker.server.tls_transport import TlsTransport
    from minibroker.broker.timers import Timer

logger = logging.getLogger(__name__)

_FILES_USED_UP: Final = frozenset({errno.EMFILE, errno.ENFILE})
_ADVICE: Final = "; clients wait until others leave: raise the limit of open files (ulimit -n)"
ACCEPT_RETRY_S: Final = 0.1
"""Wait of a failed accept for a connection to end before the next try."""
KNOCKS_MAX: Final = 8
"""Calls of `_knock` after which the loop stops to watch the socket, where accepting is held up.

The loop calls it in each turn while a client waits. To let one client in takes about two turns.
"""


class ListeningSocket:
    """One listener of the configuration, bound."""

    __slots__ = (
        "_connections",
        "_is_connecting",
        "_is_failing",
        "_is_stopping",
        "_is_watched",
        "_knocks",
        "_may_accept",
        "_mechanisms",
        "_rate",
        "_refused_clients",
        "_socket",
        "_task",
        "listener",
        "port",
        "tls",
    )

    def __init__(self, connections: Connections, listener: Listener) -> None:
        self._connections = connections
        self.listener = listener
        """Constant. The listener with the settings at the time of `bind`."""
        self.port = 0
        """The port that it has, once bound."""
        self._mechanisms: Mechanisms | None = None
        """Those of a SASL listener, once prepared."""
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_connecting = self._is_stopping = False
        self._is_failing = False
        """True from an accept that failed until the next one that does not: it is one log line."""
        self._is_watched = False
        """True while the loop looks for clients that wait to be accepted."""
        self._may_accept = asyncio.Event()
        """Set while there may be such a client."""
        self._knocks = 0
        """How often the loop has reported a client since the last look."""
        self.tls: ListenerTls | None = None
        """None for a listener without TLS, and before it is prepared."""
        self._rate = Rate()
        """Connections that were accepted here, served or not yet."""
        self._refused_clients: dict[socket.socket, Timer] = {}
        """Connections over the rate of their address, until they are closed."""

    async def prepare(self) -> None:
        """Read the settings of SASL and TLS in force, and the keys of signed tokens.

        Raises ConfigError for settings with which no client could log in.
        """
        services = self._connections.services
        self._mechanisms, self.tls = security_of(self.listener, services, services.config)
        if self._mechanisms is not None:
            await self._mechanisms.start(services.timers, services.clock)

    async def bind(self) -> None:
        """Bind and listen, on a port that is free where 0 is asked for.

        Raises OSError when the address cannot be had.
        """
        host = self.listener.host or "0.0.0.0"
        try:
            addresses = await self._connections.loop.getaddrinfo(
                # As bytes: the look-up encodes text with a codec that is slow to import.
                host.encode() if is_address(host) else host,
                self.listener.port,
                type=socket.SOCK_STREAM,
                flags=socket.AI_PASSIVE,
            )
        except UnicodeError:  # of IDNA: an empty label, or one that is too long
            raise OSError("this is no name of a host") from None
        family, _, _, _, address = addresses[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            # A port that waits for its last packets may be taken. On Windows this would let two
            # processes have one port.
            option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
            self._set_buffer(bound, "socket.receive.buffer.bytes", socket.SO_RCVBUF)
            bound.bind(address)
            bound.listen(self._connections.services.config.socket_listen_backlog_size)
            bound.setblocking(False)
        except OSError:
            bound.close()
            raise
        self._socket = bound
        self.port = int(bound.getsockname()[1])

    def _set_buffer(self, target: socket.socket, key: str, option: int) -> None:
        """Set a kernel buffer to the configured size; without one the system sizes it, better than
        Kafka's 100 KiB.

        Accepted sockets inherit the receive buffer. Raises OSError.
        """
        config = self._connections.services.config
        if key in config.originals and (size := config.integer(key)) > 0:
            target.setsockopt(socket.SOL_SOCKET, option, size)

    def start(self) -> None:
        """Begin to accept; the task belongs to this object and ends with `close`."""
        self._task = self._connections.loop.create_task(self._accept())

    def stop_accepting(self) -> None:
        """Let no more clients in; `close` has to follow."""
        self._is_stopping = True
        # A connection that is being made is let through: cancelled halfway it would be lost.
        if self._task is not None and not self._is_connecting:
            self._task.cancel()

    async def close(self) -> None:
        """Close the listening socket, and connections that were refused."""
        if self._mechanisms is not None:
            await self._mechanisms.close()
        if self._task is not None:
            # The loop must let go of the socket before it is closed.
            await asyncio.wait([self._task])
        for client, timer in self._refused_clients.items():
            timer.cancel()
            client.close()
        if self._socket is not None:
            self._socket.close()

    async def _wait_for_place(self) -> None:
        """Return when one more connection may take a place, by the rates and the numbers."""
        limits = self._connections.limits
        delay_ms = limits.delay_ms(self.listener, self._rate)
        if delay_ms:
            await self._wait(delay_ms)
        await limits.wait_for_room(self.listener)

    def _admit(self, client: socket.socket, host: str) -> bool:
        """Return whether to serve a connection, by the limits of its address; then a place is
        taken.

        A connection over its address's rate (KIP-612) is not served, and closed after the delay,
        not at once: a client that tries again immediately would only come faster.
        """
        connections = self._connections
        delay_ms = connections.limits.address_delay_ms(self.listener, self._rate, host)
        if delay_ms:
            self._refused_clients[client] = connections.services.timers.after(
                delay_ms, partial(self._close_refused, client)
            )
            return False
        if connections.limits.refuses_host(host):
            client.close()
            return False
        connections.take_place(self.listener, host)
        return True

    async def _wait(self, delay_ms: int) -> None:
        """Return in `delay_ms` of the broker's time."""
        over = asyncio.Event()
        timer = self._connections.services.timers.after(delay_ms, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def _close_refused(self, client: socket.socket) -> None:
        del self._refused_clients[client]
        client.close()

    async def _readable(self) -> None:
        """Return when a client waits to be accepted, or may wait.

        Not the loop's `sock_accept`: one that is cancelled just when it has let somebody in loses
        the connection.
        """
        assert self._socket is not None
        if not self._is_watched:
            self._connections.loop.add_reader(self._socket, self._knock)
            self._is_watched = True
        await self._may_accept.wait()
        self._may_accept.clear()
        self._knocks = 0

    def _knock(self) -> None:
        """Have a client accepted. The loop calls this in every turn while a client waits; after
        `KNOCKS_MAX` turns without an accept it stops.
        """
        self._may_accept.set()
        self._knocks += 1
        if self._knocks == KNOCKS_MAX:
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._is_watched and self._socket is not None:
            self._is_watched = False
            self._connections.loop.remove_reader(self._socket)

    def _new_connection(self, host: str, port: int) -> ClientTransport | TlsTransport:
        """Return the protocol of a socket that was accepted."""
        client = ClientTransport(self._connections, self.listener, host, port, self._mechanisms)
        if self.tls is None:
            return client
        from minibroker.broker.server.tls_transport import TlsTransport  # noqa: PLC0415  as ListenerTls

        return TlsTransport(self._connections, self.tls, client)

    async def _accept(self) -> None:
        try:
            while not self._is_stopping:
                await self._readable()
                try:
                    await self._accept_next()
                except Exception:  # a bug of ours costs this client, the next one is let in
                    logger.exception("cannot let a client in by listener %s", self.listener.name)
        finally:
            self._stop_watching()

    async def _accept_next(self) -> None:
        """Let a client in, if there is one, as soon as there is room for it."""
        assert self._socket is not None
        connections, loop = self._connections, self._connections.loop
        try:
            client, address = self._socket.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # No file handle left, or the peer went away: better when somebody has left.
            if not self._is_failing:
                self._is_failing = True
                advice = _ADVICE if error.errno in _FILES_USED_UP else ""
                logger.warning("cannot accept a connection: %s%s", error, advice)
            await connections.limits.wait_for_departure(ACCEPT_RETRY_S)
            return
        self._is_failing = False
        # From here on each part has the address in this one form: ACLs, limits, quotas, the log.
        host, port = host_address(address[0]), address[1]
        try:
            await self._wait_for_place()
        except asyncio.CancelledError:
            client.close()
            raise
        if not self._admit(client, host):
            return
        self._is_connecting = True
        try:
            connection = self._new_connection(host, port)
            self._set_buffer(client, "socket.send.buffer.bytes", socket.SO_SNDBUF)
            # The loop has it not block, and send small answers at once (TCP_NODELAY).
            await loop.connect_accepted_socket(lambda: connection, client)
        except Exception as error:
            client.close()
            connections.limits.give_back(self.listener, host)
            if not isinstance(error, OSError):
                raise
            logger.warning("connection of %s:%d lost while accepting: %s", host, port, error)
        finally:
            self._is_connecting = False


def security_of(
    listener: Listener, services: Services, config: BrokerConfig
) -> tuple[Mechanisms | None, ListenerTls | None]:
    """Return SASL and TLS of a listener under these settings, None for the one it does not use.

    Raises ConfigError for settings with which no client could log in.
    """
    mechanisms: Mechanisms | None = None
    tls: ListenerTls | None = None
    if listener.security_protocol.uses_sasl:
        from minibroker.broker.server.sasl_gate import mechanisms_of  # noqa: PLC0415  seldom needed

        mechanisms = mechanisms_of(services, listener, config)
    if listener.security_protocol.uses_tls:
        from minibroker.broker.security.listener_tls import (  # noqa: PLC0415  3 ms, seldom used
            ListenerTls,
        )

        tls = ListenerTls(listener, config)
    return mechanisms, tls
