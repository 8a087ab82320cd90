"""`TopicConfig`: the settings of one topic's logs, resolved once and then only read.

A topic's own value is stronger than the broker's dynamic one, that than the static one, that than
the default. Topics without values of their own share one instance, so ten thousand of them cost
nothing. The validation of what a client wants to set is here as well (`validate_topic_config`).

Source: Kafka LogConfig, KafkaConfig.extractLogConfigMap, ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.key_rows import SYNONYMS
from minibroker.broker.config.keys import TOPIC_KEYS
from minibroker.kafka.config_keys import default_value, parse_value, to_text
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.kafka.config_keys import Value

_LONG_MAX: Final = (1 << 63) - 1
_UNIT_KEYS: Final = frozenset(name for name, broker in SYNONYMS.items() if len(broker) > 1)


class TopicConfig:
    """One resolved set of topic settings; units are in the names, -1 means "no limit"."""

    __slots__ = (
        "compact",
        "compression_gzip_level",
        "compression_lz4_level",
        "compression_type",
        "compression_zstd_level",
        "delete",
        "delete_retention_ms",
        "file_delete_delay_ms",
        "flush_messages",
        "flush_ms",
        "index_interval_bytes",
        "is_append_time",
        "max_compaction_lag_ms",
        "max_message_bytes",
        "message_downconversion_enable",
        "message_format_version",
        "message_magic",
        "message_timestamp_after_max_ms",
        "message_timestamp_before_max_ms",
        "message_timestamp_type",
        "min_cleanable_dirty_ratio",
        "min_compaction_lag_ms",
        "min_insync_replicas",
        "preallocate",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_index_bytes",
        "segment_jitter_ms",
        "segment_ms",
        "unclean_leader_election_enable",
        "values",
    )

    def __init__(self, values: Mapping[str, Value]) -> None:
        """Take `values`: every topic key → its value (`resolve_topic_values` makes them)."""
        self.values = values
        self.segment_bytes = _int(values, "segment.bytes")
        self.segment_ms = _int(values, "segment.ms")
        self.segment_jitter_ms = _int(values, "segment.jitter.ms")
        self.segment_index_bytes = _int(values, "segment.index.bytes")
        self.index_interval_bytes = _int(values, "index.interval.bytes")
        self.retention_bytes = _int(values, "retention.bytes")
        self.retention_ms = _int(values, "retention.ms")
        self.max_message_bytes = _int(values, "max.message.bytes")
        self.min_insync_replicas = _int(values, "min.insync.replicas")
        self.flush_messages = _int(values, "flush.messages")
        self.flush_ms = _int(values, "flush.ms")
        self.file_delete_delay_ms = _int(values, "file.delete.delay.ms")
        self.delete_retention_ms = _int(values, "delete.retention.ms")
        self.min_compaction_lag_ms = _int(values, "min.compaction.lag.ms")
        self.max_compaction_lag_ms = _int(values, "max.compaction.lag.ms")
        ratio = values["min.cleanable.dirty.ratio"]
        self.min_cleanable_dirty_ratio = ratio if isinstance(ratio, float) else 0.5
        policies = values["cleanup.policy"]
        self.compact = isinstance(policies, list) and "compact" in policies
        self.delete = isinstance(policies, list) and "delete" in policies
        self.compression_type = str(values["compression.type"])
        self.compression_gzip_level = _int(values, "compression.gzip.level")
        self.compression_lz4_level = _int(values, "compression.lz4.level")
        self.compression_zstd_level = _int(values, "compression.zstd.level")
        self.message_format_version = str(values["message.format.version"])
        self.message_magic = _magic_of(self.message_format_version)
        self.message_timestamp_type = str(values["message.timestamp.type"])
        self.is_append_time = self.message_timestamp_type == "LogAppendTime"
        # difference.max.ms is the older name of both bounds; it counts where they are left alone
        difference = _int(values, "message.timestamp.difference.max.ms")
        before_max_ms = _int(values, "message.timestamp.before.max.ms")
        after = _int(values, "message.timestamp.after.max.ms")
        self.message_timestamp_before_max_ms = (
            difference if before_max_ms == _LONG_MAX else before_max_ms
        )
        self.message_timestamp_after_max_ms = difference if after == _LONG_MAX else after
        self.message_downconversion_enable = values["message.downconversion.enable"] is True
        self.preallocate = values["preallocate"] is True
        self.unclean_leader_election_enable = values["unclean.leader.election.enable"] is True

    @property
    def cleanup_policy(self) -> str:
        """Return `delete`, `compact` or both, as Kafka writes it."""
        return to_text(self.values["cleanup.policy"]) or ""

    @property
    def segment_age_ms_max(self) -> int:
        """Return the age at which a segment is rolled; a compacted one not later than its greatest
        lag.
        """
        if self.compact and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


def _magic_of(version: str) -> int:
    """Return the record format of a `message.format.version`: 0 to 0.9, 1 with 0.10, 2 since 0.11.

    Followed whatever `inter.broker.protocol.version` says, as Kafka did up to 2.8; later ones store
    format 2 as soon as that is 3.0.
    """
    if version.startswith(("0.8", "0.9")):
        return 0
    return 1 if version.startswith("0.10") else 2


def _int(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value


def broker_topic_values(broker: BrokerConfig) -> dict[str, Value]:
    """Return every topic key → the value it has where the topic sets nothing."""
    values: dict[str, Value] = {}
    for name, key in TOPIC_KEYS.items():
        synonyms = SYNONYMS.get(name)
        if synonyms is None:
            values[name] = default_value(key)
        elif name in _UNIT_KEYS:
            values[name] = broker.first_given(*synonyms)
        else:
            values[name] = broker.get(synonyms[0][0])
    values["retention.ms"] = broker.log_retention_ms  # any negative number is -1
    return values


def topic_config(overrides: Mapping[str, str], defaults: TopicConfig) -> TopicConfig:
    """Return `defaults` with a topic's own values over them; keys that no release knows are passed
    by.

    Raises ConfigError for a value out of range: what stands in the tree was checked when it was
    set, so only a foreign hand can bring that about.
    """
    own = {
        name: parse_value(key, text)
        for name, text in overrides.items()
        if (key := TOPIC_KEYS.get(name)) is not None
    }
    return TopicConfig({**defaults.values, **own}) if own else defaults


def validate_topic_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Refuse what CreateTopics and the alterations must refuse. Raises ConfigError.

    `overrides` are all values the topic would have of its own, old and new.
    """
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise ConfigError(f"Unknown topic config name: {name}")
    values = broker_topic_values(broker)
    for name, text in overrides.items():
        values[name] = parse_value(TOPIC_KEYS[name], text)
    least, most = _int(values, "min.compaction.lag.ms"), _int(values, "max.compaction.lag.ms")
    if least > most:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
    if values["remote.log.copy.disable"] or values["remote.log.delete.on.disable"]:
        raise ConfigError(
            "remote.log.delete.on.disable and remote.log.copy.disable need tiered storage, "
            "which a broker on ZooKeeper metadata does not offer"
        )
    if values["remote.storage.enable"]:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
