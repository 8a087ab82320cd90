"""Settings that are not served: refused where they decide who gets in or what is kept.

Settings of listeners that do not exist are named with the listener that was meant, and ignored.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.describe import documentation_of
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.broker.config.unserved import WITHOUT_EFFECT, strays
from minibroker.kafka.config_keys import default_value, parse_value
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.settings import build
from minibroker.verbs.serve.verb import parse_serve

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.kafka.config_keys import ConfigKey

WITH_ZOOKEEPER = {"zookeeper.connect": "127.0.0.1:2181"}
INTERNAL = {
    "listeners": "INTERNAL://127.0.0.1:0",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
}
# Words in names of settings that have to do with who gets in.
SECURITY_WORDS = re.compile(
    r"ssl|sasl|secur|auth|principal|acl|password|secret|token|credential|policy|kerberos|"
    r"clientCnxnSocket|callback"
)
SERVED = {
    "delegation.token.expiry.check.interval.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.master.key",
    "delegation.token.max.lifetime.ms",
    "delegation.token.secret.key",
    "java.security.auth.login.config",
    "java.security.krb5.conf",
    "minibroker.scram.credentials",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
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
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "security.inter.broker.protocol",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "password.encoder.cipher.algorithm",
    "password.encoder.iterations",
    "password.encoder.key.length",
    "password.encoder.keyfactory.algorithm",
    "password.encoder.old.secret",
    "password.encoder.secret",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
}
"""Settings of security that act."""
SERVED |= {
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
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    *WITHOUT_EFFECT,
}
# Names with such a word, and why every value of theirs is accepted.
HARMLESS = {
    "authorizer.class.name": "has effect, names of other classes are refused (test_secured)",
    "connection.failed.authentication.delay.ms": "has effect",
    "connections.max.reauth.ms": "has effect",
    "sasl.enabled.mechanisms": "has effect",
    "sasl.mechanism.inter.broker.protocol": "has effect",
    "security.inter.broker.protocol": "has effect",
    "sasl.server.max.receive.size": "has effect",
    "listener.security.protocol.map": "served protocols only, checked for each listener",
    "group.consumer.migration.policy": "has effect",
    "log.cleanup.policy": "has effect",
}


def other_value(key: ConfigKey) -> str:
    """Return a text of the key's type and range that is not its default."""
    words = key.allowed.lstrip("~").split("|")
    for text in filter(None, [*words, "true", "false", "1", "100000", "0.5", "a.Value"]):
        try:
            if parse_value(key, text) != default_value(key):
                return text
        except ConfigError:
            continue
    raise AssertionError(key.name)


MATCHING_KEYS = [name for name in BROKER_KEYS if SECURITY_WORDS.search(name)]
SECURITY_KEYS = [name for name in MATCHING_KEYS if name not in HARMLESS and name not in SERVED]


def test_the_list_has_the_keys_of_kafka() -> None:
    """A word that no longer matches would make the next test pass for nothing."""
    assert len(MATCHING_KEYS) > 110
    assert {
        "ssl.provider",
        "zookeeper.set.acl",
        "zookeeper.ssl.client.enable",
        "principal.builder.class",
        "create.topic.policy.class.name",
        "client.quota.callback.class",
        "sasl.login.class",
    } <= set(SECURITY_KEYS)


