"""The tables: Kafka 3.9's keys are there, and defaults differ only where the docstring says so."""

from __future__ import annotations

from minibroker.broker.config.broker_keys import BROKER_KEYS
from minibroker.broker.config.definition import CLUSTER_WIDE, PER_BROKER, READ_ONLY
from minibroker.broker.config.topic_keys import TOPIC_KEYS


def test_one_development_node_works_without_settings() -> None:
    """Design: replication factors 1, no rebalance delay, auto-creation, broker 0, loopback."""
    defaults = {name: key.default for name, key in BROKER_KEYS.items()}
    assert defaults["broker.id"] == defaults["node.id"] == "0"
    assert defaults["group.initial.rebalance.delay.ms"] == "0"
    assert defaults["auto.create.topics.enable"] == "true"
    assert defaults["listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert {
        name: default
        for name, default in defaults.items()
        if name.endswith(("replication.factor", ".min.isr"))
    } == {
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def test_kafkas_other_defaults_stand() -> None:
    """Spot checks over all tables against Kafka 3.9's documentation."""
    for name, default in {
        "log.retention.hours": "168",
        "message.max.bytes": "1048588",
        "socket.request.max.bytes": "104857600",
        "connections.max.idle.ms": "600000",
        "max.incremental.fetch.session.cache.slots": "1000",
        "zookeeper.session.timeout.ms": "18000",
        "offsets.retention.minutes": "10080",
        "producer.id.expiration.ms": "86400000",
        "quota.window.num": "11",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "log.cleaner.io.max.bytes.per.second": "1.7976931348623157E308",
    }.items():
        assert BROKER_KEYS[name].default == default, name


def test_update_modes_and_secrets() -> None:
    assert BROKER_KEYS["log.segment.bytes"].update_mode == CLUSTER_WIDE
    assert BROKER_KEYS["max.connections"].update_mode == CLUSTER_WIDE
    assert BROKER_KEYS["advertised.listeners"].update_mode == PER_BROKER
    assert BROKER_KEYS["listeners"].update_mode == PER_BROKER
    assert BROKER_KEYS["ssl.keystore.location"].update_mode == READ_ONLY
    assert BROKER_KEYS["broker.id"].update_mode == READ_ONLY
    assert BROKER_KEYS["sasl.jaas.config"].is_sensitive
    assert not BROKER_KEYS["log.dirs"].is_sensitive


def test_kafka_3_9_has_328_broker_keys_and_36_topic_keys() -> None:
    """Keys of 4.x, keys of minibroker and keys that are only set at run time are hidden there."""
    internal = 14  # of Kafka's own
    visible = [name for name, key in BROKER_KEYS.items() if not key.is_hidden]
    assert len(visible) == 328 - internal
    assert len([name for name, key in TOPIC_KEYS.items() if not key.is_hidden]) == 36
