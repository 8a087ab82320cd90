"""All listeners of a broker, and the clean stop of its connections.

`app.py` makes one `Server`; `broker_listeners.py` chooses its listeners.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.settings import LISTENER_PREFIX
from minibroker.broker.config.unserved import is_read_at_start
from minibroker.broker.server.connections import Connections
from minibroker.broker.server.dispatch import Dispatcher
from minibroker.broker.server.listener import ListeningSocket, security_of
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.handlers.common.context import Services

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 10.0
"""How long a stop waits for requests in hand; long polls are answered at once and do not count."""


class Server:
    """The listeners and the connections of one broker. Belongs to the loop's thread."""

    __slots__ = (
        "_is_accepting",
        "_is_prepared",
        "_services",
        "_sockets",
        "connections",
        "dispatcher",
    )

    def __init__(self, services: Services, loop: asyncio.AbstractEventLoop) -> None:
        self.dispatcher = Dispatcher(services)
        """Constant."""
        for decoder in (self.dispatcher.decoder, self.dispatcher.control_decoder):
            decoder.begin(loop)
        self.connections = Connections(services, self.dispatcher, loop)
        """Constant."""
        self._services = services
        """Constant."""
        self._sockets: list[ListeningSocket] = []
        self._is_prepared = self._is_accepting = False

    @property
    def listeners(self) -> Mapping[Listener, int]:
        """Return the listeners that are bound, each as it stood in the settings, with its port."""
        return {
            listening_socket.listener: listening_socket.port for listening_socket in self._sockets
        }

    async def listen(self, listener: Listener) -> None:
        """Bind one listener. Raises OSError (port in use, no permission)."""
        listening_socket = ListeningSocket(self.connections, listener)
        await listening_socket.bind()
        self._sockets.append(listening_socket)

    async def open(self, listener: Listener) -> None:
        """Bind one more listener, and accept clients as soon as the others do.

        Raises OSError, ConfigError; then the listener is closed again.
        """
        await self.listen(listener)
        listening_socket = self._sockets[-1]
        try:
            await listening_socket.prepare()
        except BaseException:
            self._sockets.remove(listening_socket)
            await listening_socket.close()
            raise
        if self._is_accepting:
            listening_socket.start()

    async def close(self, listener: Listener) -> None:
        """Close one listener and its connections, each behind the answer to the request in hand.
        The request has `STOP_TIMEOUT_S` for it.
        """
        (listening_socket,) = (
            open_socket for open_socket in self._sockets if open_socket.listener == listener
        )
        self._sockets.remove(listening_socket)
        listening_socket.stop_accepting()
        await listening_socket.close()
        for connection in self.connections:
            if connection.listener is listening_socket.listener:
                connection.stop()
        self._services.timers.after(
            STOP_TIMEOUT_S * 1000, partial(self._abort_those_of, listening_socket.listener)
        )

    def _abort_those_of(self, listener: Listener) -> None:
        for connection in self.connections:
            if connection.listener is listener:
                connection.abort()

    async def prepare(self) -> None:
        """Have every listener read its settings of TLS and SASL. Raises ConfigError."""
        for listening_socket in self._sockets:
            await listening_socket.prepare()
        self._is_prepared = True

    # Certificates that change while the broker runs.

    def check_config(self, config: BrokerConfig) -> None:
        """Raise ConfigError if a listener cannot take over its certificates, or if no client could
        log in on a new one. At the start `prepare` checks that.
        """
        for listening_socket in self._sockets:
            if listening_socket.tls is not None:
                listening_socket.tls.check(config)
        if self._is_prepared:
            names = {listener.name for listener in self.listeners}
            for listener in config.listeners:
                if listener.name not in names:
                    security_of(listener, self._services, config)

    def on_broker_config(self, config: BrokerConfig, keys: frozenset[str]) -> None:
        """Have new clients get the certificates that were set or replaced."""
        prefixes = tuple(
            f"{LISTENER_PREFIX}{listener.name.lower()}." for listener in self.listeners
        )
        unread_keys = sorted(
            name
            for name in keys
            if self._is_prepared and name.startswith(prefixes) and is_read_at_start(name)
        )
        if unread_keys:
            logger.warning(
                "%s changed: listeners take it over when this broker starts again, as in Kafka",
                ", ".join(unread_keys),
            )
        try:
            self.load_certificates(config)
        except ConfigError as error:  # a file that was whole when it was checked
            logger.error("the certificates in use stay: %s", error)

    def on_topic_config(self, topic: str | None) -> None:
        """Do nothing: certificates do not depend on topics."""

    def load_certificates(self, config: BrokerConfig) -> None:
        """Read the certificates whose settings or files have changed. Raises ConfigError."""
        for listening_socket in self._sockets:
            if listening_socket.tls is not None:
                listening_socket.tls.update(config)

    def start_accepting(self) -> None:
        """Let clients in. Everything behind the listeners is ready."""
        self._is_accepting = True
        for listening_socket in self._sockets:
            listening_socket.start()

    async def stop(self) -> None:
        """Accept nobody, finish the requests in hand, close every connection.

        The caller has woken the long polls (`PartitionManager.wake_all`), so only tasks of ours
        still wait; `STOP_TIMEOUT_S` bounds them.
        """
        connections = self.connections
        for listening_socket in self._sockets:
            listening_socket.stop_accepting()
        connections.stop_idle_timer()
        for connection in connections:
            connection.stop()
        for listening_socket in self._sockets:
            await listening_socket.close()
        for connection in connections:
            connection.stop()  # it was accepted while the listener closed
        if not await connections.wait_until_closed(STOP_TIMEOUT_S):
            logger.warning("%d connections did not finish in time", len(connections))
            for connection in connections:
                connection.abort()
        for decoder in (self.dispatcher.decoder, self.dispatcher.control_decoder):
            decoder.close()

    def abandon(self) -> None:
        """Drop every connection as a dying process does; `stop` has to follow."""
        for listening_socket in self._sockets:
            listening_socket.stop_accepting()
        for connection in self.connections:
            connection.abort()
