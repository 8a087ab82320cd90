"""Settings of Kafka's clients: from Java's or librdkafka's names to what each client here takes.

The user gives one set of settings, with `--kafka KEY=VALUE`, `--kafka-config FILE` or as options
`kafka.*`. Most of Kafka's Java names are librdkafka's, too. The others are translated here, for
every client alike:

    settings ──for_admin──────► AdminClient   preflight, groups, source.topics, sink
             ├─for_reader─────► Consumer      source.consumer
             ├─for_writer─────► Producer      sink.options, sink.transaction
             └─for_connector──► Java          Spark's connector

| in Java                                  | in librdkafka                                       |
|------------------------------------------|-----------------------------------------------------|
| `ssl.truststore.*` (PEM, PKCS12, JKS)    | `ssl.ca.pem`                                        |
| `ssl.keystore.*` (PEM, PKCS12, JKS)      | `ssl.key.pem`, `ssl.certificate.pem`                |
| `sasl.jaas.config` of PLAIN and SCRAM    | `sasl.username`, `sasl.password`                    |
| a login by OAUTHBEARER (`token_logins`)  | its own one, or `oauth_cb`, a call-back for tokens  |
| names of `_LIBRDKAFKA_NAMES`             | its values                                          |

Stores are read where the options are parsed, which is the driver: its files need not be on the
machines of the workers. A key of librdkafka's settings becomes PKCS8 without a password for Java,
whose clients read no other form. A login by OAUTHBEARER is the other way round: librdkafka's names
become those of Java, and `with_token` translates them for librdkafka. A setting that no client
knows is refused by the client, never dropped; one that is for producers alone does nothing in a
consumer, and the reverse. No message has a value of a setting, since it may be a password.

Source: Kafka CommonClientConfigs, SslConfigs, SaslConfigs; librdkafka CONFIGURATION.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.client.oauth import HANDLER_KEY, JAAS_KEY, KEYS, login_of
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats import jaas, properties
from minibroker.kafka.java_formats.pkcs8 import plain_pkcs8
from minibroker.kafka.java_formats.stores import PEM, is_pem_file, load_key_store, load_trust_store
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import token_logins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.java_formats.jaas import LoginModule

BOOTSTRAP: Final = "bootstrap.servers"

_LIBRDKAFKA_NAMES: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
_JAVA_NAMES: Final = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "message.max.bytes": "max.request.size",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
}
_JAVA_ONLY: Final = frozenset({"default.api.timeout.ms", "max.poll.records"})
"""Settings of calls in Java, which librdkafka does not have: the first one acts in
`source.topics`, and records do not come by polls here.
"""
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
_CONNECTION: Final = ("broker.", "client.", "https.", "sasl.", "security.", "socket.", "ssl.")
_CONNECTION_SWITCHES: Final = frozenset(
    {BOOTSTRAP, "enable.ssl.certificate.verification", "log_level"}
)
_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_PEM_OPTIONS: Final = {
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.password": "ssl.key.password",
    "ssl.key.pem": "ssl.keystore.key",
}
"""Setting of `_stores` → the option of a JAAS line, which is for the identity provider."""

_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def read_file(path: str) -> dict[str, str]:
    """Return the settings in a file of Java properties, as Kafka's tools take it.

    Raises PipelineError: the file cannot be read.
    """
    try:
        found = properties.read_properties(path)
    except ConfigError as error:
        raise PipelineError(f"--kafka-config: {error}") from None
    return {name.removeprefix("kafka."): value for name, value in found.items()}


def reader_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, under their names, without those of producers alone."""
    return {name: settings[name] for name in settings if name not in _WRITERS_ONLY}


def writer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, under their names, without those of consumers alone."""
    return {name: settings[name] for name in settings if name not in _READERS_ONLY}


def for_reader(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a consumer. Raises PipelineError."""
    return {"log_level": "0", **_translated(reader_settings(settings))}


