"""TLS of the control API: its certificate, which is that of a listener, or in a PEM file.

    --control-tls SSL          the key store of the listener SSL
    --control-tls broker.pem   a private key and its certificates in one file

`server.HttpServer` asks for a context for each connection. A store that was altered or replaced in
place is read again then, so that a certificate can be renewed while the broker runs. Clients are
known by their token; none is asked for a certificate.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.listener_tls import server_context, sources_of
from minibroker.client.tls import client_context
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.key_material import TrustStore
from minibroker.kafka.java_formats.stores import load_key_store, load_trust_store

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.security.listener_tls import Sources

logger = logging.getLogger(__name__)


class ControlTls:
    """The certificate of one HTTP server. The loop owns it."""

    def __init__(
        self,
        source: str,
        config: Callable[[], BrokerConfig],
        *,
        option: str = "--control-tls",
        service: str = "the control API",
    ) -> None:
        """`source`: the value of `option`. `config`: returns the broker's settings in force.
        `service`: the server's name in log lines. Raises ConfigError.
        """
        self._service = service
        self._option = option
        self._config = config
        listeners = {listener.name: listener for listener in config().listeners}
        self._listener = listeners.get(source.upper())
        self._file = source
        if self._listener is None and not Path(source).is_file():
            secured = [listener.name for listener in listeners.values() if _has_tls(listener)]
            expected = " or ".join([*secured, "a PEM file with a private key and its certificates"])
            raise ConfigError(
                f"{option} {source}: no listener has this name, and there is no such file; "
                f"expected {expected}"
            )
        if self._listener is not None and not _has_tls(self._listener):
            raise ConfigError(
                f"{option} {source}: listener {self._listener.name} has no TLS, its protocol "
                f"is {self._listener.security_protocol}"
            )
        settings = self._settings()
        self._context = self._load(settings)
        self._sources: Sources = sources_of(settings)
        """The settings and times of the files that were loaded, or were tried last."""

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection. If a store cannot be read again, the last one
        stays, and the log has the reason.
        """
        settings = self._settings()
        sources = sources_of(settings)
        if sources != self._sources:
            self._sources = sources
            try:
                self._context = self._load(settings)
                logger.info("%s has a new certificate", self._service)
            except ConfigError as error:
                logger.error("%s keeps its certificate: %s", self._service, error)
        return self._context

    def peer_context(self) -> ssl.SSLContext:
        """Return the context of a connection to such a server of another broker. It trusts the
        trust store of the listener, or without one the certificates that this server has, too.

        Raises ConfigError.
        """
        settings = self._settings()
        trusted = load_trust_store(settings)
        keys = load_key_store(settings)
        if trusted is None and keys is not None:
            trusted = TrustStore(keys.certificates, keys.source)
        return client_context(settings, None, trusted)

    def _settings(self) -> ConfigValues:
        if self._listener is not None:
            return self._config().of_listener(self._listener.name)
        settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": self._file}
        password = self._config().originals.get("ssl.key.password")
        return ConfigValues(settings | ({} if password is None else {"ssl.key.password": password}))

    def _load(self, settings: ConfigValues) -> ssl.SSLContext:
        """Raises ConfigError."""
        try:
            keys = load_key_store(settings)
            # No client is asked for a certificate, so the system's CAs need not be read.
            trusted = None if keys is None else TrustStore(keys.certificates, keys.source)
            return server_context(settings, keys, trusted, client_auth="none")
        except ConfigError as error:
            raise ConfigError(f"{self._option} {self._file}: {error}") from None


def _has_tls(listener: Listener) -> bool:
    return listener.security_protocol.uses_tls
