"""One group at a time: its state, its offsets, a commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.groups import Groups
from tests.pipeline import topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.testing import Broker

pytestmark = [pytest.mark.timeout(300)]


@contextmanager
def member(address: str, group: str, topic: str, **settings: str) -> Iterator[None]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, **settings})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    try:
        yield
    finally:
        consumer.close()


def test_offsets_are_committed_for_a_group_without_members_alone(address: str, topic: str) -> None:
    topics.create(address, topic, 2)
    new_offsets = {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 4}
    groups = Groups(Kafka(address))
    assert (groups.state_of(topic), groups.offsets_of(topic)) == ("dead", {})
    groups.commit(topic, new_offsets)
    assert (groups.state_of(topic), groups.offsets_of(topic)) == ("empty", new_offsets)
    missing = TopicPartition(f"{topic}-gone", 0)
    with pytest.raises(PipelineError, match=f"{topic} .* UNKNOWN_TOPIC_OR_PART.*: {topic}-gone"):
        groups.commit(topic, {missing: 1})
    with member(address, topic, topic):
        assert groups.state_of(topic) == "stable"
        with pytest.raises(PipelineError, match=r"not committed .*UNKNOWN_MEMBER_ID"):
            groups.commit(topic, {TopicPartition(topic, 0): 1})
        assert groups.offsets_of(topic) == new_offsets


def test_a_group_of_kip_848_has_members_too(minibroker_address: str, topic: str) -> None:
    topics.create(minibroker_address, topic)
    groups = Groups(Kafka(minibroker_address))
    with member(minibroker_address, topic, topic, **{"group.protocol": "consumer"}):
        assert groups.state_of(topic) == "stable"
        with pytest.raises(PipelineError, match=r"not committed .*UNKNOWN_MEMBER_ID"):
            groups.commit(topic, {TopicPartition(topic, 0): 1})
    assert groups.state_of(topic) == "empty"


def test_a_coordinator_that_moves_or_starts_is_asked_again(in_process: Broker, topic: str) -> None:
    topics.create(in_process.bootstrap, topic)
    groups = Groups(Kafka(in_process.bootstrap))
    place = TopicPartition(topic, 0)
    with (
        in_process.faults.add("OffsetCommit", error="NOT_COORDINATOR", times=1),
        in_process.faults.add("DescribeGroups", error="COORDINATOR_LOAD_IN_PROGRESS", times=2),
    ):
        groups.commit(topic, {place: 1})
        assert groups.state_of(topic) == "empty"
    with (
        in_process.faults.add("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", times=1),
        pytest.raises(PipelineError, match="GROUP_AUTHORIZATION_FAILED"),
    ):
        groups.commit(topic, {place: 2})
    assert groups.offsets_of(topic) == {place: 1}
