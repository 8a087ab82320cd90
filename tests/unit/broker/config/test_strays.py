"""Settings of listeners that do not exist: named with the listener that was meant, and ignored."""

from __future__ import annotations

import logging

import pytest

from minibroker import cli
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.config.strays import strays
from minibroker.kafka.errors import ConfigError

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
    found = strays({key: "PLAIN", own: "PLAIN"}, ("HOST", "HOST_SASL"))
    assert list(found) == [key]


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
        config, _ = cli.build(cli.parse_serve([]), COMPOSE)
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
