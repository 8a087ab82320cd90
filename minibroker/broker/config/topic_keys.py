"""Kafka's topic keys, and for each the broker keys that give its default.

`SYNONYMS` names the broker keys from the strongest to the weakest, with what turns one of them into
the topic key's unit (`log.retention.hours` → milliseconds). Keys without an entry have no broker
default. The last five rows came with Kafka 4.x: accepted, described only where a topic sets them.

Source: Kafka 3.9 LogConfig, ServerTopicConfigSynonyms; KIP-1023 and KIP-1241 era keys from 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.definition import key_table

if TYPE_CHECKING:
    from minibroker.broker.config.definition import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("segment.bytes", "int", "1073741824", "14..", "medium", "cluster-wide"),
    ("segment.ms", "long", "604800000", "1..", "medium", "cluster-wide"),
    ("segment.jitter.ms", "long", "0", "0..", "medium", "cluster-wide"),
    ("segment.index.bytes", "int", "10485760", "4..", "medium", "cluster-wide"),
    ("flush.messages", "long", "9223372036854775807", "1..", "medium", "cluster-wide"),
    ("flush.ms", "long", "9223372036854775807", "0..", "medium", "cluster-wide"),
    ("retention.bytes", "long", "-1", "", "medium", "cluster-wide"),
    ("retention.ms", "long", "604800000", "-1..", "medium", "cluster-wide"),
    ("max.message.bytes", "int", "1048588", "0..", "medium", "cluster-wide"),
    ("index.interval.bytes", "int", "4096", "0..", "medium", "cluster-wide"),
    ("delete.retention.ms", "long", "86400000", "0..", "medium", "cluster-wide"),
    ("min.compaction.lag.ms", "long", "0", "0..", "medium", "cluster-wide"),
    ("max.compaction.lag.ms", "long", "9223372036854775807", "1..", "medium", "cluster-wide"),
    ("file.delete.delay.ms", "long", "60000", "0..", "medium", "cluster-wide"),
    ("min.cleanable.dirty.ratio", "double", "0.5", "0..1", "medium", "cluster-wide"),
    ("cleanup.policy", "list", "delete", "compact|delete", "medium", "cluster-wide"),
    ("unclean.leader.election.enable", "boolean", "false", "", "medium", "cluster-wide"),
    ("min.insync.replicas", "int", "1", "1..", "medium", "cluster-wide"),
    (
        "compression.type",
        "string",
        "producer",
        "uncompressed|zstd|lz4|snappy|gzip|producer",
        "medium",
        "cluster-wide",
    ),
    ("compression.gzip.level", "int", "-1", "-1|1..9", "medium", "cluster-wide"),
    ("compression.lz4.level", "int", "9", "1..17", "medium", "cluster-wide"),
    ("compression.zstd.level", "int", "3", "-131072..22", "medium", "cluster-wide"),
    ("preallocate", "boolean", "false", "", "medium", "cluster-wide"),
    ("message.format.version", "string", "3.0-IV1", "version", "medium", "cluster-wide"),
    (
        "message.timestamp.type",
        "string",
        "CreateTime",
        "CreateTime|LogAppendTime",
        "medium",
        "cluster-wide",
    ),
    (
        "message.timestamp.difference.max.ms",
        "long",
        "9223372036854775807",
        "0..",
        "medium",
        "cluster-wide",
    ),
    (
        "message.timestamp.before.max.ms",
        "long",
        "9223372036854775807",
        "0..",
        "medium",
        "cluster-wide",
    ),
    (
        "message.timestamp.after.max.ms",
        "long",
        "9223372036854775807",
        "0..",
        "medium",
        "cluster-wide",
    ),
    ("leader.replication.throttled.replicas", "list", "", "throttled", "medium", "cluster-wide"),
    ("follower.replication.throttled.replicas", "list", "", "throttled", "medium", "cluster-wide"),
    ("message.downconversion.enable", "boolean", "true", "", "low", "cluster-wide"),
    ("remote.storage.enable", "boolean", "false", "", "medium", "cluster-wide"),
    ("local.retention.ms", "long", "-2", "-2..", "medium", "cluster-wide"),
    ("local.retention.bytes", "long", "-2", "-2..", "medium", "cluster-wide"),
    ("remote.log.copy.disable", "boolean", "false", "", "medium", "cluster-wide"),
    ("remote.log.delete.on.disable", "boolean", "false", "", "medium", "cluster-wide"),
    (
        "max.decompressed.message.bytes",
        "int",
        "2147483639",
        "1..2147483639",
        "medium",
        "cluster-wide",
        True,
    ),
    ("remote.copy.lag.ms", "long", "0", "-1..", "medium", "cluster-wide", True),
    ("remote.copy.lag.bytes", "long", "-1", "-1..", "medium", "cluster-wide", True),
    ("errors.deadletterqueue.group.enable", "boolean", "false", "", "medium", "cluster-wide", True),
    ("internal.segment.bytes", "int", None, "", "medium", "cluster-wide", True),
)

TOPIC_KEYS: Final[dict[str, ConfigKey]] = key_table(_ROWS)

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

SYNONYMS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "max.message.bytes": (("message.max.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "preallocate": (("log.preallocate", 1),),
    "message.format.version": (("log.message.format.version", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "message.timestamp.difference.max.ms": (("log.message.timestamp.difference.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.downconversion.enable": (("log.message.downconversion.enable", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
}

# Broker keys that stand for one setting, the strongest first (Kafka DynamicBrokerConfig).
BROKER_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.hours": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.hours": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
}
