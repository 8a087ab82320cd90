"""minibroker's tables of keys beside Apache Kafka 3.9.1's own descriptions.

The peer describes itself, a topic and altered values; the same settings go through our layers.
Names, values, types, sources, synonyms, read-only and sensitive flags must be equal, except for the
defaults that differ on purpose (`config/keys.py` lists them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.describe import (
    DEFAULT_SOURCE,
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    cluster_default_entries,
    group_entries,
    topic_entries,
)
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.config.keys import BROKER_KEYS, sentence_of
from minibroker.broker.handlers.describe_configs import TYPE_CODES
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer

pytestmark = pytest.mark.java

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
INVALID_REQUEST = 42
VERSION = 4

# Key → why its value, source or default layer differs.
OURS = {
    "broker.id": "0 by default here",
    "node.id": "0 by default here",
    "group.initial.rebalance.delay.ms": "0 by default here",
    "group.coordinator.rebalance.protocols": "consumer groups are served by default, as in Kafka 4",
    "listeners": "loopback by default here",
    "log.dir": "minibroker-data by default here",
    "offsets.topic.replication.factor": "1 by default here",
    "transaction.state.log.replication.factor": "1 by default here",
    "transaction.state.log.min.isr": "1 by default here",
}


def is_unserved_security(name: str) -> bool:
    """Return whether minibroker refuses to alter the key, because it would have no effect."""
    return name.startswith(("ssl.", "sasl.")) or name == "principal.builder.class"


def describe(peer: KafkaPeer | Minibroker, kind: int, name: str) -> dict[str, dict[str, Any]]:
    """Return the peer's description of one resource: key → its entry."""
    with WireClient(peer.host, peer.port) as client:
        answer = client.call(
            "describe_configs",
            VERSION,
            resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": None}],
            include_synonyms=True,
            include_documentation=True,
        )
    (result,) = answer["results"]
    assert result["error_code"] == 0, result["error_message"]
    return {config["name"]: config for config in result["configs"]}


def alter(peer: KafkaPeer, kind: int, name: str, configs: dict[str, str | None]) -> None:
    """Set these values of the peer; None removes one."""
    with WireClient(peer.host, peer.port) as client:
        answer = client.call(
            "incremental_alter_configs",
            1,
            resources=[
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [
                        {"name": key, "config_operation": int(value is None), "value": value}
                        for key, value in configs.items()
                    ],
                }
            ],
            validate_only=False,
        )
    assert [r["error_code"] for r in answer["responses"]] == [0], answer


def ours(entry: ConfigEntry) -> dict[str, Any]:
    """Return one of minibroker's entries in the form of the protocol."""
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": entry.source,
        "is_sensitive": entry.is_sensitive,
        "synonyms": [
            {"name": layer.name, "value": layer.value, "source": layer.source}
            for layer in entry.layers
        ],
        "config_type": TYPE_CODES[entry.type],
    }


def comparable(config: dict[str, Any], *, with_default: bool) -> dict[str, Any]:
    """Return an entry without documentation, and without a default that differs on purpose."""
    fields = {
        key: value for key, value in config.items() if key not in ("documentation", "is_default")
    }
    if not with_default:
        fields["synonyms"] = [s for s in fields["synonyms"] if s["source"] != DEFAULT_SOURCE]
    return fields


def differences(theirs: dict[str, dict[str, Any]], entries: list[ConfigEntry]) -> list[str]:
    mine = {entry.name: ours(entry) for entry in entries}
    sentences = [f"missing here: {name}" for name in sorted(theirs.keys() - mine.keys())]
    sentences += [f"missing there: {name}" for name in sorted(mine.keys() - theirs.keys())]
    for name in sorted(theirs.keys() & mine.keys()):
        with_default = name not in OURS
        theirs_fields = comparable(theirs[name], with_default=with_default)
        if is_unserved_security(name):
            theirs_fields["read_only"] = True
        right = comparable(mine[name], with_default=with_default)
        if theirs_fields != right and not (
            name in OURS and theirs_fields["config_source"] == DEFAULT_SOURCE
        ):
            sentences.append(f"{name}: Kafka {theirs_fields}, here {right}")
    return sentences


