"""Settings of Kafka that this broker does not serve: it refuses some and names others in a warning.

A setting that changes which clients get in or which data are kept is refused, unless its value is
Kafka's default: an operator who reads it in the file would believe in it. `BrokerConfig` asks here
for the settings at start and for dynamic ones, so both ways answer alike. A setting that changes
neither is named in one warning (`WITHOUT_EFFECT`). So is a setting that no part reads, because its
listener is not configured or there is no ZooKeeper (`strays`). Often the name of such a listener is
misspelt: a variable needs two underscores where the listener's name has one. Then the warning has
the name that was meant.

Source: Kafka AbstractConfig.valuesWithPrefixOverride, KafkaServer (with KRaft no key of ZooKeeper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.broker.config.settings import LISTENER_PREFIX
from minibroker.kafka.config_keys import default_value, parse_value
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MECHANISMS: Final = ("gssapi", "oauthbearer", "plain", "scram-sha-256", "scram-sha-512")
_ZOOKEEPER_PREFIX: Final = "zookeeper."
_ZOOKEEPER_CONNECT: Final = "zookeeper.connect"
_SECURITY_PREFIXES: Final = (
    "sasl.",
    "ssl.",
    "zookeeper.ssl.",
    "delegation.token.",
)
_SECURITY_KEYS: Final = frozenset(
    {
        "connections.max.reauth.ms",
        "principal.builder.class",
        "security.providers",
        "zookeeper.clientCnxnSocket",
    }
)
TLS_STORE_KEYS: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Keys that change while a listener runs, each behind the prefix of the listener."""
_SERVED: Final = TLS_STORE_KEYS | frozenset(
    {
        "connections.max.reauth.ms",
        "delegation.token.expiry.check.interval.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.master.key",
        "delegation.token.max.lifetime.ms",
        "delegation.token.secret.key",
        "sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.oauthbearer.allow.unverified.audience",
        "sasl.oauthbearer.allow.unverified.issuer",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.server.max.receive.size",
        "security.inter.broker.protocol",
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.principal.mapping.rules",
        "ssl.protocol",
    }
)
"""Keys of security that act."""
_SERVED_OF_MECHANISM: Final = frozenset({"connections.max.reauth.ms", "sasl.jaas.config"})
"""Keys that act for one mechanism of one listener."""
_SERVED_OF_OAUTHBEARER: Final = _SERVED_OF_MECHANISM | {
    "sasl.login.callback.handler.class",
    "sasl.server.callback.handler.class",
    *(key for key in _SERVED if key.startswith(("sasl.oauthbearer.", "sasl.login."))),
}
_SECURITY_REASON: Final = (
    "minibroker does not serve these settings of security yet, and clients that they keep out would"
    " get in. Remove the setting, and let only trusted clients reach the listeners"
)

# Key → the effect that would be missing. Each changes which data are kept, or who is limited.
_REASONS: Final = {
    "alter.config.policy.class.name": "no Java class is loaded, so no policy would be asked",
    "client.quota.callback.class": "no Java class is loaded; limits are those of AlterClientQuotas",
    "config.providers": "a value with ${...} would be taken as it stands; write the value itself",
    "create.topic.policy.class.name": "no Java class is loaded, so no policy would be asked",
    "remote.log.storage.system.enable": "records are kept in log.dirs only",
    "zookeeper.metadata.migration.enable": "the metadata would stay in ZooKeeper",
    "zookeeper.set.acl": (
        "minibroker does not log in at ZooKeeper, so its nodes would be open to every client of it."
        " Remove the setting, and let only trusted clients reach ZooKeeper"
    ),
}
_JAVA_REPORTERS: Final = "reporters are Java classes"
_WRITTEN_AT_ONCE: Final = (
    "what one read of a socket brought is one write, and nothing waits for more"
)
_LOADED_IN_PARTS: Final = "an internal topic is loaded in parts of 256 KiB, others go on in between"
_TICKETS: Final = "libkrb5 takes a new ticket from the keytab when it needs one"
WITHOUT_EFFECT: Final = {
    "cordoned.log.dirs": "new partitions go to every log directory",
    "group.coordinator.append.linger.ms": _WRITTEN_AT_ONCE,
    "kafka.metrics.reporters": _JAVA_REPORTERS,
    "metric.reporters": _JAVA_REPORTERS,
    "offsets.commit.required.acks": "a commit waits for all replicas in sync, as in Kafka 4",
    "offsets.load.buffer.size": _LOADED_IN_PARTS,
    "sasl.kerberos.kinit.cmd": _TICKETS,
    "sasl.kerberos.min.time.before.relogin": _TICKETS,
    "sasl.kerberos.ticket.renew.jitter": _TICKETS,
    "sasl.kerberos.ticket.renew.window.factor": _TICKETS,
    "sasl.mechanism.controller.protocol": "no connection goes to a controller of KRaft",
    "transaction.state.log.load.buffer.size": _LOADED_IN_PARTS,
}
"""Key → why it makes no difference here."""


def check_served(settings: Mapping[str, str]) -> None:
    """Raise ConfigError for a setting that would let clients in, or keep data, in a way not served.

    `settings`: key → text, as given at start or dynamically; types and ranges are checked before.
    """
    security = [
        f"{name}={_printable(name, text)} (allowed: {_default_text(name) or 'no value'})"
        for name, text in settings.items()
        if _is_security(name) and not _is_default(name, text)
    ]
    if security:
        raise ConfigError(f"{', '.join(security)}: {_SECURITY_REASON}")
    for name, text in settings.items():
        reason = _REASONS.get(name)
        if reason is not None and not _is_default(name, text):
            allowed = _default_text(name) or "no value"
            raise ConfigError(f"{name}={text} is not served (allowed: {allowed}): {reason}")


