"""`BrokerConfig`: settings that contradict each other are refused in one sentence, and changes."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.errors import ConfigError


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"node\.id=1 and broker\.id=2"):
        BrokerConfig({"node.id": "1", "broker.id": "2"})
    with pytest.raises(ConfigError, match=r"node\.id=0 and broker\.id=2"):
        BrokerConfig({"node.id": "0"}).with_overrides({"broker.id": "2"})


def test_overrides_make_a_new_config() -> None:
    config = BrokerConfig({"num.partitions": "2"})
    changed = config.with_overrides({"num.partitions": "3", "log.segment.bytes": "2000"})
    assert (config.num_partitions, changed.num_partitions) == (2, 3)
    assert changed.get("log.segment.bytes") == 2000


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"broker.id": "1", "node.id": "2"}, "node.id=2 and broker.id=1"),
        (
            {"broker.id": "-1"},
            "broker.id=-1: expected a number from 0 to reserved.broker.max.id=1000",
        ),
        ({"broker.id": "1001"}, "reserved.broker.max.id=1000"),
        (
            {"broker.id": "-1", "zookeeper.connect": "a:1", "broker.id.generation.enable": "false"},
            "or -1 with zookeeper.connect and broker.id.generation.enable=true",
        ),
        ({"process.roles": "controller"}, "process.roles=controller"),
        (
            {"controller.quorum.voters": "1@a:1,2@b:1,3@c:1"},
            "controller.quorum.voters=1@a:1,2@b:1,3@c:1: expected one controller",
        ),
        (
            {"controller.quorum.bootstrap.servers": "a:1,b:1"},
            "(--brokers 3), or on one ZooKeeper (zookeeper.connect)",
        ),
        ({"listeners": ""}, "no listener is left"),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092"},
            "set advertised.listeners=PLAINTEXT://HOST:9092",
        ),
        (
            {"listeners": "PLAINTEXT://a:1", "advertised.listeners": "SSL://a:1"},
            "advertised.listeners has SSL; expected names out of listeners: PLAINTEXT",
        ),
        (
            {"listeners": "EXT://a:1", "listener.security.protocol.map": "EXT:PLAINTEXT"},
            "set inter.broker.listener.name=EXT",
        ),
        ({"inter.broker.listener.name": "EXT"}, "inter.broker.listener.name=EXT is not advertised"),
        (
            {
                "inter.broker.listener.name": "PLAINTEXT",
                "security.inter.broker.protocol": "PLAINTEXT",
            },
            "give only one of them",
        ),
        ({"control.plane.listener.name": "C"}, "control.plane.listener.name=C is not advertised"),
        (
            {"control.plane.listener.name": "plaintext"},
            "control.plane.listener.name=PLAINTEXT is the listener between brokers, too",
        ),
        (
            {"control.plane.listener.name": "C", "process.roles": "broker,controller"},
            "control.plane.listener.name=C is not supported with process.roles",
        ),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes=5"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip.overrides"),
        (
            {"listener.name.plaintext.max.connections": "many"},
            "Invalid value many for configuration listener.name.plaintext.max.connections",
        ),
        (
            {"listener.name.plaintext.max.connection.creation.rate": "-1"},
            "Invalid value -1 for configuration"
            " listener.name.plaintext.max.connection.creation.rate: Value must be at least 0",
        ),
        ({"max.connections.per.ip.overrides": "a b:1"}, "'a b:1' is not HOST:COUNT"),
        ({"max.connections.per.ip.overrides": "host"}, "'host' is not HOST:COUNT"),
        ({"connections.max.idle.ms": "100"}, "connection.failed.authentication.delay.ms=100"),
        ({"log.dirs": " , "}, "log.dirs"),
        ({"log.roll.ms": "0"}, "log.roll.ms=0: expected at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms=-1: expected at least 0"),
        ({"log.retention.ms": "0"}, "log.retention.ms=0"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size=1048576"),
        (
            {"replica.fetch.wait.max.ms": "30001"},
            "must not be greater than replica.socket.timeout.ms",
        ),
        ({"group.min.session.timeout.ms": "1800001"}, "group.max.session.timeout.ms=1800000"),
        (
            {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"},
            "log.cleaner.min.compaction.lag.ms=9 must not be greater",
        ),
        ({"group.coordinator.rebalance.protocols": "consumer"}, "classic cannot be left out"),
        ({"offsets.topic.compression.codec": "5"}, "offsets.topic.compression.codec=5: expected 0"),
        (
            {"replica.selector.class": "com.example.Nearest"},
            "replica.selector.class=com.example.Nearest: no Java class is loaded; served are"
            " org.apache.kafka.common.replica.RackAwareReplicaSelector",
        ),
        ({"offsets.commit.required.acks": "2"}, "offsets.commit.required.acks=2: expected -1 to"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(settings)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"node.id": "5000", "process.roles": "broker"},
        {"controller.quorum.voters": "1@localhost:9093"},
        {"broker.id": "5000", "broker.id.generation.enable": "false"},
        {"connections.max.idle.ms": "-1"},
        {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:3"},
        {"log.retention.ms": "-1"},
        {"log.cleaner.threads": "0", "log.cleaner.dedupe.buffer.size": "1"},
        {"security.inter.broker.protocol": "PLAINTEXT"},
    ],
)
def test_values_that_kafka_takes_are_taken(settings: dict[str, str]) -> None:
    BrokerConfig(settings)


def test_an_id_that_is_generated_may_be_above_those_that_are_given() -> None:
    config = BrokerConfig({"broker.id": "-1", "zookeeper.connect": "a:1"})
    assert config.broker_id == -1
    generated = config.with_generated_id(1001)
    assert generated.broker_id == 1001
    assert generated.with_overrides({"num.partitions": "3"}).broker_id == 1001