def static_config(peer: KafkaPeer) -> DynamicConfig:
    """Return minibroker's layers over the peer's own settings."""
    return DynamicConfig(BrokerConfig(peer._properties()))


def test_the_broker_is_described_as_kafka_describes_it(kafka_39: KafkaPeer) -> None:
    dynamic = static_config(kafka_39)
    assert differences(describe(kafka_39, BROKER, "0"), broker_entries(dynamic)) == []


def test_every_broker_key_of_kafka_4_is_known(kafka_44: KafkaPeer) -> None:
    """A key is served, refused (`config/unserved.py`) or harmless; none is ignored."""
    assert describe(kafka_44, BROKER, "0").keys() - BROKER_KEYS.keys() == set()


def test_every_key_of_kafka_has_documentation_and_none_of_it_is_kafkas(kafka_39: KafkaPeer) -> None:
    for name, config in describe(kafka_39, BROKER, "0").items():
        line = sentence_of("broker", name)
        assert line, name
        assert line not in (config["documentation"] or ""), name


def test_altered_values_and_a_topic_are_described_as_kafka_describes_them(
    kafka_39: KafkaPeer,
) -> None:
    """The cluster-wide values, those of the broker, and a topic with values of its own."""
    name = "config-tables"
    cluster = {"log.retention.ms": "7200000", "log.cleaner.backoff.ms": "16000"}
    broker = {"log.segment.bytes": "2000000", "log.retention.ms": "3600000"}
    topic = {"cleanup.policy": "compact,delete", "retention.ms": "1800000"}
    with WireClient(kafka_39.host, kafka_39.port) as client:
        client.call(
            "create_topics",
            5,
            topics=[
                {
                    "name": name,
                    "num_partitions": 1,
                    "replication_factor": 1,
                    "assignments": [],
                    "configs": [{"name": key, "value": text} for key, text in topic.items()],
                }
            ],
            timeout_ms=60_000,
            validate_only=False,
        )
    dynamic = static_config(kafka_39)
    dynamic.set_cluster_default(cluster)
    dynamic.set_broker(broker)
    alter(kafka_39, BROKER, "", dict(cluster))
    alter(kafka_39, BROKER, "0", dict(broker))
    try:
        wait_until_applied(kafka_39, broker | {"log.cleaner.backoff.ms": "16000"})
        assert differences(describe(kafka_39, BROKER, ""), cluster_default_entries(dynamic)) == []
        assert differences(describe(kafka_39, BROKER, "0"), broker_entries(dynamic)) == []
        assert differences(describe(kafka_39, TOPIC, name), topic_entries(dynamic, topic)) == []
    finally:
        alter(kafka_39, BROKER, "", dict.fromkeys(cluster))
        alter(kafka_39, BROKER, "0", dict.fromkeys(broker))


def test_groups_and_client_metrics_have_the_keys_of_kafka_4(kafka_44: KafkaPeer) -> None:
    """Names, types, the keys' own defaults; what a broker key supplies may have another value."""
    dynamic = DynamicConfig(BrokerConfig())
    for kind, entries in (
        (GROUP, group_entries(dynamic, {})),
        (CLIENT_METRICS, client_metrics_entries({})),
    ):
        theirs = describe(kafka_44, kind, "some-name")
        mine = {entry.name: ours(entry) for entry in entries}
        assert theirs.keys() == mine.keys()
        for name, config in theirs.items():
            assert config["config_type"] == mine[name]["config_type"], name
            assert [synonym["name"] for synonym in config["synonyms"]] == [
                s["name"] for s in mine[name]["synonyms"]
            ], name
            if all(s["name"] == name for s in config["synonyms"]):
                assert config["value"] == mine[name]["value"], name


def wait_until_applied(peer: KafkaPeer, values: dict[str, str]) -> None:
    """Wait until Kafka shows an alteration: it applies it after ZooKeeper's notice."""
    for _ in range(2000):
        described = describe(peer, BROKER, "0")
        if all(described[name]["value"] == value for name, value in values.items()):
            return
    raise AssertionError(values)


