"""Values, sources and layers as Kafka describes them, its oddities included."""

from __future__ import annotations

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.describe import (
    CLIENT_METRICS_SOURCE,
    DEFAULT_SOURCE,
    DYNAMIC_BROKER_SOURCE,
    DYNAMIC_DEFAULT_BROKER_SOURCE,
    GROUP_SOURCE,
    STATIC_BROKER_SOURCE,
    TOPIC_SOURCE,
    broker_entries,
    client_metrics_entries,
    cluster_default_entries,
    group_entries,
    topic_entries,
)
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.config.entries import ConfigEntry, Layer


def make(settings: dict[str, str] | None = None) -> DynamicConfig:
    return DynamicConfig(BrokerConfig(settings))


def one(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (entry,) = [entry for entry in entries if entry.name == name]
    return entry


def test_a_topic_key_has_all_its_layers() -> None:
    dynamic = make({"log.segment.bytes": "1000"})
    dynamic.set_cluster_default({"log.segment.bytes": "2000"})
    dynamic.set_broker({"log.segment.bytes": "3000"})
    entry = one(topic_entries(dynamic, {"segment.bytes": "04000"}), "segment.bytes")
    assert (entry.value, entry.source, entry.type) == ("4000", TOPIC_SOURCE, "int")
    assert entry.layers == [
        Layer("segment.bytes", "4000", TOPIC_SOURCE),
        Layer("log.segment.bytes", "3000", DYNAMIC_BROKER_SOURCE),
        Layer("log.segment.bytes", "2000", DYNAMIC_DEFAULT_BROKER_SOURCE),
        Layer("log.segment.bytes", "1000", STATIC_BROKER_SOURCE),
        Layer("log.segment.bytes", "1073741824", DEFAULT_SOURCE),
    ]
    assert not entry.read_only
    assert not entry.is_sensitive


def test_a_layer_that_changes_no_value_is_described() -> None:
    """Values of a topic without its own are cached, and not beyond a change of a layer."""
    dynamic = make({"log.segment.bytes": "1000"})
    assert one(topic_entries(dynamic, {}), "segment.bytes").source == STATIC_BROKER_SOURCE
    dynamic.set_cluster_default({"log.segment.bytes": "1000"})
    entry = one(topic_entries(dynamic, {}), "segment.bytes")
    assert (entry.value, entry.source) == ("1000", DYNAMIC_DEFAULT_BROKER_SOURCE)


def test_a_weaker_unit_alone_is_no_layer() -> None:
    """Kafka drops what stands before the strongest name, so hours alone leave the list empty."""
    entry = one(topic_entries(make({"log.retention.hours": "1"}), {}), "retention.ms")
    assert (entry.value, entry.source, entry.layers) == ("3600000", DEFAULT_SOURCE, [])
    both = make({"log.retention.hours": "1", "log.retention.ms": "5"})
    entry = one(topic_entries(both, {}), "retention.ms")
    assert entry.source == STATIC_BROKER_SOURCE
    assert entry.layers == [
        Layer("log.retention.ms", "5", STATIC_BROKER_SOURCE),
        Layer("log.retention.hours", "1", STATIC_BROKER_SOURCE),
        Layer("log.retention.hours", "168", DEFAULT_SOURCE),
    ]


def test_a_topic_key_without_broker_key_is_a_default_without_layers() -> None:
    entry = one(topic_entries(make(), {}), "remote.storage.enable")
    assert (entry.value, entry.source, entry.layers) == ("false", DEFAULT_SOURCE, [])


def test_hidden_and_unknown_topic_keys_show_only_where_they_are_set() -> None:
    dynamic = make()
    assert len(topic_entries(dynamic, {})) == 36
    entries = topic_entries(dynamic, {"remote.copy.lag.ms": "5", "from.the.future": "x"})
    assert one(entries, "remote.copy.lag.ms").value == "5"
    unknown = one(entries, "from.the.future")
    assert (unknown.value, unknown.type, unknown.is_sensitive) == (None, "", True)


def test_only_the_wanted_keys_are_described() -> None:
    entries = topic_entries(make(), {}, ["retention.ms", "nobody.knows"])
    assert [entry.name for entry in entries] == ["retention.ms"]
    assert [entry.name for entry in broker_entries(make(), ["broker.id"])] == ["broker.id"]


def test_a_broker_describes_everything_and_hides_secrets() -> None:
    dynamic = make({"ssl.keystore.password": "", "a.typo": "x", "log.roll.hours": "2"})
    entries = broker_entries(dynamic)
    secret = one(entries, "ssl.keystore.password")
    assert (secret.value, secret.is_sensitive, secret.source) == (None, True, STATIC_BROKER_SOURCE)
    assert secret.layers == [Layer("ssl.keystore.password", None, STATIC_BROKER_SOURCE)]
    typo = one(entries, "a.typo")
    assert (typo.value, typo.is_sensitive, typo.read_only) == (None, True, True)
    assert typo.layers == [Layer("a.typo", None, STATIC_BROKER_SOURCE)]
    assert one(entries, "broker.id").read_only
    assert not one(entries, "log.segment.bytes").read_only
    hours = one(entries, "log.roll.hours")
    assert hours.layers == [
        Layer("log.roll.hours", "2", STATIC_BROKER_SOURCE),
        Layer("log.roll.hours", "168", DEFAULT_SOURCE),
    ]
    assert "minibroker.log.cleaner.idle.ms" not in {entry.name for entry in entries}


def test_the_cluster_wide_resource_has_only_what_is_set_there() -> None:
    dynamic = make({"log.segment.bytes": "1000"})
    dynamic.set_cluster_default({"log.retention.ms": "5", "a.plugins.key": "x"})
    entries = cluster_default_entries(dynamic)
    assert {entry.name for entry in entries} == {"log.retention.ms", "a.plugins.key"}
    entry = one(entries, "log.retention.ms")
    assert entry.layers == [Layer("log.retention.ms", "5", DYNAMIC_DEFAULT_BROKER_SOURCE)]
    assert one(entries, "a.plugins.key").value is None
    assert cluster_default_entries(dynamic, ["other"]) == []


def test_a_group_falls_back_to_the_brokers_key() -> None:
    dynamic = make({"group.consumer.session.timeout.ms": "46000"})
    entries = group_entries(dynamic, {"consumer.heartbeat.interval.ms": "6000"})
    session = one(entries, "consumer.session.timeout.ms")
    assert (session.value, session.source) == ("46000", STATIC_BROKER_SOURCE)
    heartbeat = one(entries, "consumer.heartbeat.interval.ms")
    assert (heartbeat.value, heartbeat.source) == ("6000", GROUP_SOURCE)
    reset = one(entries, "share.auto.offset.reset")
    assert reset.layers == [Layer("share.auto.offset.reset", "latest", DEFAULT_SOURCE)]
    assert one(entries, "streams.assignor.name").value == "sticky"


def test_client_metrics_have_three_keys() -> None:
    entries = client_metrics_entries({"interval.ms": "100"})
    assert {entry.name: entry.value for entry in entries} == {
        "metrics": "",
        "interval.ms": "100",
        "match": "",
    }
    assert one(entries, "interval.ms").source == CLIENT_METRICS_SOURCE
    assert one(entries, "match").source == DEFAULT_SOURCE
