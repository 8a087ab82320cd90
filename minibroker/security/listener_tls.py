"""`ListenerTls`: the TLS of one listener. Its settings, its certificates, the names of its clients.

`server/listener.py` asks for a context when a client comes. When `ssl.keystore.*` or
`ssl.truststore.*` of the listener are altered, new clients get the new certificates; clients that
are connected keep theirs.

Source: Kafka SslChannelBuilder, SaslChannelBuilder, SslFactory, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.errors import ConfigError
from minibroker.security.certificate import subject_name
from minibroker.security.principal_mapping import PrincipalMapping
from minibroker.security.stores import load_key_store, load_trust_store
from minibroker.security.tls import server_context

if TYPE_CHECKING:
    import ssl

    from minibroker.config.listeners import Listener
    from minibroker.config.settings import ConfigValues

logger = logging.getLogger(__name__)

READ_BYTES: Final = 256 * 1024
USER: Final = "User:"
ANONYMOUS: Final = "User:ANONYMOUS"


class ListenerTls:
    """The TLS of one listener. Belongs to the loop's thread."""

    __slots__ = ("_mapping", "client_auth", "context", "listener", "read_buffer")

    def __init__(self, listener: Listener, config: ConfigValues) -> None:
        """`config`: the broker's settings. Raises ConfigError."""
        self.listener = listener
        """Constant, as are the next three."""
        self.read_buffer = memoryview(bytearray(READ_BYTES))
        """Shared by all connections: its bytes go to OpenSSL before another connection reads."""
        settings = config.of_listener(listener.name)
        self.client_auth = _client_auth(listener, config)
        try:
            self._mapping = PrincipalMapping(settings.text("ssl.principal.mapping.rules") or "")
            self.context = _context_of(settings, self.client_auth)
            """For clients that come from now on."""
        except ConfigError as error:
            raise ConfigError(f"listener {listener.name}: {error}") from None

    def principal_of(self, connection: ssl.SSLObject) -> str:
        """Return the principal of a client whose handshake is done. Raises ValueError if no rule
        of `ssl.principal.mapping.rules` matches its name.
        """
        certificate = connection.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        name = subject_name(certificate)
        mapped = self._mapping.apply(name)
        if mapped is None:
            raise ValueError(
                f"no rule of ssl.principal.mapping.rules matches the client's name {name}"
            )
        return USER + mapped


def _client_auth(listener: Listener, config: ConfigValues) -> str:
    """Return `ssl.client.auth`. With SASL on top only the listener's own setting counts."""
    if listener.security_protocol.uses_sasl:
        own = config.originals.get(f"listener.name.{listener.name.lower()}.ssl.client.auth")
        if own is None:
            if config.text("ssl.client.auth") != "none":
                logger.warning(
                    "listener %s asks for no certificates: ssl.client.auth counts for SSL only; set"
                    " listener.name.%s.ssl.client.auth",
                    listener.name,
                    listener.name.lower(),
                )
            return "none"
    return config.of_listener(listener.name).text("ssl.client.auth") or "none"


def _context_of(settings: ConfigValues, client_auth: str) -> ssl.SSLContext:
    return server_context(
        settings, load_key_store(settings), load_trust_store(settings), client_auth=client_auth
    )
