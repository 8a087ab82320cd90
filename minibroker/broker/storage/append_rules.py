"""The rules of a topic's configuration for appended records, prepared for comparison.

Made once per configuration and shared by its logs; `validator` and `old_formats` read it for every
batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.records.compression import CODEC_IDS, NONE

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig


class AppendRules:
    """The rules of one configuration. Sizes in bytes, times in ms."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "codec",
        "is_append_time",
        "is_compacted",
        "level",
        "magic",
        "max_message_bytes",
        "segment_bytes",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.segment_bytes = config.segment_bytes
        self.is_compacted = config.compact
        self.is_append_time = config.is_append_time
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        # None: whatever the producer chose.
        self.codec = _codec_of(config.compression_type)
        self.level = _level_of(config)
        # The format that is stored.
        self.magic = config.message_magic


def _codec_of(compression_type: str) -> int | None:
    if compression_type == "producer":
        return None
    return NONE if compression_type == "uncompressed" else CODEC_IDS[compression_type]


def _level_of(config: TopicConfig) -> int | None:
    """Return the level for the topic's own codec; None where it has none."""
    if config.compression_type == "gzip":
        return config.compression_gzip_level
    if config.compression_type == "lz4":
        return config.compression_lz4_level
    return config.compression_zstd_level if config.compression_type == "zstd" else None
