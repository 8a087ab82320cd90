"""Partitions read from a broker in this process, while it fails, moves and answers late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client import consume
from minibroker.client.client import Client, PartitionLeader
from minibroker.client.consume import OffsetGoneError, PartitionReader
from minibroker.client.settings import client_settings
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import FetchResponse
from minibroker.kafka.records.conversion import read_records
from minibroker.testing import Broker, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.client.consume import Fetched

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics=["t:2"]) as node:
        yield node


def client_of(bootstrap: str) -> Client:
    return Client(client_settings({"bootstrap.servers": bootstrap}))


def values(fetched: list[Fetched]) -> list[bytes | None]:
    return [
        record.value
        for each in fetched
        for batch in each.batches
        for record in read_records(batch.content, 0, batch.header)
        if record.offset >= each.start
    ]


def read(reader: PartitionReader, count: int) -> list[bytes | None]:
    """Return the records until there are `count`."""
    values_read: list[bytes | None] = []
    while len(values_read) < count:
        values_read += values(reader.poll(30))
    return values_read


def test_partitions_are_read_and_what_comes_later(broker: Broker) -> None:
    broker.produce("t", [b"a", b"b"], partition=0)
    broker.produce("t", [b"c"], partition=1)
    reader = PartitionReader(
        client_of(broker.bootstrap), {FIRST: 1, SECOND: 0}, is_committed=True, wait_ms=10
    )
    assert sorted(map(bytes, filter(None, read(reader, 2)))) == [b"b", b"c"]
    assert reader.positions == {FIRST: 2, SECOND: 1}
    assert values(reader.poll(0.2)) == [], "there is no more"
    broker.produce("t", [b"d"], partition=1)
    assert read(reader, 1) == [b"d"]
    reader.close()


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lost_connection_loses_no_record(broker: Broker, drop: str) -> None:
    broker.produce("t", [b"%d" % number for number in range(50)], partition=0)
    broker.faults.add("Fetch", drop=drop, times=2)  # type: ignore[arg-type]
    reader = PartitionReader(client_of(broker.bootstrap), {FIRST: 0}, is_committed=True)
    assert read(reader, 50) == [b"%d" % number for number in range(50)]
    reader.close()


def test_an_error_that_passes_is_asked_again_and_another_is_raised(broker: Broker) -> None:
    broker.produce("t", [b"a"], partition=0)
    broker.faults.add("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=2)
    reader = PartitionReader(client_of(broker.bootstrap), {FIRST: 0}, is_committed=True)
    assert read(reader, 1) == [b"a"]
    broker.faults.add("Fetch", error="TOPIC_AUTHORIZATION_FAILED", times=1)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        read(reader, 1)
    reader.close()


def test_an_offset_that_is_gone_is_for_the_caller(broker: Broker) -> None:
    broker.produce("t", [b"a"], partition=0)
    reader = PartitionReader(client_of(broker.bootstrap), {FIRST: 7}, is_committed=True)
    with pytest.raises(OffsetGoneError, match="t-0 has no offset 7 any more"):
        reader.poll(10)
    reader.positions[FIRST] = 0
    assert read(reader, 1) == [b"a"]
    reader.close()


def test_an_answer_about_another_position_is_dropped(broker: Broker) -> None:
    broker.produce("t", [b"a", b"b", b"c"], partition=0)
    reader = PartitionReader(client_of(broker.bootstrap), {FIRST: 0}, is_committed=True)
    read(reader, 3)
    reader.seek({FIRST: 1})
    assert read(reader, 2) == [b"b", b"c"]
    reader.close()


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.11", "4.4"])
def test_any_release_is_read(release: str) -> None:
    """A broker before 0.10.1 cuts a message that is larger than the limit of a partition."""
    with Broker(config={"minibroker.advertised.kafka.version": release}) as broker:
        large = b"x" * 5000
        broker.produce("t", [b"a", large, b"c"])
        reader = PartitionReader(
            client_of(broker.bootstrap), {FIRST: 0}, is_committed=True, partition_bytes=1000
        )
        assert read(reader, 3) == [b"a", large, b"c"]
        reader.close()


def test_the_next_leader_is_read_when_a_broker_ends() -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("t", 2)
        cluster.broker(cluster.leader("t", 0)).produce("t", [b"a"], partition=0)
        reader = PartitionReader(
            client_of(cluster.bootstrap), {FIRST: 0, SECOND: 0}, is_committed=True, wait_ms=50
        )
        assert read(reader, 1) == [b"a"]
        cluster.kill(cluster.leader("t", 0))
        cluster.broker(cluster.leader("t", 0)).produce("t", [b"b"], partition=0)
        assert read(reader, 1) == [b"b"]
        reader.close()


class LeavingOut(Client):
    """A client whose broker answers without the partitions that it was asked about."""

    address = ("x", 1)
    is_retired = False

    def leader(self, topic: str, partition: int) -> PartitionLeader:
        return PartitionLeader(self.address, 0, bytes(16))

    def connection(self, address: tuple[str, int]) -> Any:
        return self

    def version_for(self, request: object, *_: int) -> int:
        return 12

    def send(self, *_: object) -> None:
        """Take a request."""

    def wait(self, timeout_s: float) -> bool:
        return True

    def receive(self) -> FetchResponse:
        return FetchResponse()

    def close(self) -> None:
        """End the connection."""


def test_a_partition_that_is_left_out_is_asked_for_again_and_then_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LeavingOut, "give_back", lambda *_: None)
    monkeypatch.setattr(LeavingOut, "forget", lambda *_: None)
    client = LeavingOut(client_settings({"bootstrap.servers": "x:1"}))
    reader = PartitionReader(client, {FIRST: 0}, is_committed=True)
    assert reader.poll(0.01) == []
    monkeypatch.setattr(consume, "PATIENCE_S", 0.0)
    with pytest.raises(ProtocolError, match="leaves t-0 out"):
        reader.poll(10)
    reader.close()
