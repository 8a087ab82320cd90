"""A broker with its control API; `minibroker serve --control` runs it in place of `app.Broker`.

The API answers before the broker is ready, and until it has stopped.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.control.api import ControlApi
from minibroker.control.http import HttpServer
from minibroker.errors import ConfigError
from minibroker.testing.node import Node
from minibroker.testing.nodes import Nodes

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from minibroker.cluster.shared import TreeSession
    from minibroker.config.broker import BrokerConfig
    from minibroker.config.options import TopicToCreate
    from minibroker.testing.clock import MovableClock

logger = logging.getLogger(__name__)


class ControlledBroker:
    """A broker with the control API beside it. Like `app.Broker`: call `start`, then `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        host: str,
        port: int,
        token: str | None,
        *,
        clock: MovableClock | None = None,
        new_tree: Callable[[], TreeSession] | None = None,
        nodes: Nodes | None = None,
    ) -> None:
        """`clock`, `new_tree`, `nodes`: what brokers of one process share; None: the broker is
        alone.
        """
        self._nodes = nodes if nodes is not None else Nodes()
        self._config = config
        self._clock = clock
        self._new_tree = new_tree
        self._host = host
        self._port = port
        self._token = token
        self._node: Node
        self._server: HttpServer
        self.control_address: tuple[str, int] = (host, port)
        """Host and port of the API, after `start`."""

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port that clients are told."""
        return self._node.address

    @property
    def failure(self) -> asyncio.Future[str]:
        """Return a future; it gets the reason when the broker cannot continue."""
        return self._node.failure

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None:
        """Start to serve. Raises MinibrokerError; then nothing is left running."""
        self._node = Node(self._config, topics, clock=self._clock, new_tree=self._new_tree)
        self._nodes.add(self._node)
        self._server = HttpServer(ControlApi(self._node, self._token, self._nodes).handle)
        try:
            port = await self._server.listen(self._host, self._port)
        except OSError as error:
            raise ConfigError(
                f"--control {self._host}:{self._port}: cannot listen: {error.strerror or error}"
            ) from error
        self.control_address = (self._host, port)
        try:
            await self._node.start()
        except BaseException:
            await self._server.close()
            raise
        logger.info("control API on http://%s:%d", *self.control_address)

    async def stop(self, *, hands_over: bool = True) -> None:
        """Do `app.Broker.stop`. Raises MinibrokerError."""
        try:
            await self._node.stop(hands_over=hands_over)
        finally:
            await self._server.close()
