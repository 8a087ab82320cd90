"""The TLS of connections to other brokers: the client's side of the listener between brokers.

A broker shows the other brokers the certificate of its own listener, and trusts what that listener
trusts. `ssl.endpoint.identification.algorithm` says whether the host name in the other one's
certificate counts. When stores of the listener are altered, connections that are opened from then
on show the new certificate; those that are open keep theirs.

Source: Kafka ChannelBuilders.clientChannelBuilder (for brokers), SslFactory, DynamicBrokerConfig
(the builders of clients are reconfigurable).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.broker.security.listener_tls import sources_of
from minibroker.client.tls import client_context
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.stores import load_key_store, load_trust_store

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from minibroker.broker.config.settings import ConfigValues
    from minibroker.broker.security.listener_tls import Sources

logger = logging.getLogger(__name__)


class PeerContexts:
    """The contexts of one broker's connections to others, by listener. The loop owns it."""

    __slots__ = ("_config", "_contexts")

    def __init__(self, config: Callable[[], ConfigValues]) -> None:
        """`config`: returns the broker's settings in force."""
        self._config = config
        self._contexts: dict[str, tuple[Sources, ssl.SSLContext]] = {}
        """Listener → the settings and times of its files, and its context; filled when asked."""

    def of(self, listener: str) -> ssl.SSLContext:
        """Return the context of the next connection to this listener. Raises ConfigError."""
        context = self._contexts.get(listener)
        if context is None:
            context = self._contexts[listener] = _load(self._config(), listener)
        return context[1]

    def on_broker_config(self, config: ConfigValues, keys: frozenset[str]) -> None:
        """Do `update`: settings were altered."""
        self.update(config)

    def on_topic_config(self, topic: str | None) -> None:
        """Do nothing: certificates do not depend on topics."""

    def update(self, config: ConfigValues) -> None:
        """Have connections that are opened from now on use the stores of these settings, if
        settings or files have changed. Where they cannot be read, the log says why, and the stores
        in use stay.
        """
        for listener, (sources, _) in list(self._contexts.items()):
            if sources_of(config.of_listener(listener)) == sources:
                continue
            try:
                self._contexts[listener] = _load(config, listener)
            except ConfigError as error:
                logger.error("connections to other brokers keep their certificate: %s", error)
            else:
                logger.info("connections to listener %s of other brokers have new stores", listener)


def _load(config: ConfigValues, listener: str) -> tuple[Sources, ssl.SSLContext]:
    """Return the sources of the stores, and their context. Raises ConfigError."""
    settings = config.of_listener(listener)
    sources = sources_of(settings)
    try:
        context = client_context(settings, load_key_store(settings), load_trust_store(settings))
    except ConfigError as error:
        raise ConfigError(f"listener {listener}: {error}") from None
    return sources, context