def for_writer(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a producer. Raises PipelineError."""
    found = writer_settings(settings)
    if "buffer.memory" in found:
        kilobytes = str(_number("buffer.memory", found.pop("buffer.memory")) // 1024)
        found.setdefault("queue.buffering.max.kbytes", kilobytes)
    return _translated(found)


def for_admin(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a client that only asks: of the connection. Raises PipelineError."""
    return connection_of(for_reader(settings))


def connection_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of librdkafka's settings that every kind of client takes."""
    return {
        name: value
        for name, value in settings.items()
        if name.startswith(_CONNECTION) or name in _CONNECTION_SWITCHES
    }


def with_token(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as confluent-kafka takes them: with a login by token in its own way.

    Blocks while a first token is fetched. Raises PipelineError if there is none.
    """
    if JAAS_KEY not in settings:
        return dict(settings)
    try:
        login = token_logins.for_librdkafka(settings)
    except (ConfigError, OSError) as error:
        raise PipelineError(
            f"there is no token to log in with: {error}; see --kafka and --kafka-config"
        ) from error
    found = {name: settings[name] for name in settings if name not in KEYS}
    return {**found, **login}


def for_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Java's clients. Raises PipelineError for one that Java has not."""
    found = dict(settings)
    found.pop("log_level", None)
    if found.pop("enable.ssl.certificate.verification", "true").lower() != "true":
        raise PipelineError(
            "enable.ssl.certificate.verification=false is librdkafka's alone: Spark's connector "
            "always verifies; name the CA with ssl.truststore.location"
        )
    _java_certificates(found)
    if token_logins.is_for_librdkafka(found):
        found |= _java_token_login(found)
    user, password = found.pop("sasl.username", None), found.pop("sasl.password", None)
    if user is not None and password is not None:
        mechanism = found.get("sasl.mechanism", found.get("sasl.mechanisms", ""))
        module = _PLAIN if mechanism.upper() == "PLAIN" else _SCRAM
        found[JAAS_KEY] = token_logins.line_of(module, {"username": user, "password": password})
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    return {_JAVA_NAMES.get(name, name): value for name, value in found.items()}


def _translated(settings: Mapping[str, str]) -> dict[str, str]:
    left = {name: value for name, value in settings.items() if name not in _JAVA_ONLY}
    try:
        special = {**_stores(left), **_login(left)}
    except ConfigError as error:
        raise PipelineError(f"the Kafka settings: {error}") from None
    if left.get("ssl.endpoint.identification.algorithm") == "":
        left["ssl.endpoint.identification.algorithm"] = "none"
    return {**{_LIBRDKAFKA_NAMES.get(name, name): left[name] for name in left}, **special}


class _StoreSettings:
    """Settings of stores with Java's names, and PEM for files and texts that are PEM."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str) -> str | None:
        found = self._given.get(name)
        if found is not None or not name.endswith(".type"):
            return found
        store = name.removesuffix(".type")
        location = self._given.get(f"{store}.location")
        return PEM if location is None or is_pem_file(location) else "JKS"


def _stores(left: dict[str, str]) -> dict[str, str]:
    """Remove Java's stores from `left`; return what librdkafka takes. Raises ConfigError."""
    given = {name: left[name] for name in left if name.startswith(_STORES)}
    if not given:
        return {}
    settings = _StoreSettings({**left})
    for name in given:
        del left[name]
    found: dict[str, str] = {}
    trusted, own = load_trust_store(settings), load_key_store(settings)
    if trusted is not None:
        found["ssl.ca.pem"] = "\n".join(trusted.certificates)
    if own is not None:
        left.pop("ssl.key.password", None)
        found["ssl.key.pem"] = own.key
        found["ssl.certificate.pem"] = "\n".join(own.certificates)
        if own.key_password is not None:
            found["ssl.key.password"] = own.key_password
    return found


def stores_as_pem(left: dict[str, str]) -> dict[str, str]:
    """Remove Java's stores from `left`; return them as `ssl.….pem`, and the key's password.

    Raises PipelineError: a store cannot be read.
    """
    try:
        return _stores(left)
    except ConfigError as error:
        raise PipelineError(f"the stores of the settings: {error}") from None


def _login(left: dict[str, str]) -> dict[str, str]:
    """Remove Java's login from `left`; return what librdkafka takes.

    Raises ConfigError for no JAAS line, PipelineError for a login that librdkafka does not have.
    """
    line = left.get(JAAS_KEY)
    module = None if line is None else jaas.parse_line(line)
    if token_logins.is_token_login(left, module):
        return _token_login(left, {} if module is None else module.options)
    left.pop(JAAS_KEY, None)
    handler = left.pop(HANDLER_KEY, None)
    if handler is not None:
        raise PipelineError(
            f"{HANDLER_KEY} names {handler}, a class of Java: only those of OAUTHBEARER have a "
            "counterpart here"
        )
    if module is not None and module.name in (_PLAIN, _SCRAM):
        return _password_login(module)
    if module is not None:
        raise PipelineError(
            f"sasl.jaas.config names {module.name}, expected {_PLAIN}, {_SCRAM} or "
            f"{token_logins.MODULE}: give librdkafka's own settings for another login, such as "
            "sasl.kerberos.principal"
        )
    return {}


def _password_login(module: LoginModule) -> dict[str, str]:
    options = module.options
    if options.get("tokenauth", "false").lower() == "true":
        raise PipelineError(
            "sasl.jaas.config has tokenauth=true: librdkafka does not log in with a delegation "
            "token; use Spark's connector (--source connector), or a user with a password"
        )
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise PipelineError(f"sasl.jaas.config of {module.name} has no {missing[0]}")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _token_login(left: dict[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Remove a login by token from `left`; return it with Java's names, and its stores as PEM.

    Empty where one of its settings is librdkafka's alone. Raises ConfigError, PipelineError.
    """
    found = token_logins.in_java(left, options)
    if not found and JAAS_KEY in left:
        raise PipelineError(
            "a setting of the login by OAUTHBEARER is librdkafka's alone: give the others with "
            "librdkafka's names, too, and no sasl.jaas.config"
        )
    if found:
        line = jaas.parse_line(found[JAAS_KEY])
        stores = {_PEM_OPTIONS[name]: text for name, text in _stores(line.options).items()}
        types = {f"{kind}type": PEM for kind in _STORES if any(kind in name for name in stores)}
        found[JAAS_KEY] = token_logins.line_of(line.name, {**line.options, **types, **stores})
        login_of(found)
    return found


def _java_token_login(left: dict[str, str]) -> dict[str, str]:
    """Remove a login by token from `left`; return it as Java has it. Raises PipelineError."""
    try:
        options = jaas.parse_line(left[JAAS_KEY]).options if JAAS_KEY in left else {}
    except ConfigError as error:
        raise PipelineError(f"the Kafka settings: {error}") from None
    found = token_logins.in_java(left, options)
    if not found:
        raise PipelineError(
            "a setting of the login by OAUTHBEARER is librdkafka's alone: Spark's connector does "
            "not have it"
        )
    return found


def _java_certificates(found: dict[str, str]) -> None:
    """Replace librdkafka's certificates by stores of type PEM. Raises PipelineError."""
    location, text = found.pop("ssl.ca.location", None), found.pop("ssl.ca.pem", None)
    if location is not None or text is not None:
        found["ssl.truststore.type"] = PEM
    if location is not None:
        found["ssl.truststore.location"] = location
    if text is not None:
        found["ssl.truststore.certificates"] = text
    own = {}
    for name, java in (("ssl.key", "key"), ("ssl.certificate", "certificate.chain")):
        location, text = found.pop(f"{name}.location", None), found.pop(f"{name}.pem", None)
        if location is not None:
            text = _read(name, location)
        if text is not None:
            own[f"ssl.keystore.{java}"] = text
    if "ssl.keystore.key" in own:
        password = found.pop("ssl.key.password", None)
        try:
            own["ssl.keystore.key"] = plain_pkcs8(own["ssl.keystore.key"], password, "ssl.key")
        except ConfigError as error:
            raise PipelineError(f"the Kafka settings: {error}") from None
    if own:
        found |= {"ssl.keystore.type": PEM, **own}


def _read(name: str, location: str) -> str:
    try:
        with open(location, encoding="ascii") as file:  # noqa: PTH123
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{name}.location={location} cannot be read: {error}") from error


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise PipelineError(f"{name}={text}: expected a number of bytes")
    return int(text)
