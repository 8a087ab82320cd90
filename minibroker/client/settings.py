"""Settings of a client that the tasks' own client takes, or why it does not.

    settings of the source or the sink ──wire_settings──► ClientSettings ──► connection, client
                                                └───────► UnservedError: librdkafka does it instead

The settings have librdkafka's names (`pipeline.kafka.client_settings`). A setting that is not known
here is never dropped: then librdkafka takes over, which knows or refuses it.
"""

from __future__ import annotations

import importlib.util
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client import oauth
from minibroker.kafka.oauthbearer import MECHANISM

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

PORT: Final = 9092
FETCH_WAIT_MS: Final = 20
"""Longest wait of a fetch at the end of a partition, where the task waits for the answer."""
FETCH_BYTES: Final = 4 << 20
"""Bytes of one answer: enough for a chunk of columns, few enough that two of them are in memory."""
ANSWER_BYTES_MAX: Final = 100_000_000
"""librdkafka's receive.message.max.bytes."""
TIMEOUT_MS: Final = 60_000

_PACKAGES: Final = ("crc32c", "lz4", "cramjam")
_PROBE: Final = "probe"
"""librdkafka's word for the usual places of certificates."""
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_WITHOUT_EFFECT: Final = frozenset(
    {
        # Of groups, which a task does not join.
        *("group.id", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"),
        "session.timeout.ms",
        # Done in any case, or about librdkafka itself.
        *("check.crcs", "log_level", "allow.auto.create.topics", "enable.partition.eof"),
        "isolation.level",
    }
)
_READ: Final = frozenset(
    {
        *("bootstrap.servers", "client.id", "security.protocol", "socket.timeout.ms"),
        *("fetch.wait.max.ms", "fetch.min.bytes", "fetch.max.bytes", "receive.message.max.bytes"),
        *("max.partition.fetch.bytes", "fetch.message.max.bytes"),
        *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
        *("ssl.ca.pem", "ssl.ca.location", "ssl.certificate.pem", "ssl.certificate.location"),
        *("ssl.key.pem", "ssl.key.location", "ssl.key.password"),
        "ssl.endpoint.identification.algorithm",
        *oauth.KEYS,
    }
)


class UnservedError(Exception):
    """The tasks' own client does not do what the settings ask for; the text says what."""


class ClientSettings(NamedTuple):
    """The settings of the tasks' own client. Equal settings share connections."""

    servers: tuple[tuple[str, int], ...]
    client_id: str
    timeout_s: float
    fetch_wait_ms: int
    fetch_min_bytes: int
    fetch_bytes: int
    answer_bytes_max: int
    uses_tls: bool
    uses_sasl: bool
    secured: tuple[tuple[str, str], ...]
    """Those of `ssl.*` and `sasl.*`, sorted by their names."""

    def __repr__(self) -> str:
        """Return a text without passwords: it may come into a log."""
        return f"ClientSettings({self.servers}, {self.client_id})"

    def context(self) -> ssl.SSLContext:
        """Return the context of TLS. Raises ConfigError, OSError for a file that is not here."""
        from minibroker.client.tls import client_context  # noqa: PLC0415
        from minibroker.kafka.java_formats.key_material import (  # noqa: PLC0415  seldom needed
            KeyStore,
            TrustStore,
        )

        told = dict(self.secured)
        trusted, key = _pem(told, "ssl.ca"), _pem(told, "ssl.key")
        keys = None
        if key is not None:
            shown = _pem(told, "ssl.certificate") or ""
            keys = KeyStore(key, told.get("ssl.key.password"), (shown,), "ssl.key")
        return client_context(
            _TlsValues(told.get("ssl.endpoint.identification.algorithm", "https")),  # type: ignore[arg-type]
            keys,
            None if trusted is None else TrustStore((trusted,), "ssl.ca"),
        )

    def login(self) -> tuple[str, Any]:
        """Return mechanism and `ClientExchange` of a login. Raises ConfigError."""
        from minibroker.client.sasl import (  # noqa: PLC0415  seldom needed
            PlainClient,
            ScramClient,
        )

        told = dict(self.secured)
        mechanism = _mechanism(told)
        if mechanism == MECHANISM:
            return mechanism, oauth.login_of(told).begin("")
        name, password = told["sasl.username"], told["sasl.password"]
        if mechanism == "PLAIN":
            return mechanism, PlainClient(name, password)
        return mechanism, ScramClient(mechanism, name, password, secrets.token_urlsafe())


class _TlsValues:
    """The settings that `client.tls.client_context` asks for."""

    def __init__(self, algorithm: str) -> None:
        self._values = {
            "ssl.protocol": "TLS",
            "ssl.endpoint.identification.algorithm": "" if algorithm == "none" else algorithm,
        }

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def words(self, name: str) -> list[str]:
        assert name in ("ssl.enabled.protocols", "ssl.cipher.suites")
        return []


def wire_settings(settings: Mapping[str, Any]) -> ClientSettings:
    """Return the settings of the tasks' own client. Raises UnservedError."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise UnservedError(f"the package {package} is not installed where the task runs")
    unknown = sorted(set(settings) - _READ - _WITHOUT_EFFECT)
    if unknown:
        raise UnservedError(f"setting {unknown[0]} is librdkafka's alone")
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol not in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"):
        raise UnservedError(f"security.protocol {protocol} is not known")
    secured = {
        name: str(value) for name, value in settings.items() if name.startswith(("ssl.", "sasl."))
    }
    _check_certificates(secured)
    uses_sasl = protocol.startswith("sasl_")
    if uses_sasl:
        _check_login(secured)
    most = min(
        _number(settings, "fetch.max.bytes", FETCH_BYTES),
        _number(settings, "max.partition.fetch.bytes", FETCH_BYTES),
        _number(settings, "fetch.message.max.bytes", FETCH_BYTES),
    )
    return ClientSettings(
        servers=servers_of(str(settings["bootstrap.servers"])),
        client_id=str(settings.get("client.id", "minibroker-pipeline")),
        timeout_s=_number(settings, "socket.timeout.ms", TIMEOUT_MS) / 1000,
        fetch_wait_ms=_number(settings, "fetch.wait.max.ms", FETCH_WAIT_MS),
        fetch_min_bytes=_number(settings, "fetch.min.bytes", 1),
        fetch_bytes=most,
        answer_bytes_max=_number(settings, "receive.message.max.bytes", ANSWER_BYTES_MAX),
        uses_tls=protocol.endswith("ssl"),
        uses_sasl=uses_sasl,
        secured=tuple(sorted(secured.items())),
    )


def _check_certificates(secured: Mapping[str, str]) -> None:
    """Raise UnservedError where librdkafka looks for certificates in places of its own."""
    location = secured.get("ssl.ca.location", "")
    if location == _PROBE or (location and Path(location).is_dir()):
        raise UnservedError(f"ssl.ca.location={location} is no file")


def _check_login(secured: Mapping[str, str]) -> None:
    mechanism = _mechanism(secured)
    if mechanism == MECHANISM:
        if oauth.JAAS_KEY not in secured:
            raise UnservedError("OAUTHBEARER with a setting that is librdkafka's alone")
        return
    if mechanism not in _MECHANISMS:
        raise UnservedError(f"a login by {mechanism or 'GSSAPI'} is librdkafka's alone")
    if "sasl.username" not in secured or "sasl.password" not in secured:
        raise UnservedError("a login without sasl.username and sasl.password")


def _mechanism(secured: Mapping[str, str]) -> str:
    return secured.get("sasl.mechanism", secured.get("sasl.mechanisms", "")).upper()


def servers_of(text: str) -> tuple[tuple[str, int], ...]:
    """Return host and port of each of the bootstrap servers. Raises UnservedError."""
    found = []
    for server in text.split(","):
        address = server.strip().rpartition("://")[2]
        if not address:
            continue
        host, colon, port = address.rpartition(":")
        if not colon or address.endswith("]"):
            host, port = address, str(PORT)
        if not port.isdecimal():
            raise UnservedError(f"address {server!r} has no port that is a number")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise UnservedError("bootstrap.servers is empty")
    return tuple(found)


def _number(settings: Mapping[str, Any], name: str, default: int) -> int:
    text = str(settings.get(name, default)).strip()
    if not text.isdecimal():
        raise UnservedError(f"setting {name} is {text!r}, which is no number")
    return int(text)


def _pem(told: Mapping[str, str], name: str) -> str | None:
    """Return a PEM text that stands in the settings or in a file. Raises OSError."""
    if f"{name}.pem" in told:
        return told[f"{name}.pem"]
    location = told.get(f"{name}.location")
    return None if location is None else Path(location).read_text(encoding="ascii")
