"""Settings of a client, under their names in Java, as the values that it works with.

    settings ──client_settings──► ClientSettings ──► connection, client
                     └──────────► ConfigError: a setting that this client does not know

A setting is never dropped: it acts, or it is one of `_WITHOUT_EFFECT`, whose work is done in any
case or not needed here, or it is refused. Three names are not Java's: `receive.message.max.bytes`,
`enable.ssl.certificate.verification` and the mechanism of a delegation token, an option of the JAAS
line. `with_stores_as_text` puts the content of stores into the settings, for another machine.

Source: Kafka CommonClientConfigs, ConsumerConfig, AdminClientConfig, SslConfigs, SaslConfigs.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client import oauth
from minibroker.client.config import ClientConfig
from minibroker.client.sasl import PLAIN, PlainClient, ScramClient, nonce
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats import jaas
from minibroker.kafka.java_formats.stores import (
    PEM,
    is_pem_file,
    load_key_store,
    load_trust_store,
)
from minibroker.kafka.oauthbearer import MECHANISM as OAUTHBEARER
from minibroker.kafka.scram import CODES as SCRAM_MECHANISMS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from minibroker.client.sasl import ClientExchange

PORT: Final = 9092
FETCH_WAIT_MS: Final = 20
"""Longest wait of a fetch at the end of a partition, where the task waits for the answer."""
FETCH_BYTES: Final = 4 << 20
"""Bytes of one answer: enough for a chunk of columns, few enough that two of them are in memory."""
ANSWER_BYTES_MAX: Final = 100_000_000
TIMEOUT_MS: Final = 60_000

BOOTSTRAP: Final = "bootstrap.servers"
JAAS_KEY: Final = oauth.JAAS_KEY
MECHANISM_KEY: Final = "sasl.mechanism"
VERIFICATION_KEY: Final = "enable.ssl.certificate.verification"
GSSAPI: Final = "GSSAPI"
MODULES: Final[Mapping[str, str]] = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(SCRAM_MECHANISMS, "org.apache.kafka.common.security.scram.ScramLoginModule"),
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    GSSAPI: "com.sun.security.auth.module.Krb5LoginModule",
}
"""Mechanism → the class of its JAAS line."""

_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_READ: Final = frozenset(
    {
        *(BOOTSTRAP, "client.id", "client.rack", "security.protocol", "request.timeout.ms"),
        *("fetch.max.wait.ms", "fetch.min.bytes", "fetch.max.bytes", "receive.message.max.bytes"),
        *("max.partition.fetch.bytes", VERIFICATION_KEY),
        *(MECHANISM_KEY, "sasl.kerberos.service.name"),
        *(f"{store}{name}" for store in _STORES for name in ("location", "password", "type")),
        *("ssl.truststore.certificates", "ssl.keystore.key", "ssl.keystore.certificate.chain"),
        *("ssl.key.password", "ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites"),
        "ssl.endpoint.identification.algorithm",
        *oauth.KEYS,
    }
)
_WITHOUT_EFFECT: Final = frozenset(
    {
        # Of groups, which no task joins, and of positions, which the caller keeps.
        *("group.id", "group.instance.id", "group.protocol", "group.remote.assignor"),
        *("auto.commit.interval.ms", "auto.offset.reset", "enable.auto.commit"),
        *("heartbeat.interval.ms", "max.poll.interval.ms", "max.poll.records"),
        *("partition.assignment.strategy", "session.timeout.ms"),
        # Done in any case, or asked for by each call.
        *("allow.auto.create.topics", "check.crcs", "default.api.timeout.ms"),
        *("exclude.internal.topics", "isolation.level"),
        # Of connections and of numbers about a client, which this one makes in its own way.
        *("auto.include.jmx.reporter", "client.dns.lookup", "connections.max.idle.ms"),
        *("enable.metrics.push", "metadata.max.age.ms", "metadata.recovery.strategy"),
        *("metadata.recovery.rebootstrap.trigger.ms", "metric.reporters", "metrics.num.samples"),
        *("metrics.recording.level", "metrics.sample.window.ms", "receive.buffer.bytes"),
        *("reconnect.backoff.max.ms", "reconnect.backoff.ms", "retry.backoff.max.ms"),
        *("retries", "retry.backoff.ms", "send.buffer.bytes"),
        *("socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"),
        # Of tickets, which libkrb5 gets anew.
        *("sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin"),
        *("sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor"),
    }
)


class ClientSettings(NamedTuple):
    """The settings of a client. Equal settings share connections."""

    servers: tuple[tuple[str, int], ...]
    client_id: str
    rack: str
    """The rack of the reader: a broker there may serve it, if the cluster says so (KIP-392)."""
    timeout_s: float
    fetch_wait_ms: int
    fetch_min_bytes: int
    fetch_bytes: int
    answer_bytes_max: int
    uses_tls: bool
    uses_sasl: bool
    secured: tuple[tuple[str, str], ...]
    """Those of TLS and logins, sorted by their names."""

    def __repr__(self) -> str:
        """Return a text without passwords: it may come into a log."""
        return f"ClientSettings({self.servers}, {self.client_id})"

    def context(self) -> ssl.SSLContext:
        """Return the context of TLS. Raises ConfigError."""
        import ssl  # noqa: PLC0415  seldom needed

        from minibroker.client.tls import client_context  # noqa: PLC0415  as above

        settings = _StoreSettings(dict(self.secured))
        context = client_context(settings, load_key_store(settings), load_trust_store(settings))
        if settings.originals.get(VERIFICATION_KEY, "true").lower() != "true":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def login(self, host: str) -> tuple[str, ClientExchange]:
        """Return the mechanism and the exchange of a login at a broker. Raises ConfigError."""
        settings = dict(self.secured)
        mechanism = settings.get(MECHANISM_KEY, GSSAPI)
        if mechanism == OAUTHBEARER:
            return mechanism, oauth.login_of(settings).begin(host)
        options = jaas.parse_line(settings[JAAS_KEY]).options
        if mechanism == GSSAPI:
            from minibroker.client.kerberos import login_of_client  # noqa: PLC0415  an extra

            return mechanism, login_of_client(ClientConfig(settings), options).begin(host)
        name, password = options["username"], options["password"]
        if mechanism == PLAIN:
            return mechanism, PlainClient(name, password)
        is_token = options.get("tokenauth", "false").lower() == "true"
        return mechanism, ScramClient(mechanism, name, password, nonce(), is_token=is_token)


class _StoreSettings(ClientConfig):
    """Settings of a client, where a store without a type is what its content is."""

    __slots__ = ()

    def text(self, name: str) -> str | None:
        value = self.originals.get(name)
        if value is not None or not name.endswith("store.type"):
            return super().text(name)
        location = self.originals.get(f"{name.removesuffix('.type')}.location")
        return PEM if location is None or is_pem_file(location) else "JKS"


def client_settings(settings: Mapping[str, str]) -> ClientSettings:
    """Return the values of settings. Raises ConfigError: one is not known, or has a wrong value."""
    for name in sorted(settings.keys() - _READ - _WITHOUT_EFFECT):
        near = difflib.get_close_matches(name, _READ | _WITHOUT_EFFECT, n=1)
        hint = f"; {near[0]} is one" if near else ""
        raise ConfigError(f"{name} is no setting that this client knows{hint}")
    protocol = settings.get("security.protocol", "plaintext").lower()
    if protocol not in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"):
        raise ConfigError(
            f"security.protocol={protocol}: expected plaintext, ssl, sasl_plaintext or sasl_ssl"
        )
    secured = {
        name: value
        for name, value in settings.items()
        if name.startswith(("ssl.", "sasl.")) or name == VERIFICATION_KEY
    }
    if MECHANISM_KEY in secured:
        secured[MECHANISM_KEY] = secured[MECHANISM_KEY].upper()
    uses_sasl = protocol.startswith("sasl_")
    if uses_sasl:
        _check_login(secured)
    fetch_bytes = min(
        _number(settings, "fetch.max.bytes", FETCH_BYTES),
        _number(settings, "max.partition.fetch.bytes", FETCH_BYTES),
    )
    return ClientSettings(
        servers=servers_of(settings.get(BOOTSTRAP, "")),
        client_id=settings.get("client.id", "minibroker-pipeline"),
        rack=settings.get("client.rack", ""),
        timeout_s=_number(settings, "request.timeout.ms", TIMEOUT_MS) / 1000,
        fetch_wait_ms=_number(settings, "fetch.max.wait.ms", FETCH_WAIT_MS),
        fetch_min_bytes=_number(settings, "fetch.min.bytes", 1),
        fetch_bytes=fetch_bytes,
        answer_bytes_max=_number(settings, "receive.message.max.bytes", ANSWER_BYTES_MAX),
        uses_tls=protocol.endswith("ssl"),
        uses_sasl=uses_sasl,
        secured=tuple(sorted(secured.items())),
    )


def with_stores_as_text(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the content of their stores, as PEM, in place of the files.

    Raises ConfigError: a store cannot be read.
    """
    store_settings = _StoreSettings(dict(settings))
    trusted, own = load_trust_store(store_settings), load_key_store(store_settings)
    kept_settings = {name: settings[name] for name in settings if not name.startswith(_STORES)}
    if trusted is not None:
        kept_settings["ssl.truststore.type"] = PEM
        kept_settings["ssl.truststore.certificates"] = "\n".join(trusted.certificates)
    if own is not None:
        kept_settings.pop("ssl.key.password", None)
        kept_settings["ssl.keystore.type"] = PEM
        kept_settings["ssl.keystore.key"] = own.key
        kept_settings["ssl.keystore.certificate.chain"] = "\n".join(own.certificates)
        if own.key_password is not None:
            kept_settings["ssl.key.password"] = own.key_password
    return kept_settings


