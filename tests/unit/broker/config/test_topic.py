"""`TopicConfig`: the layers below a topic, one shared instance, and what is refused."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic import (
    TopicConfig,
    broker_topic_values,
    topic_config,
    validate_topic_config,
)
from minibroker.kafka.errors import ConfigError


def defaults(settings: dict[str, str] | None = None) -> TopicConfig:
    return TopicConfig(broker_topic_values(BrokerConfig(settings)))


def test_broker_keys_give_the_defaults_in_the_topics_units() -> None:
    config = defaults(
        {
            "log.roll.hours": "1",
            "log.flush.scheduler.interval.ms": "9",
            "log.retention.minutes": "2",
            "message.max.bytes": "5",
            "log.cleanup.policy": "compact",
            "log.message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": "2",
            "log.cleaner.min.cleanable.ratio": "0.1",
        }
    )
    assert config.segment_ms == 3_600_000
    assert config.flush_ms == 9
    assert config.retention_ms == 120_000
    assert config.max_message_bytes == 5
    assert config.compact
    assert config.is_append_time
    assert config.min_insync_replicas == 2
    assert config.min_cleanable_dirty_ratio == 0.1


def test_a_topics_own_values_are_stronger() -> None:
    base = defaults({"log.segment.bytes": "2000"})
    config = topic_config({"segment.bytes": "3000", "cleanup.policy": "compact, delete"}, base)
    assert (base.segment_bytes, config.segment_bytes) == (2000, 3000)
    assert config.compact
    assert config.delete
    assert config.cleanup_policy == "compact,delete"
    assert config.retention_ms == base.retention_ms


def test_topics_without_values_share_the_defaults() -> None:
    base = defaults()
    assert topic_config({}, base) is base
    assert topic_config({"written.by.another.release": "x"}, base) is base


def test_the_older_bound_of_timestamps_holds_where_the_newer_ones_are_not_set() -> None:
    config = topic_config(
        {"message.timestamp.difference.max.ms": "10", "message.timestamp.before.max.ms": "20"},
        defaults(),
    )
    assert config.message_timestamp_before_max_ms == 20
    assert config.message_timestamp_after_max_ms == 10


def test_a_compacted_topics_segments_do_not_outlive_the_compaction_lag() -> None:
    settings = {"max.compaction.lag.ms": "1000", "segment.ms": "2000"}
    assert topic_config(settings, defaults()).segment_age_ms_max == 2000
    compacted = topic_config({**settings, "cleanup.policy": "compact"}, defaults())
    assert compacted.segment_age_ms_max == 1000


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"retention": "1"}, "Unknown topic config name: retention"),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number"),
        ({"segment.bytes": "13"}, "Value must be at least 14"),
        ({"compression.type": "rar"}, "String must be one of: uncompressed, zstd, lz4"),
        ({"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}, "conflict topic config"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"remote.log.copy.disable": "true"}, "remote.log.copy.disable"),
    ],
)
def test_bad_topic_configs_are_refused(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_topic_config(overrides, BrokerConfig())
    assert sentence in str(caught.value)


def test_good_topic_configs_pass_those_of_kafka_4_included() -> None:
    validate_topic_config(
        {
            "retention.ms": "-1",
            "leader.replication.throttled.replicas": "*",
            "remote.copy.lag.ms": "-1",
            "message.format.version": "0.10.2",
        },
        BrokerConfig(),
    )
