"""A topic's configuration, made ready for the validator."""

from __future__ import annotations

from minibroker.broker.config.keys import TOPIC_KEYS
from minibroker.broker.storage.append_rules import AppendRules
from tests.support.logs import config


def test_every_compression_type_of_the_topic_key_is_understood() -> None:
    allowed = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    assert "compression.type" in TOPIC_KEYS
    found = [AppendRules(config(compression_type=name)) for name in allowed]
    assert [applied.codec for applied in found] == [None, 0, 1, 2, 3, 4]
    assert [applied.level for applied in found] == [None, None, -1, None, 9, 3]
