"""The values of the metadata image."""

from __future__ import annotations

import pytest

from minibroker.broker.cluster.image import BrokerInfo, Endpoint, PartitionImage, TopicImage
from minibroker.kafka.ids import TopicId


def partition(leader: int = 1) -> PartitionImage:
    return PartitionImage(
        leader=leader,
        leader_epoch=0,
        replicas=[1],
        isr=[1],
        adding=[],
        removing=[],
        offline=[],
        controller_epoch=1,
        partition_epoch=0,
    )


def test_partitions_are_equal_by_value_and_not_hashable() -> None:
    assert partition() == partition()
    assert partition() != partition(2)
    assert partition() != "partition"
    with pytest.raises(TypeError):
        hash(partition())
    assert "leader=1" in repr(partition())


@pytest.mark.parametrize(
    ("name", "is_internal"),
    [("__consumer_offsets", True), ("__transaction_state", True), ("__other", False), ("t", False)],
)
def test_internal_topics_are_known_by_name(name: str, is_internal: bool) -> None:
    topic = TopicImage(name, TopicId(bytes(16)), [])
    assert topic.is_internal is is_internal
    assert name in repr(topic)


def test_endpoint_of_a_listener() -> None:
    inside, outside = Endpoint("INSIDE", "a", 1), Endpoint("OUTSIDE", "b", 2)
    info = BrokerInfo(1, (inside, outside))
    assert info.endpoint("OUTSIDE") is outside
    assert info.endpoint("NONE") is None