# The other differences from one release.
ALTERABLE_IN_39_ONLY = {"advertised.listeners"}
ALTERABLE_SINCE_4 = {
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.reader.threads",
}
REFUSED_WHILE_ELR_IS_ENABLED = {"min.insync.replicas"}


def alterations(peer: KafkaPeer | Minibroker) -> dict[str, tuple[bool, bool]]:
    """Return for every key of the broker: is it described as changeable, can it be altered?"""
    results = {}
    with WireClient(peer.host, peer.port) as client:
        for name, config in describe(peer, BROKER, "0").items():
            value = config["value"]
            if name == "advertised.listeners":
                value = f"PLAINTEXT://{peer.address}"
            elif value is None:
                value = (
                    "1" if config["config_type"] in (TYPE_CODES["int"], TYPE_CODES["long"]) else ""
                )
            change = {"name": name, "config_operation": 0, "value": value}
            answer = client.call(
                "incremental_alter_configs",
                1,
                resources=[{"resource_type": BROKER, "resource_name": "0", "configs": [change]}],
                validate_only=True,
            )
            results[name] = (not config["read_only"], answer["responses"][0]["error_code"] == 0)
    return results


def test_exactly_the_keys_described_as_changeable_can_be_altered(minibroker: Minibroker) -> None:
    disagreeing = {
        name
        for name, (is_shown, is_taken) in alterations(minibroker).items()
        if is_shown != is_taken
    }
    assert disagreeing == set()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.9.1", set()),
        ("4.4.0", ALTERABLE_IN_39_ONLY | ALTERABLE_SINCE_4 | REFUSED_WHILE_ELR_IS_ENABLED),
    ],
)
def test_alterable_keys_beside_kafka(
    version: str, expected: set[str], minibroker: Minibroker, request: pytest.FixtureRequest
) -> None:
    """Security settings differ, and those named above; nothing else, and each of them."""
    theirs = alterations(request.getfixturevalue(f"kafka_{version[0]}{version[2]}"))
    mine = alterations(minibroker)
    different = {name for name in theirs.keys() & mine.keys() if theirs[name] != mine[name]}
    security = {name for name in different if is_unserved_security(name)}
    assert different - security == expected
    assert all(theirs[name][0] and mine[name] == (False, False) for name in security)


def test_a_broker_that_passes_for_kafka_3_9_has_its_kinds_of_resources(
    kafka_39: KafkaPeer, new_broker: Callable[..., Minibroker]
) -> None:
    """Groups and client metrics came with KRaft: 3.9 with ZooKeeper refuses them."""
    old = new_broker(settings={"minibroker.advertised.kafka.version": "3.9"})
    for kind, key in ((GROUP, "consumer.session.timeout.ms"), (CLIENT_METRICS, "interval.ms")):
        for name in ("a-name", ""):
            right, mine = (answers_about(peer, kind, name, key) for peer in (kafka_39, old))
            assert mine == right, (kind, name)
            assert {code for code, _ in mine.values()} == {INVALID_REQUEST}


def answers_about(
    peer: KafkaPeer | Minibroker, kind: int, name: str, key: str
) -> dict[str, tuple[int, str | None]]:
    """Ask all three APIs about one resource and one key of it; return error codes and messages."""
    resource = {"resource_type": kind, "resource_name": name}
    change = {"name": key, "value": "46000"}
    with WireClient(peer.host, peer.port) as client:
        (described,) = client.call(
            "describe_configs",
            VERSION,
            resources=[{**resource, "configuration_keys": None}],
            include_synonyms=False,
            include_documentation=False,
        )["results"]
        answers = {"describe_configs": (described["error_code"], described["error_message"])}
        for api, version, changes in (
            ("alter_configs", 2, [change]),
            ("incremental_alter_configs", 1, [{**change, "config_operation": 0}]),
        ):
            (altered,) = client.call(
                api, version, resources=[{**resource, "configs": changes}], validate_only=True
            )["responses"]
            answers[api] = (altered["error_code"], altered["error_message"])
    if kind == GROUP:
        # Kafka's words for any error of that code, not for this one.
        answers["describe_configs"] = (described["error_code"], None)
    return answers
