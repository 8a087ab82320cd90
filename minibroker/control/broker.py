"""A broker with its control API; `minibroker serve --control` runs it in place of `app.Broker`.

The API answers before the broker is ready, and until it has stopped.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.control.access import Access
from minibroker.control.api import ControlApi
from minibroker.control.server import HttpServer
from minibroker.kafka.errors import ConfigError
from minibroker.rig.node import Node
from minibroker.rig.nodes import Nodes

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable, Sequence

    from minibroker.broker.app import Broker as AppBroker
    from minibroker.broker.cluster.shared import TreeSession
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.control import ControlOptions
    from minibroker.broker.config.topic_option import TopicToCreate
    from minibroker.control.messages import HttpRequest, Work
    from minibroker.rig.clock import MovableClock

logger = logging.getLogger(__name__)


class ControlledBroker:
    """A broker with the control API beside it. Like `app.Broker`: call `start`, then `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        options: ControlOptions,
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
        self._options = options
        self._node: Node
        self._api: ControlApi
        self._server: HttpServer
        self._port = options.port

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port that clients are told."""
        return self._node.address

    @property
    def app(self) -> AppBroker:
        """Return the broker itself, after `start`."""
        return self._node.app

    @property
    def running_app(self) -> AppBroker | None:
        """Return the broker itself, None while a fault has it killed or paused."""
        return self._node.running_app

    @property
    def control_url(self) -> str:
        """Return the URL of the API, after `start`."""
        scheme = "http" if self._options.tls is None else "https"
        return f"{scheme}://{self._options._replace(port=self._port).address}"

    def show_registry(self, begin: Callable[[HttpRequest], Work]) -> None:
        """Let the API show the schema registry of this broker, which began to serve; `begin`
        returns the work for a request whose caller this API has let in.
        """
        self._api.scope.registry.begin = begin

    @property
    def failure(self) -> asyncio.Future[str]:
        """Return a future; it gets the reason when the broker cannot continue."""
        return self._node.failure

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None:
        """Start to serve. Raises MinibrokerError; then nothing is left running."""
        self._node = Node(self._config, topics, clock=self._clock, new_tree=self._new_tree)
        self._nodes.add(self._node)
        access = Access(
            self._options.token,
            self._options.read_token,
            is_secured=lambda: self._settings().is_secured,
            page_only_reads=self._options.page_only_reads,
        )
        self._api = ControlApi(self._node, access, self._nodes)
        self._server = HttpServer(self._api.begin, self._context_source())
        try:
            self._port = await self._server.listen(self._options.host, self._options.port)
        except OSError as error:
            raise ConfigError(
                f"--control {self._options.address}: cannot listen: {error.strerror or error}"
            ) from error
        try:
            await self._node.start()
        except BaseException:
            await self._server.close()
            raise
        logger.info("control API on %s%s", self.control_url, self._limits())

    def _limits(self) -> str:
        """Return what the line about the API says of a secured broker without a token."""
        if self._options.has_token or not self._config.is_secured:
            return ""
        return "; without a token it only reads, as the broker is secured (--control-token @FILE)"

    def _context_source(self) -> Callable[[], ssl.SSLContext] | None:
        """Return what gives a connection its TLS, None for plain HTTP. Raises ConfigError."""
        if self._options.tls is None:
            return None
        from minibroker.control.tls import ControlTls  # noqa: PLC0415  3 ms, seldom used

        return ControlTls(self._options.tls, self._settings).context

    def _settings(self) -> BrokerConfig:
        """Return the broker's settings in force; those of the start while it does not run."""
        return self._node.app.dynamic.broker if self._node.is_running else self._config

    async def stop(self, *, hands_over: bool = True) -> None:
        """Do `app.Broker.stop`. Raises MinibrokerError."""
        try:
            await self._node.stop(hands_over=hands_over)
        finally:
            await self._server.close()
