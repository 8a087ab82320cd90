"""`Upstream`: connections to Kafka, with TLS and a login where the proxy ends them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.proxy.login import LoginWire

if TYPE_CHECKING:
    from minibroker.client.settings import ClientSettings
    from minibroker.proxy.addresses import Address


class Upstream:
    """How the proxy reaches Kafka. Belongs to the loop."""

    def __init__(self, settings: ClientSettings) -> None:
        """Take settings of a client. Raises ConfigError for those of TLS."""
        self._settings = settings
        self._tls = settings.context() if settings.uses_tls else None

    @property
    def targets(self) -> tuple[Address, ...]:
        """Return the addresses to begin with."""
        return self._settings.servers

    async def connect(self, address: Address) -> asyncio.Transport:
        """Return a connection that a client may use: it is not read until it has a protocol.

        Raises OSError (BrokerRefusedError for a login), ProtocolError, ConfigError.
        """
        host, port = address
        transport, wire = await asyncio.get_running_loop().create_connection(
            LoginWire, host, port, ssl=self._tls, server_hostname=host if self._tls else None
        )
        try:
            if self._settings.uses_sasl:
                await wire.log_in(self._settings, address)
            transport.pause_reading()
        except BaseException:
            transport.abort()
            raise
        return transport