@pytest.mark.parametrize("name", SECURITY_KEYS)
def test_a_security_setting_is_refused_at_start_and_later(name: str) -> None:
    """The error names the key, the value (no secret) and what is allowed; the default is taken."""
    key = BROKER_KEYS[name]
    text = other_value(key)
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({**WITH_ZOOKEEPER, name: text})
    text_shown = "[hidden]" if key.is_sensitive else text
    assert f"{name}={text_shown}" in str(refused.value)
    assert f"(allowed: {key.default or 'no value'})" in str(refused.value)
    if key.default is not None or key.type not in ("int", "long"):
        assert BrokerConfig({name: key.default or ""}).unknown_keys == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("listener.name.internal.ssl.provider", "x"),
        ("listener.name.internal.sasl.jaas.config", "x"),
        ("listener.name.internal.plain.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.internal.scram-sha-256.sasl.server.callback.handler.class", "a.B"),
        ("listener.name.internal.principal.builder.class", "a.B"),
        ("remote.log.storage.system.enable", "true"),
        ("config.providers", "file"),
        ("zookeeper.metadata.migration.enable", "true"),
    ],
)
def test_settings_without_a_row_and_of_one_listener_are_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{name}=")):
        BrokerConfig({**WITH_ZOOKEEPER, **INTERNAL, name: text})


def test_all_refused_security_settings_are_named_at_once_and_secrets_are_not() -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({"sasl.jaas.config": "s3cret", "ssl.provider": "x"})
    sentence = str(refused.value)
    assert "sasl.jaas.config=[hidden] (allowed: no value), ssl.provider=x" in sentence
    assert "Remove the setting" in sentence
    assert "s3cret" not in sentence


