"""Names of plain values: topic ids as text, how a partition prints."""

from __future__ import annotations

import uuid

import pytest

from minibroker.kafka.ids import (
    ZERO_TOPIC_ID,
    TopicId,
    TopicPartition,
    topic_id_from_text,
    topic_id_to_text,
)


def test_a_partition_prints_as_its_directory_is_named() -> None:
    assert str(TopicPartition("a-b.c", 12)) == "a-b.c-12"


def test_a_topic_id_prints_as_kafka_prints_it() -> None:
    # What Kafka's Uuid gives for these bits: URL-safe letters, no padding.
    raw = uuid.UUID("fbefbefb-efbe-fbef-befb-efbefbefbeff").bytes
    assert topic_id_to_text(raw) == "--------------------_w"
    assert topic_id_to_text(ZERO_TOPIC_ID) == "A" * 22


def test_text_and_bytes_convert_both_ways() -> None:
    for raw in (bytes(16), bytes(range(16)), b"\xff" * 16):
        assert topic_id_from_text(topic_id_to_text(raw)) == TopicId(raw)


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 24, "!" * 22])
def test_a_text_that_is_no_topic_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        topic_id_from_text(text)