def without_effect(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of `WITHOUT_EFFECT` that are set to something else than their default."""
    return tuple(
        sorted(
            name
            for name, text in settings.items()
            if key_name(name) in WITHOUT_EFFECT and not _is_default(name, text)
        )
    )


def note_on(name: str) -> str:
    """Return the sentence that a key's documentation ends with, "" for a key that is served."""
    if _is_security(name) or name in _REASONS:
        return " Not served: only the default is accepted."
    reason = WITHOUT_EFFECT.get(name)
    return f" It has no effect here: {reason}." if reason is not None else ""


def _is_security(name: str) -> bool:
    """Return whether the key decides which clients get in, by itself or behind a listener's prefix.

    A mechanism may stand between prefix and key: `listener.name.x.plain.sasl.jaas.config`. A name
    that Kafka does not know is no setting of the broker (`unknown_keys` names it).
    """
    base = key_name(name)
    if base in _served(name) or base in WITHOUT_EFFECT:
        return False
    if base in _SECURITY_KEYS:
        return True
    is_known = base in BROKER_KEYS or base != name
    return is_known and base.startswith(_SECURITY_PREFIXES)


def is_read_at_start(name: str) -> bool:
    """Return whether a listener's setting acts from its start on, so that a change acts with the
    next start.
    """
    key = key_name(name)
    return name.startswith(LISTENER_PREFIX) and key in _served(name) and key not in TLS_STORE_KEYS


def _served(name: str) -> frozenset[str]:
    """Return the keys that act where this one stands: for one mechanism, or not."""
    if not _names_mechanism(name):
        return _SERVED
    mechanism = name.split(".", 4)[3]
    return _SERVED_OF_OAUTHBEARER if mechanism == "oauthbearer" else _SERVED_OF_MECHANISM


def key_name(name: str) -> str:
    """Return the key behind the prefixes of a listener and a mechanism, other names unchanged."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    base = name[len(LISTENER_PREFIX) :].partition(".")[2]
    return base.partition(".")[2] if _names_mechanism(name) else base


def _names_mechanism(name: str) -> bool:
    """Return whether a mechanism stands between a listener's prefix and the key."""
    if not name.startswith(LISTENER_PREFIX):
        return False
    behind = name.split(".", 4)[-1]
    return behind.startswith("sasl.") or behind == "connections.max.reauth.ms"


def _is_default(name: str, text: str) -> bool:
    """Return whether the value is Kafka's default; an empty text also stands for no value."""
    base = key_name(name)
    key = BROKER_KEYS.get(base)
    if key is None:
        return False
    if key.default is None:
        return not text.strip()
    return parse_value(key, text) == default_value(key)


def _default_text(name: str) -> str | None:
    base = key_name(name)
    key = BROKER_KEYS.get(base)
    return None if key is None else key.default


def _printable(name: str, text: str) -> str:
    """Return the value for an error message, without secrets."""
    base = key_name(name)
    key = BROKER_KEYS.get(base)
    is_secret = key is None or key.is_sensitive
    return "[hidden]" if is_secret else text


def strays(settings: Mapping[str, str], listeners: Collection[str]) -> dict[str, str]:
    """Return key → why it has no effect, for each such setting. `listeners`: the names of those
    that are configured, for clients, brokers and controllers.
    """
    names = [name.lower() for name in listeners]
    has_zookeeper = bool(settings.get(_ZOOKEEPER_CONNECT))
    reasons: dict[str, str] = {}
    for key in settings:
        reason = None
        if key.startswith(LISTENER_PREFIX):
            reason = _why_of_no_listener(key, names)
        elif key.startswith(_ZOOKEEPER_PREFIX) and not has_zookeeper and key in BROKER_KEYS:
            reason = f"{_ZOOKEEPER_CONNECT} is not set"
        if reason is not None:
            reasons[key] = reason
    return reasons


def _why_of_no_listener(key: str, names: Collection[str]) -> str | None:
    """Return why no listener has this setting; None: one has, or may have it."""
    behind = key[len(LISTENER_PREFIX) :]
    own, _, base = behind.partition(".")
    if own in names and _is_known(base):
        return None
    for name in names:
        dotted = name.replace("_", ".").replace("-", ".")
        if dotted != name and behind.startswith(f"{dotted}."):
            meant = behind[len(dotted) + 1 :]
            if _is_known(meant):
                return _hint(own, name, f"{LISTENER_PREFIX}{name}.{meant}")
    if own in names:
        return None  # Kafka might read it, so `unserved` decides
    return f"there is no listener {own.upper()}"


def _is_known(base: str) -> bool:
    """Return whether Kafka knows the key, by itself or behind the name of a mechanism."""
    mechanism, _, key = base.partition(".")
    return base in BROKER_KEYS or (mechanism in _MECHANISMS and key in BROKER_KEYS)


def _hint(own: str, name: str, right: str) -> str:
    variable = right.upper().replace("_", "__").replace("-", "___").replace(".", "_")
    return (
        f"it is read for a listener {own.upper()}; for listener {name.upper()} it is {right}, as a"
        f" variable KAFKA_{variable}"
    )
