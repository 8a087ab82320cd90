"""The configurations of brokers that share a process."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.members import configs_of
from minibroker.kafka.errors import ConfigError


def members(count: int, **settings: str) -> list[BrokerConfig]:
    keys = {key.replace("_", "."): value for key, value in settings.items()}
    return configs_of(BrokerConfig(keys), count)


def test_ids_ports_and_directories_follow_one_another() -> None:
    configs = members(
        3,
        broker_id="5",
        log_dirs="/a,/b",
        listeners="PLAINTEXT://127.0.0.1:9092,X://[::1]:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,X:PLAINTEXT",
    )
    assert [config.broker_id for config in configs] == [5, 6, 7]
    assert [config.integer("node.id") for config in configs] == [5, 6, 7]
    assert [config.log_dirs for config in configs][1:] == [
        ("/a/broker-6", "/b/broker-6"),
        ("/a/broker-7", "/b/broker-7"),
    ]
    assert [[listener.port for listener in config.listeners] for config in configs] == [
        [9092, 0],
        [9093, 0],
        [9094, 0],
    ]


def test_advertised_ports_follow_one_another_too() -> None:
    configs = members(
        2, listeners="PLAINTEXT://:9092", advertised_listeners="PLAINTEXT://broker:19092"
    )
    assert [str(config.advertised_listeners[0]) for config in configs] == [
        "PLAINTEXT://broker:19092",
        "PLAINTEXT://broker:19093",
    ]


@pytest.mark.parametrize(("count", "replicas", "min_isr"), [(2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_topics_have_three_replicas_where_there_are_brokers(
    count: int, replicas: int, min_isr: int
) -> None:
    for config in members(count):
        assert config.default_replication_factor == replicas
        assert config.offsets_topic_replication_factor == replicas
        assert config.integer("transaction.state.log.replication.factor") == replicas
        assert config.integer("transaction.state.log.min.isr") == min_isr


def test_a_replication_factor_that_was_given_stays() -> None:
    (config, _) = members(2, default_replication_factor="1", transaction_state_log_min_isr="2")
    assert config.default_replication_factor == 1
    assert config.integer("transaction.state.log.min.isr") == 2
    assert config.offsets_topic_replication_factor == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"zookeeper_connect": "z:1"}, "leave out --zookeeper (zookeeper.connect=z:1)"),
        ({"listeners": "PLAINTEXT://:65534"}, "65536 is none: give a lower port, or 0"),
        (
            {
                "listeners": "PLAINTEXT://h:9092,X://h:9093",
                "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,X:PLAINTEXT",
            },
            "of broker 1 has a port that broker 0 has, too",
        ),
        ({"broker_id": "999"}, "broker.id=1001: expected a number from 0"),
    ],
)
def test_settings_that_cannot_be_shared_are_refused(
    settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        members(3, **settings)
    assert sentence in str(caught.value)
