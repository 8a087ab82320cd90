"""One group at a time, by the own client and by librdkafka: its state, its offsets, a commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.groups import LibrdkafkaGroups, WireGroups, groups_of
from tests.pipeline import topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.kafka.groups import Groups
    from minibroker.testing import Broker

pytestmark = [pytest.mark.timeout(300)]


def both(address: str) -> list[Groups]:
    found = [groups_of(Kafka(address, settings=given)) for given in ({}, topics.LIBRDKAFKA_ALONE)]
    assert [type(groups) for groups in found] == [WireGroups, LibrdkafkaGroups]
    return found


@contextmanager
def member(address: str, group: str, topic: str, **settings: str) -> Iterator[None]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, **settings})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield
    consumer.close()


def test_both_clients_commit_for_a_group_without_members_alone(address: str, topic: str) -> None:
    topics.create(address, topic, 2)
    wanted = {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 4}
    for number, groups in enumerate(both(address)):
        name = f"{topic}-{number}"
        assert (groups.state_of(name), groups.offsets_of(name)) == ("dead", {})
        groups.commit(name, wanted)
        assert (groups.state_of(name), groups.offsets_of(name)) == ("empty", wanted)
        gone = TopicPartition(f"{topic}-gone", 0)
        with pytest.raises(PipelineError, match=f"{name} .* UNKNOWN_TOPIC_OR_PART.*: {topic}-gone"):
            groups.commit(name, {gone: 1})
    with member(address, f"{topic}-0", topic):
        for groups in both(address):
            assert groups.state_of(f"{topic}-0") == "stable"
            with pytest.raises(PipelineError, match=r"not committed .*UNKNOWN_MEMBER_ID"):
                groups.commit(f"{topic}-0", {TopicPartition(topic, 0): 1})
            assert groups.offsets_of(f"{topic}-0") == wanted


def test_a_group_of_kip_848_has_members_too(minibroker_address: str, topic: str) -> None:
    topics.create(minibroker_address, topic)
    groups = groups_of(Kafka(minibroker_address))
    with member(minibroker_address, topic, topic, **{"group.protocol": "consumer"}):
        assert groups.state_of(topic) == "stable"
        with pytest.raises(PipelineError, match=r"not committed .*UNKNOWN_MEMBER_ID"):
            groups.commit(topic, {TopicPartition(topic, 0): 1})
    assert groups.state_of(topic) == "empty"


def test_a_coordinator_that_moves_or_starts_is_asked_again(in_process: Broker, topic: str) -> None:
    topics.create(in_process.bootstrap, topic)
    groups = groups_of(Kafka(in_process.bootstrap))
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
