"""Settings of Kafka's clients as the user gives them, and the one table of librdkafka's names.

The user gives one set of settings, with `--kafka KEY=VALUE`, `--kafka-config FILE` or as Spark's
options `kafka.*`, for readers and writers alike. Their names are Java's. Names of librdkafka become
those of Java here, at the door, and nothing behind it knows them:

    settings ──for_reader, for_writer──► names of Java ──settings.client_settings──► client

| of librdkafka                         | in Java                                               |
|---------------------------------------|-------------------------------------------------------|
| names of `_JAVA_NAMES`                | its values                                            |
| `ssl.ca.*`, `ssl.key.*`, `ssl.cert…`  | stores of type PEM                                    |
| `sasl.username`, `sasl.password`      | `sasl.jaas.config` of PLAIN or SCRAM                  |
| `sasl.kerberos.keytab`, `….principal` | `sasl.jaas.config` of GSSAPI                          |
| a login by OAUTHBEARER                | `sasl.jaas.config` and the settings beside it         |
| names of `_WITHOUT_EFFECT`            | nothing: they are about how librdkafka does its work  |

Stores and the files of certificates are read here, where the options are parsed; in the pipeline
that is the driver: its files need not be on the machines of the workers. A setting that the client
does not know is refused (`client.settings`), never dropped; one that is for producers alone does
nothing in a consumer, and the reverse. No message has a value of a setting, since it may be a
password.

Source: Kafka CommonClientConfigs, SslConfigs, SaslConfigs; librdkafka CONFIGURATION.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.client import oauth, token_logins
from minibroker.client.settings import (
    BOOTSTRAP,
    GSSAPI,
    JAAS_KEY,
    MECHANISM_KEY,
    MODULES,
    with_stores_as_text,
)
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats import jaas, properties
from minibroker.kafka.java_formats.stores import PEM

if TYPE_CHECKING:
    from collections.abc import Mapping

_JAVA_NAMES: Final = {
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": BOOTSTRAP,
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": MECHANISM_KEY,
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "sticky.partitioning.linger.ms": "linger.ms",
}
_WITHOUT_EFFECT: Final = frozenset(
    {
        *("api.version.fallback.ms", "api.version.request", "api.version.request.timeout.ms"),
        *("broker.address.family", "broker.address.ttl", "broker.version.fallback"),
        *("coordinator.query.interval.ms", "consume.callback.max.messages", "debug"),
        *("delivery.report.only.error", "enable.auto.offset.store", "enable.partition.eof"),
        *("enable.random.seed", "enable.sparse.connections", "enabled_events"),
        *("fetch.error.backoff.ms", "fetch.queue.backoff.ms", "internal.termination.signal"),
        *("log.connection.close", "log.queue", "log.thread.name", "log_level"),
        *(
            "message.copy.max.bytes",
            "offset.store.method",
            "queue.buffering.backpressure.threshold",
        ),
        *("queue.buffering.max.kbytes"),
        *("queue.buffering.max.messages", "queuing.strategy"),
        *("queued.max.messages.kbytes", "queued.min.messages", "reconnect.backoff.jitter.ms"),
        *("socket.blocking.max.ms", "socket.keepalive.enable", "socket.max.fails"),
        *("socket.nagle.disable", "statistics.interval.ms", "topic.metadata.propagation.max.ms"),
        *("topic.metadata.refresh.fast.cnt", "topic.metadata.refresh.fast.interval.ms"),
        *("topic.metadata.refresh.interval.ms", "topic.metadata.refresh.sparse"),
    }
)
_READERS_ONLY: Final = frozenset(
    {
        *("allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "check.crcs"),
        *("client.rack", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof"),
        *("exclude.internal.topics", "fetch.error.backoff.ms", "fetch.max.bytes"),
        *("fetch.max.wait.ms", "fetch.message.max.bytes", "fetch.min.bytes"),
        *("fetch.queue.backoff.ms", "fetch.wait.max.ms", "group.id", "group.instance.id"),
        *("group.protocol", "group.remote.assignor", "heartbeat.interval.ms", "isolation.level"),
        *("key.deserializer", "max.partition.fetch.bytes", "max.poll.interval.ms"),
        *("partition.assignment.strategy", "queued.max.messages.kbytes", "queued.min.messages"),
        *("session.timeout.ms", "value.deserializer"),
    }
)
_WRITERS_ONLY: Final = frozenset(
    {
        *("acks", "batch.num.messages", "batch.size", "buffer.memory", "compression.codec"),
        *("compression.level", "compression.type", "delivery.report.only.error"),
        *("delivery.timeout.ms", "enable.idempotence", "key.serializer", "linger.ms"),
        *("max.in.flight", "max.in.flight.requests.per.connection", "max.request.size"),
        *("message.max.bytes", "message.send.max.retries", "message.timeout.ms", "partitioner"),
        *("queue.buffering.max.kbytes", "queue.buffering.max.messages"),
        *("queue.buffering.max.ms", "request.required.acks", "retries"),
        *("sticky.partitioning.linger.ms", "transaction.timeout.ms", "transactional.id"),
        "value.serializer",
    }
)
_CERTIFICATES: Final = {
    "ssl.ca": "ssl.truststore.certificates",
    "ssl.certificate": "ssl.keystore.certificate.chain",
    "ssl.key": "ssl.keystore.key",
}
"""Begin of librdkafka's names, for a file (`location`) or a text (`pem`) → the text in Java."""
_PROBE: Final = "probe"
"""librdkafka's word for the usual places of certificates."""
_USER: Final = ("sasl.username", "sasl.password")
_KERBEROS: Final = {"sasl.kerberos.keytab": "keyTab", "sasl.kerberos.principal": "principal"}


