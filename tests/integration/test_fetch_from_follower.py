"""librdkafka reads from the follower in its rack, and from the leader where there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.testing import Cluster
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

RACKS = ("a", "b", "c")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "replica.fetch.wait.max.ms": 50,
    }
    with Cluster(3, topics=["orders"], config=settings, racks=RACKS) as running:
        running.wait_until_in_sync()
        yield running


class Reader:
    """A consumer of `orders`, and the broker that it reads from."""

    def __init__(self, cluster: Cluster, rack: str) -> None:
        self.broker = -1
        self.values: list[bytes] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "readers",
                "client.rack": rack,
                "statistics.interval.ms": 50,
                "stats_cb": self._note,
            }
        )
        self._consumer.assign([TopicPartition("orders", 0, 0)])

    def _note(self, statistics: str) -> None:
        topics = json.loads(statistics)["topics"]  # empty before the assignment
        if "orders" in topics:
            self.broker = topics["orders"]["partitions"]["0"]["broker"]

    def poll(self) -> None:
        message = self._consumer.poll(0.01)
        if message is not None:
            assert message.error() is None, message.error()
            self.values.append(message.value())

    def close(self) -> None:
        self._consumer.close()


def send(cluster: Cluster, *values: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(180) == 0


@pytest.mark.parametrize("has_follower", [True, False])
def test_a_consumer_reads_from_its_rack(cluster: Cluster, has_follower: bool) -> None:
    send(cluster, "first")
    leader = cluster.leader("orders")
    nearest = (leader + 1) % 3 if has_follower else leader
    reader = Reader(cluster, RACKS[nearest] if has_follower else "elsewhere")

    def has(*values: bytes) -> bool:
        reader.poll()
        return reader.broker == nearest and reader.values == list(values)

    try:
        wait_until(lambda: has(b"first"), f"it reads from broker {nearest}")
        send(cluster, "second", "third")
        wait_until(lambda: has(b"first", b"second", b"third"), "it reads what comes later")
    finally:
        reader.close()
