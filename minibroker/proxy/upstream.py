"""`Upstream`: connections to Kafka, with TLS and a login where the proxy ends them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.proxy.login import LoginWire

if TYPE_CHECKING:
    from minibroker.client.settings import ClientSettings
    from minibroker.proxy.addresses import Address
    from minibroker.proxy.login import Session


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

    async def connect(self, address: Address) -> tuple[asyncio.Transport, Session | None]:
        """Return a connection that a client may use, and the proxy's session on it.

        It is not read until it has another protocol. Raises OSError (BrokerRefusedError for a
        login), ProtocolError, ConfigError.
        """
        host, port = address
        try:
            transport, wire = await asyncio.get_running_loop().create_connection(
                LoginWire, host, port, ssl=self._tls, server_hostname=host if self._tls else None
            )
        except UnicodeError:  # of IDNA: an empty label, or one that is too long
            raise OSError("this is no name of a host") from None
        session = None
        try:
            if self._settings.uses_sasl:
                session = await wire.log_in(self._settings, address)
            wire.check_open()
            transport.pause_reading()
        except BaseException:
            transport.abort()
            raise
        return transport, session


async def renewed(transport: asyncio.Transport, session: Session) -> Session:
    """Renew a session on a connection that nobody uses now; the caller sets its protocol anew.

    Raises OSError (BrokerRefusedError), ProtocolError, ConfigError.
    """
    wire = LoginWire()
    transport.set_protocol(wire)
    wire.connection_made(transport)
    new_session = await wire.renew(session)
    wire.check_open()
    return new_session