def test_a_value_that_another_broker_stored_is_not_applied_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka left it in the tree: the values in force stay, and the log says why."""
    dynamic = DynamicConfig(BrokerConfig(INTERNAL))
    dynamic.set_broker({"listener.name.internal.ssl.provider": "x"})
    assert dynamic.broker is dynamic.static
    assert "listener.name.internal.ssl.provider=x" in caplog.text


def test_settings_that_change_nothing_here_are_named_in_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "kafka.metrics.reporters=a.B\nmetric.reporters=a.B\noffsets.load.buffer.size=5242880\n"
        "offsets.commit.required.acks=1\noffsets.commit.timeout.ms=10000\n"
    )
    arguments = parse_serve(["--config", str(file)])
    with caplog.at_level(logging.WARNING):
        build(arguments, {})
    assert caplog.messages == [
        "these settings have no effect: kafka.metrics.reporters, metric.reporters,"
        " offsets.commit.required.acks"
    ]


def test_the_documentation_says_what_is_not_served() -> None:
    for name in ("sasl.jaas.config", "create.topic.policy.class.name"):
        line = documentation_of("broker", name)
        assert line is not None
        assert line.endswith(" Not served: only the default is accepted.")
    reporters = documentation_of("broker", "metric.reporters")
    assert reporters is not None
    assert reporters.endswith(" It has no effect here: reporters are Java classes.")
    assert documentation_of("broker", "nobody.knows") is None


def test_a_setting_that_changes_nothing_here_is_named_when_it_is_altered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dynamic = DynamicConfig(BrokerConfig())
    values = {"metric.reporters": "a.B"}
    for changed in (values, {**values, "log.roll.ms": "1000"}, {"log.roll.ms": "1000"}):
        dynamic.set_cluster_default(changed)
    assert caplog.messages == ["these settings have no effect: metric.reporters"]


def test_settings_of_a_login_that_needs_no_renewal_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    prefix = "listener.name.internal.oauthbearer."
    settings = {
        "sasl.kerberos.min.time.before.relogin": "1",
        f"{prefix}sasl.kerberos.kinit.cmd": "kinit",
        "sasl.kerberos.ticket.renew.jitter": "0.05",  # the default
    }
    DynamicConfig(BrokerConfig(INTERNAL)).set_cluster_default(settings)
    assert caplog.messages == [
        f"these settings have no effect: {prefix}sasl.kerberos.kinit.cmd,"
        " sasl.kerberos.min.time.before.relogin"
    ]


NAMES = ("HOST_SASL", "PLAINTEXT", "MY-TLS")
COMPOSE = {
    "KAFKA_LISTENERS": "PLAINTEXT://:29092,HOST_SASL://:9092",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092,HOST_SASL://localhost:9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,HOST_SASL:SASL_PLAINTEXT",
    "KAFKA_LISTENER_NAME_HOST_SASL_SASL_ENABLED_MECHANISMS": "PLAIN",
    "KAFKA_LISTENER_NAME_HOST_SASL_PLAIN_SASL_JAAS_CONFIG": 'a.B required user_a="secret";',
    "KAFKA_ZOOKEEPER_SET_ACL": "true",
}
"""Variables that a compose file for cp-server has."""


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("listener.name.host_sasl.sasl.enabled.mechanisms", None),
        ("listener.name.host_sasl.scram-sha-256.sasl.jaas.config", None),
        ("listener.name.my-tls.ssl.client.auth", None),
        ("listener.name.plaintext.no.key.of.kafka", None),
        (
            "listener.name.host.sasl.sasl.enabled.mechanisms",
            "it is read for a listener HOST; for listener HOST_SASL it is"
            " listener.name.host_sasl.sasl.enabled.mechanisms, as a variable"
            " KAFKA_LISTENER_NAME_HOST__SASL_SASL_ENABLED_MECHANISMS",
        ),
        (
            "listener.name.my.tls.ssl.client.auth",
            "it is read for a listener MY; for listener MY-TLS it is"
            " listener.name.my-tls.ssl.client.auth, as a variable"
            " KAFKA_LISTENER_NAME_MY___TLS_SSL_CLIENT_AUTH",
        ),
        ("listener.name.nobody.ssl.client.auth", "there is no listener NOBODY"),
        ("zookeeper.set.acl", "zookeeper.connect is not set"),
        ("zookeeper.no.key.of.kafka", None),
    ],
)
def test_each_setting_is_somebodys_or_says_why_not(key: str, reason: str | None) -> None:
    assert strays({key: "x"}, NAMES).get(key) == reason


def test_a_listener_whose_name_begins_another_ones_does_not_take_its_settings() -> None:
    key = "listener.name.host.sasl.sasl.enabled.mechanisms"
    own = "listener.name.host.sasl.enabled.mechanisms"
    unread = strays({key: "PLAIN", own: "PLAIN"}, ("HOST", "HOST_SASL"))
    assert list(unread) == [key]


def test_the_listener_of_a_controller_is_one() -> None:
    config = BrokerConfig(
        {
            "controller.listener.names": "CONTROLLER, OTHER",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.other.sasl.enabled.mechanisms": "PLAIN",
        }
    )
    assert config.without_effect == ()


def test_a_compose_file_with_one_underscore_too_few_starts_as_with_kafka(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        config, _ = build(parse_serve([]), COMPOSE)
    assert config.of_listener("HOST_SASL").words("sasl.enabled.mechanisms") == ["GSSAPI"]
    (line,) = caplog.messages
    assert line.startswith("these settings have no effect: listener.name.host.sasl.plain.sasl.jaas")
    assert "for listener HOST_SASL it is listener.name.host_sasl.sasl.enabled.mechanisms" in line
    assert line.endswith("zookeeper.set.acl (zookeeper.connect is not set)")
    assert "secret" not in line


def test_with_a_zookeeper_its_nodes_would_be_open_and_the_start_ends() -> None:
    """Kafka ends it too, unless it has a login at ZooKeeper."""
    settings = {"zookeeper.connect": "127.0.0.1:2181", "zookeeper.set.acl": "true"}
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true is not served .*does not log"):
        BrokerConfig(settings)


def test_a_setting_counts_as_soon_as_its_listener_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dynamic = DynamicConfig(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}))
    own = {"listener.name.extra.ssl.provider": "x"}
    dynamic.set_broker(own)
    assert caplog.messages == [
        "these settings have no effect: listener.name.extra.ssl.provider (there is no listener"
        " EXTRA)"
    ]
    caplog.clear()
    listeners = "PLAINTEXT://127.0.0.1:0,EXTRA://127.0.0.1:0"
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:SSL"}
    with pytest.raises(ConfigError, match=r"listener\.name\.extra\.ssl\.provider=x"):
        BrokerConfig({"listeners": listeners, **protocols, **own})
