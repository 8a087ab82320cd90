"""Subscriptions and assignments of classic consumers."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.consumer.embedded import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import ConsumerProtocolAssignment
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.support.group_topics import ID, image_with, topic, topics_of

TOPICS = topics_of(image_with(topic(3)))


def test_a_subscription_is_read_with_ids_of_topics_that_exist() -> None:
    written = ConsumerProtocolSubscription(
        topics=["t", "u"],
        owned_partitions=[
            TopicPartition(topic="t", partitions=[2]),
            TopicPartition(topic="gone", partitions=[0]),
        ],
        rack_id="r",
    ).to_bytes(3)
    read = read_subscription(written, TOPICS)
    assert (read.topic_names, read.owned, read.rack_id) == ({"t", "u"}, {ID: [2]}, "r")


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    written = b"\0\7" + ConsumerProtocolSubscription(topics=["t"]).to_bytes(3)[2:] + b"more"
    assert read_subscription(written, TOPICS).topic_names == {"t"}
    assert version_of(written) == 3


@pytest.mark.parametrize("broken", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\5"])
def test_a_malformed_subscription_is_reported(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_subscription(broken, TOPICS)


def test_assignments_come_back_as_they_were() -> None:
    written = write_assignment({ID: (0, 2), bytes(16): (1,)}, 1, TOPICS)
    assert read_assignment(written, TOPICS) == ({ID: (0, 2)}, False)


def test_data_of_an_assignors_own_is_noticed() -> None:
    written = ConsumerProtocolAssignment(user_data=b"x").to_bytes(1)
    assert read_assignment(written, TOPICS) == ({}, True)
