"""Lists of topics and groups, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from minibroker.control import views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.testing import Broker


def lines_of(broker: Broker, pieces_of: Callable[[Any], Iterable[str]]) -> list[Any]:
    """Each line's value."""
    text = broker.call(lambda: "".join(pieces_of(broker._node)))
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.kafka(topics=["b:2", "a"])
def test_topics_by_name_with_their_partitions(kafka_broker: Broker) -> None:
    kafka_broker.produce("b", b"value", partition=1)
    (topics,) = lines_of(kafka_broker, lambda node: views.topics_of(node.app))
    assert [(topic["name"], topic["internal"]) for topic in topics] == [("a", False), ("b", False)]
    first, second = topics[1]["partitions"]
    offsets = {"leader": 0, "log_start_offset": 0}
    assert first == {"partition": 0, **offsets, "high_watermark": 0, "size_bytes": 0}
    assert second.pop("size_bytes") > 0
    assert second == {"partition": 1, **offsets, "high_watermark": 1}


def test_without_topics_there_are_empty_lists(kafka_broker: Broker) -> None:
    assert lines_of(kafka_broker, lambda node: views.topics_of(node.app)) == [[]]
    assert lines_of(kafka_broker, lambda node: views.groups_of(node.app)) == [[]]


@pytest.mark.kafka(topics=["b:2", "a"])
def test_groups_by_name_with_what_they_committed(kafka_broker: Broker) -> None:
    names = [f'group "{number}" \\ \N{SNOWMAN}' for number in range(8)]  # in several shards
    for name in reversed(names):
        settings = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": name, "log_level": 0}
        consumer = Consumer(settings)
        commits = [TopicPartition("b", 1, 7), TopicPartition("b", 0, 6), TopicPartition("a", 0, 5)]
        consumer.commit(offsets=commits, asynchronous=False)
        consumer.close()
    (groups,) = lines_of(kafka_broker, lambda node: views.groups_of(node.app))
    assert [group["group"] for group in groups] == names
    places = [("a", 0, 5), ("b", 0, 6), ("b", 1, 7)]
    committed = [
        dict(zip(("topic", "partition", "offset"), place, strict=True)) for place in places
    ]
    expected = {"group": names[3], "state": "Empty", "members": 0, "committed": committed}
    assert groups[3] == expected


def test_the_last_requests_oldest_first(kafka_broker: Broker) -> None:
    AdminClient({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0}).list_topics()
    seen = lines_of(kafka_broker, lambda node: views.requests_of(node, {}))
    assert len(seen) >= 2
    assert seen[0]["api"] == "ApiVersions"
    assert lines_of(kafka_broker, lambda node: views.requests_of(node, {"limit": "0"})) == []
