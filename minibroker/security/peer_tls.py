"""The TLS of connections to other brokers: the client's side of the listener between brokers.

A broker shows the other brokers the certificate of its own listener, and trusts what that listener
trusts. `ssl.endpoint.identification.algorithm` says whether the host name in the other one's
certificate counts.

Source: Kafka ChannelBuilders.clientChannelBuilder (for brokers), SslFactory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.errors import ConfigError
from minibroker.java_formats.stores import load_key_store, load_trust_store
from minibroker.security.tls import client_context

if TYPE_CHECKING:
    import ssl

    from minibroker.config.settings import ConfigValues


def context_of(config: ConfigValues, listener: str) -> ssl.SSLContext:
    """Return the context of connections to this listener of other brokers. Raises ConfigError."""
    settings = config.of_listener(listener)
    try:
        return client_context(settings, load_key_store(settings), load_trust_store(settings))
    except ConfigError as error:
        raise ConfigError(f"listener {listener}: {error}") from None
