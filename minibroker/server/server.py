"""All listeners of a broker, and the clean stop of its connections.

`app.py` makes one `Server` and gives it its listeners.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.config.unserved import is_read_at_start
from minibroker.errors import ConfigError
from minibroker.server.connections import Connections
from minibroker.server.dispatch import Dispatcher
from minibroker.server.listener import ListeningSocket

if TYPE_CHECKING:
    import asyncio

    from minibroker.config.broker import BrokerConfig, Listener
    from minibroker.handlers.context import Services

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 10.0
"""How long a stop waits for requests in hand; long polls are answered at once and do not count."""


class Server:
    """The listeners and the connections of one broker. Belongs to the loop's thread."""

    __slots__ = ("_is_prepared", "_sockets", "connections", "dispatcher")

    def __init__(self, services: Services, loop: asyncio.AbstractEventLoop) -> None:
        self.dispatcher = Dispatcher(services)
        """Constant, as is the next."""
        for decoder in (self.dispatcher.decoder, self.dispatcher.control_decoder):
            decoder.begin(loop)
        self.connections = Connections(services, self.dispatcher, loop)
        self._sockets: list[ListeningSocket] = []
        self._is_prepared = False

    def listen(self, listener: Listener) -> tuple[str, int]:
        """Bind one listener; return the bound host and port. Raises OSError (port in use, no
        permission).
        """
        listening = ListeningSocket(self.connections, listener)
        address = listening.bind()
        self._sockets.append(listening)
        return address

    async def prepare(self) -> None:
        """Have every listener read its settings of TLS and SASL. Raises ConfigError."""
        for listening in self._sockets:
            await listening.prepare()
        self._is_prepared = True

    # Certificates that change while the broker runs.

    def check_config(self, config: BrokerConfig) -> None:
        """Raise ConfigError if a listener could not take over its certificates."""
        for listening in self._sockets:
            if listening.tls is not None:
                listening.tls.check(config)

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """Have new clients get the certificates that were set or replaced."""
        waiting = sorted(filter(is_read_at_start, changed)) if self._is_prepared else []
        if waiting:
            logger.warning(
                "%s changed: listeners take it over when this broker starts again, as in Kafka",
                ", ".join(waiting),
            )
        try:
            self.load_certificates(config)
        except ConfigError as error:  # a file that was whole when it was checked
            logger.error("the certificates in use stay: %s", error)

    def on_topic_config(self, topic: str | None) -> None:
        """Do nothing: certificates do not depend on topics."""

    def load_certificates(self, config: BrokerConfig) -> None:
        """Read the certificates whose settings or files have changed. Raises ConfigError."""
        for listening in self._sockets:
            if listening.tls is not None:
                listening.tls.update(config)

    def start_accepting(self) -> None:
        """Let clients in. Everything behind the listeners is ready."""
        for listening in self._sockets:
            listening.start()

    async def stop(self) -> None:
        """Accept nobody, finish the requests in hand, close every connection.

        The caller has woken the long polls (`PartitionManager.wake_all`), so only tasks of ours
        still wait; `STOP_TIMEOUT_S` bounds them.
        """
        connections = self.connections
        for listening in self._sockets:
            listening.stop_accepting()
        connections.stop_idle_timer()
        for connection in connections:
            connection.stop()
        for listening in self._sockets:
            await listening.close()
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
        for listening in self._sockets:
            listening.stop_accepting()
        for connection in self.connections:
            connection.abort()
