"""The registry beside one broker of this process: its HTTP server, between `start` and `stop`.

It answers once the broker serves. A broker that is killed and started again keeps its registry;
meanwhile requests get an error.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.control.server import HttpServer
from minibroker.kafka.errors import ConfigError, MinibrokerError
from minibroker.registry.access import RegistryAccess
from minibroker.registry.api import RegistryApi
from minibroker.registry.checking import SchemaChecks
from minibroker.registry.errors import RegistryError
from minibroker.registry.forwarding import Forwarding, publish, withdraw
from minibroker.registry.topic import SchemasTopic

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from minibroker.broker.app import Broker
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.registry import RegistryOptions
    from minibroker.control.tls import ControlTls

logger = logging.getLogger(__name__)

SERVICE: Final = "the schema registry"
"""Its name in log lines."""
EVERY_ADDRESS: Final = ("0.0.0.0", "::")
"""Hosts that stand for all addresses of this machine."""


class RegistryService:
    """The registry of one broker. The loop owns it."""

    def __init__(
        self, broker: Callable[[], Broker | None], options: RegistryOptions, *, has_peers: bool
    ) -> None:
        """`broker`: returns the broker, None while it does not run. `has_peers`: other brokers
        may have registries, which this one forwards requests to.
        """
        self._broker = broker
        self._options = options
        self._has_peers = has_peers
        self._checks = SchemaChecks()
        self._server: HttpServer
        self._config: BrokerConfig
        self.api: RegistryApi
        """Constant after `start`."""

    @property
    def url(self) -> str:
        """Return the URL for clients, after `start`."""
        return self._options.url

    async def start(self) -> None:
        """Begin to serve. Raises MinibrokerError; then nothing is left running."""
        options = self._options
        tls = self._tls()
        self.api = RegistryApi(
            SchemasTopic(self._broker),
            self._checks,
            RegistryAccess(options.users, is_local=options.is_local),
            Forwarding(partial(_peer_context, tls)),
        )
        self._server = HttpServer(
            self.api.begin,
            None if tls is None else tls.context,
            service=SERVICE,
            refusal=RegistryError,
        )
        try:
            port = await self._server.listen(options.host, options.port)
        except OSError as error:
            raise ConfigError(
                f"--registry {options.address}: cannot listen: {error.strerror or error}"
            ) from error
        self._options = options._replace(port=port)
        try:
            await self._publish()
        except BaseException:
            await self.stop()
            raise
        logger.info("schema registry on %s", self.url)

    def _tls(self) -> ControlTls | None:
        """Return the certificate, None for plain HTTP. Raises ConfigError."""
        if self._options.tls is None:
            return None
        from minibroker.control.tls import ControlTls  # noqa: PLC0415  3 ms, seldom used

        return ControlTls(
            self._options.tls, self._settings, option="--registry-tls", service=SERVICE
        )

    def _settings(self) -> BrokerConfig:
        """Return the broker's settings in force, or the last ones while it does not run."""
        broker = self._broker()
        if broker is not None:
            self._config = broker.dynamic.broker
        return self._config

    async def _publish(self) -> None:
        """Tell the other registries the URL. Raises MinibrokerError."""
        broker = self._broker()
        if not self._has_peers or broker is None:
            return
        host = broker.address[0] if self._options.host in EVERY_ADDRESS else self._options.host
        url = self._options._replace(host=host).url
        await publish(broker.cluster.tree, broker.config.broker_id, url)

    async def stop(self) -> None:
        """Stop to serve. Call it while the broker still runs."""
        broker = self._broker()
        if self._has_peers and broker is not None:
            try:
                await withdraw(broker.cluster.tree, broker.config.broker_id)
            except MinibrokerError as error:
                logger.info("the URL of the registry stays in the metadata: %s", error)
        await self._server.close()
        self._checks.close()


def _peer_context(tls: ControlTls | None) -> ssl.SSLContext:
    """Return the context for the registries of other brokers, which are served like this one."""
    if tls is not None:
        return tls.peer_context()
    import ssl  # noqa: PLC0415  a registry without TLS has peers without it

    return ssl.create_default_context()
