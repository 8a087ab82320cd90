"""`ListenerTls`: the TLS of one listener. Its settings, its certificates, the names of its clients.

`server/listener.py` asks for a context when a client comes. When `ssl.keystore.*` or
`ssl.truststore.*` of the listener are altered, new clients get the new certificates; clients that
are connected keep theirs.

Source: Kafka SslChannelBuilder, SaslChannelBuilder, SslFactory, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import logging
import os
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from minibroker.broker.config.unserved import TLS_STORE_KEYS
from minibroker.broker.security.certificate import alternative_names, subject_name
from minibroker.broker.security.principal_mapping import PrincipalMapping
from minibroker.client.tls import set_up
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.ids import ANONYMOUS
from minibroker.kafka.java_formats.stores import load_key_store, load_trust_store

if TYPE_CHECKING:
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.config.settings import ConfigValues
    from minibroker.kafka.java_formats.key_material import KeyStore, TrustStore

logger = logging.getLogger(__name__)

READ_BYTES: Final = 256 * 1024
USER: Final = "User:"
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
Sources: TypeAlias = "tuple[object, ...]"


class ListenerTls:
    """The TLS of one listener. Belongs to the loop's thread."""

    __slots__ = (
        "_mapping",
        "_sources",
        "_stores",
        "client_auth",
        "context",
        "listener",
        "read_buffer",
    )

    def __init__(self, listener: Listener, config: ConfigValues) -> None:
        """`config`: the broker's settings. Raises ConfigError."""
        self.listener = listener
        """Constant."""
        self.read_buffer = memoryview(bytearray(READ_BYTES))
        """Constant, shared by all connections: its bytes go to OpenSSL before another one reads."""
        settings = config.of_listener(listener.name)
        self.client_auth = _client_auth(listener, config)
        try:
            self._mapping = PrincipalMapping(settings.text("ssl.principal.mapping.rules") or "")
        except ConfigError as error:
            raise ConfigError(f"listener {listener.name}: {error}") from None
        self._stores = self._load(settings)
        self._sources = sources_of(settings)
        """The settings and times of the files that were loaded."""
        self.context = self._stores.context
        """For clients that come from now on."""

    def check(self, config: ConfigValues) -> None:
        """Raise ConfigError if the listener cannot change to the stores of these settings."""
        self._read_changes(config)

    def update(self, config: ConfigValues) -> None:
        """Give new clients the stores of these settings, if settings or files have changed.

        Raises ConfigError.
        """
        changes = self._read_changes(config)
        if changes is not None:
            self._stores, self._sources = changes
            self.context = self._stores.context
            logger.info("listener %s has new certificates", self.listener.name)

    def _read_changes(self, config: ConfigValues) -> tuple[_Stores, Sources] | None:
        """Return the stores of these settings, None if they are in use. Raises ConfigError."""
        settings = config.of_listener(self.listener.name)
        sources = sources_of(settings)
        if sources == self._sources:
            return None
        stores = self._load(settings)
        try:
            check_replacement(self._stores, stores, settings)
        except ConfigError as error:
            raise ConfigError(f"listener {self.listener.name}: {error}") from None
        return stores, sources

    def _load(self, settings: ConfigValues) -> _Stores:
        """Raises ConfigError."""
        try:
            keys, trust_store = load_key_store(settings), load_trust_store(settings)
            context = server_context(settings, keys, trust_store, client_auth=self.client_auth)
        except ConfigError as error:
            raise ConfigError(f"listener {self.listener.name}: {error}") from None
        assert keys is not None
        return _Stores(context, keys.certificates[0], has_trust_store=trust_store is not None)

    def principal_of(self, connection: ssl.SSLObject) -> str:
        """Return the principal of a client whose handshake is done. Raises ValueError if no rule
        of `ssl.principal.mapping.rules` matches its name.
        """
        certificate = connection.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        name = subject_name(certificate)
        mapped_name = self._mapping.apply(name)
        if mapped_name is None:
            raise ValueError(
                f"no rule of ssl.principal.mapping.rules matches the client's name {name}"
            )
        return USER + mapped_name


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


class _Stores(NamedTuple):
    """A context, and what of its stores has to stay the same."""

    context: ssl.SSLContext
    certificate: str
    has_trust_store: bool


def sources_of(settings: ConfigValues) -> Sources:
    """Return the settings of the stores with the times of their files."""
    values: list[object] = [settings.originals.get(key) for key in sorted(TLS_STORE_KEYS)]
    for key in ("ssl.keystore.location", "ssl.truststore.location"):
        location = settings.originals.get(key)
        try:
            values.append(None if location is None else os.stat(location).st_mtime_ns)  # noqa: PTH116
        except OSError:
            values.append(None)
    return tuple(values)


def check_replacement(present: _Stores, new: _Stores, settings: ConfigValues) -> None:
    """Raise ConfigError if clients would find another broker behind the new certificate.

    Source: Kafka SslFactory.CertificateEntries.ensureCompatible.
    """
    if new.has_trust_store and not present.has_trust_store:
        raise ConfigError(
            "Cannot add SSL truststore to an existing listener for which no truststore was"
            " configured."
        )
    old_certificate, new_certificate = (
        ssl.PEM_cert_to_DER_cert(store.certificate) for store in (present, new)
    )
    names = subject_name(old_certificate), subject_name(new_certificate)
    if not settings.boolean("ssl.allow.dn.changes") and names[0].lower() != names[1].lower():
        raise ConfigError(
            f"Keystore DistinguishedName does not match: existing={names[0]}, new={names[1]}"
            " (ssl.allow.dn.changes=true allows it)"
        )
    is_covered = alternative_names(old_certificate) <= alternative_names(new_certificate)
    if not settings.boolean("ssl.allow.san.changes") and not is_covered:
        raise ConfigError(
            "Keystore SubjectAltNames do not match: the new certificate lacks names of the present"
            " one (ssl.allow.san.changes=true allows it)"
        )


def server_context(
    settings: ConfigValues, keys: KeyStore | None, trusted: TrustStore | None, *, client_auth: str
) -> ssl.SSLContext:
    """Return the context of a listener. `client_auth`: none, requested or required.

    Raises ConfigError.
    """
    if keys is None:
        raise ConfigError(
            "a listener with TLS needs a certificate: set ssl.keystore.location and"
            " ssl.keystore.password, or ssl.keystore.type=PEM with ssl.keystore.location or with"
            " ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    set_up(context, settings, keys, trusted)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    return context