def read_file(path: str) -> dict[str, str]:
    """Return the settings in a file of Java properties, as Kafka's tools take it.

    Raises ConfigError: the file cannot be read.
    """
    try:
        settings = properties.read_properties(path)
    except ConfigError as error:
        raise ConfigError(f"--kafka-config: {error}") from None
    return {name.removeprefix("kafka."): value for name, value in settings.items()}


def reader_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, under their names, without those of producers alone."""
    return {name: settings[name] for name in settings if name not in _WRITERS_ONLY}


def writer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, under their names, without those of consumers alone."""
    return {name: settings[name] for name in settings if name not in _READERS_ONLY}


def for_reader(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a consumer, with Java's names. Raises ConfigError."""
    return _in_java(reader_settings(settings))


def for_writer(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a producer, with Java's names. Raises ConfigError."""
    return _in_java(writer_settings(settings))


def _in_java(settings: Mapping[str, str]) -> dict[str, str]:
    java_settings: dict[str, str] = {}
    for name, value in settings.items():
        java = _JAVA_NAMES.get(name, name)
        if name not in _WITHOUT_EFFECT and (java == name or java not in settings):
            java_settings[java] = value
    if java_settings.get("ssl.endpoint.identification.algorithm") == "none":
        java_settings["ssl.endpoint.identification.algorithm"] = ""
    _move_certificates(java_settings)
    _move_login(java_settings)
    return with_stores_as_text(java_settings)


def _move_certificates(settings: dict[str, str]) -> None:
    """Replace librdkafka's certificates by the texts of stores of type PEM.

    Raises ConfigError: a file cannot be read.
    """
    texts = {}
    for name, java in _CERTIFICATES.items():
        location, text = settings.pop(f"{name}.location", None), settings.pop(f"{name}.pem", None)
        if text is None and location not in (None, _PROBE):
            text = _read(f"{name}.location", str(location))
        if text is not None:
            texts[java] = text
    for store in ("ssl.truststore.", "ssl.keystore."):
        own = {name: text for name, text in texts.items() if name.startswith(store)}
        if own and not any(name.startswith(store) for name in settings):
            settings |= {f"{store}type": PEM, **own}


def _read(name: str, location: str) -> str:
    try:
        return Path(location).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}={location} cannot be read: {error}") from error


def _move_login(settings: dict[str, str]) -> None:
    """Replace librdkafka's settings of a login by those of Java.

    Raises ConfigError for no JAAS line, or for a login that this client does not have.
    """
    line = settings.get(JAAS_KEY)
    module = None if line is None else jaas.parse_line(line)
    if token_logins.is_token_login(settings, module):
        settings |= token_logins.in_java(settings, {} if module is None else module.options)
        settings[JAAS_KEY] = _with_stores_as_text(settings[JAAS_KEY])
        oauth.login_of(settings)
        return
    if (handler := settings.get(oauth.HANDLER_KEY)) is not None:
        raise ConfigError(
            f"{oauth.HANDLER_KEY} names {handler}, a class of Java: only those of OAUTHBEARER have "
            "a counterpart here"
        )
    user, password = (settings.pop(name, None) for name in _USER)
    ticket = {java: settings.pop(name) for name, java in _KERBEROS.items() if name in settings}
    if line is not None:
        return
    mechanism = settings.get(MECHANISM_KEY, GSSAPI).upper()
    if mechanism == GSSAPI and settings.get("security.protocol", "").lower().startswith("sasl_"):
        settings.setdefault("sasl.kerberos.service.name", "kafka")
        way = "useKeyTab" if "keyTab" in ticket else "useTicketCache"
        settings[JAAS_KEY] = token_logins.line_of(MODULES[GSSAPI], {way: "true", **ticket})
    elif user is not None and password is not None and mechanism in MODULES:
        settings[JAAS_KEY] = token_logins.line_of(
            MODULES[mechanism], {"username": user, "password": password}
        )


def _with_stores_as_text(line: str) -> str:
    """Return a JAAS line with the content of its stores, which are for an identity provider.

    Raises ConfigError: a store cannot be read.
    """
    module = jaas.parse_line(line)
    return token_logins.line_of(module.name, with_stores_as_text(module.options))
