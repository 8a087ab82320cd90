"""A topic's configuration, made ready for the validator."""

from __future__ import annotations

import pytest

from minibroker.config.topic_keys import TOPIC_KEYS
from minibroker.storage.append_rules import AppendRules
from tests.support.logs import config


def test_every_compression_type_of_the_topic_key_is_understood() -> None:
    allowed = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    assert "compression.type" in TOPIC_KEYS
    found = [AppendRules(config(compression_type=name)) for name in allowed]
    assert [applied.codec for applied in found] == [None, 0, 1, 2, 3, 4]
    assert [applied.level for applied in found] == [None, None, -1, None, 9, 3]


@pytest.mark.parametrize(
    ("overrides", "reads"),
    [
        ({}, False),
        ({"cleanup_policy": "compact"}, True),
        ({"message_timestamp_before_max_ms": 1000}, True),
        (
            {"message_timestamp_before_max_ms": 1000, "message_timestamp_type": "LogAppendTime"},
            False,
        ),
        ({"message_timestamp_after_max_ms": 1000}, False),
    ],
)
def test_records_are_read_only_where_a_rule_needs_them(
    overrides: dict[str, object], reads: bool
) -> None:
    assert AppendRules(config(**overrides)).reads_records is reads
