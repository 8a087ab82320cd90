"""Subscriptions of members, parsed from their own bytes."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.classic.subscription import TOPICS_MAX, subscribed_topics, topics_of
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)


def subscription(*topics: str, version: int = 0) -> bytes:
    return ConsumerProtocolSubscription(
        topics=list(topics),
        user_data=b"anything",
        owned_partitions=[TopicPartition(topic="t", partitions=[1])],
        generation_id=3,
        rack_id="r",
    ).to_bytes(version)


@pytest.mark.parametrize("version", range(4))
def test_topics_of_every_version(version: int) -> None:
    assert topics_of(subscription("a", "b", version=version)) == ["a", "b"]


def test_topics_of_a_version_to_come() -> None:
    """Every version begins as version 0 does."""
    assert topics_of(b"\0\x63" + subscription("a", version=3)[2:] + b"more") == ["a"]


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"what is this?",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\0\5ab",
        subscription("a")[:-1],
    ],
)
def test_malformed_subscriptions(metadata: bytes) -> None:
    with pytest.raises(ProtocolError):
        topics_of(metadata)
    assert subscribed_topics([subscription("a"), metadata]) is None


def test_a_list_that_nobody_means_is_not_read() -> None:
    count = TOPICS_MAX + 1
    with pytest.raises(ProtocolError, match="at most"):
        topics_of(b"\0\0" + count.to_bytes(4, "big") + b"\0\0" * count + b"\xff\xff\xff\xff")


def test_all_members_together() -> None:
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == {"a", "b", "c"}
    assert subscribed_topics([]) == frozenset()
