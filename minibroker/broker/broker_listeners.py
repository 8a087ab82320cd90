"""The listeners of a broker: those of its settings are open, and clients are told their addresses.

`app` makes one `BrokerListeners`. At the start it opens the listeners of the settings. When
`listeners` or `advertised.listeners` are altered while the broker runs, it opens what is new,
closes what is gone with its connections, and writes the addresses into the registration. Clients
of other listeners notice nothing. The answer to the alteration does not wait for this, as in Kafka.

A listener that is open is known by its name: another address of it is told at once, and bound at
the next start. Both are Kafka's ways. Differs from Kafka: a listener that cannot be opened is not
told to clients, and every later change of the listeners tries again.

Source: Kafka DynamicListenerConfig, KafkaServer.createBrokerInfo.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.image import Endpoint
from minibroker.broker.config.listener_changes import check_listener_changes
from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.kafka.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.server.server import Server

logger = logging.getLogger(__name__)

_ADVICE: Final = {
    errno.EADDRINUSE: ": end the program that listens there, or take another port; 0 is a free one",
    errno.EADDRNOTAVAIL: ": no interface of this machine has the address",
    errno.EACCES: ": a port from 1024 up needs no permission",
}
"""Error of `bind` → what to do."""


class BrokerListeners:
    """The listeners of one broker. Belongs to the loop's thread."""

    def __init__(self, server: Server, cluster: Cluster, dynamic: DynamicConfig) -> None:
        self._server = server
        """Constant."""
        self._cluster = cluster
        """Constant."""
        self._dynamic = dynamic
        """Constant."""
        self._changes = asyncio.Lock()
        """Held while listeners are opened and closed."""
        self._changer: asyncio.Task[None] | None = None
        """Opens and closes listeners after the start."""
        self._is_closed = False

    @property
    def ports(self) -> dict[str, int]:
        """Return listener → the port that it has."""
        return {listener.name: port for listener, port in self._server.listeners.items()}

    async def bind(self) -> None:
        """Bind the listeners of the settings in force, those that were altered in earlier runs:
        before clients come in.

        The registration gets their addresses. Raises StorageError where one cannot be bound.
        """
        listeners, static = self._dynamic.broker.listeners, self._dynamic.static.listeners
        if listeners != static:
            logger.warning(
                "listeners=%s were altered while the broker ran, and stand over %s",
                ",".join(map(str, listeners)),
                ",".join(map(str, static)),
            )
        for listener in listeners:
            await self._bind(listener)
            warn_where_open(listener, self._dynamic.broker)
        self._cluster.set_endpoints(self.endpoints())

    async def _bind(self, listener: Listener) -> None:
        try:
            await self._server.listen(listener)
        except OSError as error:
            is_altered = listener not in self._dynamic.static.listeners
            source = " (listeners, as altered while the broker ran)" if is_altered else ""
            raise StorageError(f"{_complaint(listener, error)}{source}") from error

    def endpoints(self) -> list[Endpoint]:
        """Return the addresses that clients are told, in the order of `advertised.listeners`."""
        ports = self.ports
        return [
            Endpoint(
                listener.name,
                listener.host,
                listener.port or ports[listener.name],
                listener.security_protocol,
            )
            for listener in self._dynamic.broker.advertised_listeners
            if listener.name in ports
        ]

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if listeners that are open cannot go over to these settings."""
        check_listener_changes(self._dynamic.static, self._dynamic.broker, config)

    async def follow(self) -> None:
        """Open the listeners of the settings in force, close others, publish the addresses.

        A listener that cannot be opened is an error in the log. Raises CoordinationError.
        """
        async with self._changes:
            if self._is_closed:
                return
            self._changer = asyncio.current_task()
            try:
                await self._open_and_close()
            finally:
                self._changer = None
            endpoints = self.endpoints()
            if tuple(endpoints) != self._cluster.this_broker.endpoints:
                await self._cluster.advertise(endpoints)

    async def _open_and_close(self) -> None:
        new_listeners = {listener.name: listener for listener in self._dynamic.broker.listeners}
        for listener, port in self._server.listeners.items():
            new_listener = new_listeners.pop(listener.name, None)
            if new_listener is None:
                await self._server.close(listener)
                logger.info("listener %s is closed", listener)
            elif new_listener not in (listener, listener._replace(port=port)):
                logger.warning(
                    "%s takes over its address %s:%d when this broker starts again, as in Kafka",
                    listener,
                    new_listener.host,
                    new_listener.port,
                )
        for listener in new_listeners.values():
            try:
                await self._server.open(listener)
            except OSError as error:
                logger.error("%s; clients are not told of it", _complaint(listener, error))
            except ConfigError as error:
                logger.error("cannot open listener %s: %s", listener.name, error)
            else:
                logger.info("listener %s is open", listener)
                warn_where_open(listener, self._dynamic.broker)

    def close(self) -> None:
        """Open no more listeners; the server's stop closes those that are open."""
        self._is_closed = True
        if self._changer is not None:
            self._changer.cancel()


def warn_where_open(listener: Listener, config: BrokerConfig) -> None:
    """Log a listener that has no security and that other machines may reach."""
    if listener.is_local or listener.security_protocol is not SecurityProtocol.PLAINTEXT:
        return
    logger.warning(
        "listener %s is on an address that other machines may reach, and asks for no login: %s",
        listener,
        "whoever reaches it may read and change everything"
        if config.authorizer is None
        else "whoever reaches it is User:ANONYMOUS",
    )


def _complaint(listener: Listener, error: OSError) -> str:
    advice = _ADVICE.get(error.errno or 0, "")
    return f"cannot listen on {listener.host}:{listener.port}: {error.strerror or error}{advice}"