def _check_login(secured: Mapping[str, str]) -> None:
    """Raise ConfigError for a login that cannot be."""
    mechanism = secured.get(MECHANISM_KEY, GSSAPI)
    if mechanism not in MODULES:
        raise ConfigError(f"{MECHANISM_KEY}={mechanism}: expected one of {', '.join(MODULES)}")
    if JAAS_KEY not in secured:
        raise ConfigError(f"a login by {mechanism} needs {JAAS_KEY}")
    module = jaas.parse_line(secured[JAAS_KEY])
    if module.name != MODULES[mechanism]:
        raise ConfigError(
            f"{JAAS_KEY} names {module.name}, expected {MODULES[mechanism]} for {mechanism}"
        )
    if mechanism == GSSAPI:
        try:
            from minibroker.client.kerberos import login_of_client  # noqa: PLC0415  an extra
        except ImportError as error:
            raise ConfigError(
                f"a login by GSSAPI needs a package ({error}): pip install 'minibroker[kerberos]'"
            ) from None
        login_of_client(ClientConfig(dict(secured)), module.options)
    elif mechanism != OAUTHBEARER:
        for name in ("username", "password"):
            if name not in module.options:
                raise ConfigError(f"{JAAS_KEY} of {module.name} has no {name}")


def servers_of(text: str) -> tuple[tuple[str, int], ...]:
    """Return host and port of each of the bootstrap servers. Raises ConfigError."""
    servers = []
    for server in text.split(","):
        address = server.strip().rpartition("://")[2]
        if not address:
            continue
        host, colon, port = address.rpartition(":")
        if not colon or address.endswith("]"):
            host, port = address, str(PORT)
        if not port.isdecimal():
            raise ConfigError(f"address {server!r} has no port that is a number")
        servers.append((host.strip("[]"), int(port)))
    if not servers:
        raise ConfigError(f"{BOOTSTRAP} is empty")
    return tuple(servers)


def _number(settings: Mapping[str, str], name: str, default: int) -> int:
    text = settings.get(name, str(default)).strip()
    if not text.isdecimal():
        raise ConfigError(f"setting {name} is {text!r}, which is no number")
    return int(text)
