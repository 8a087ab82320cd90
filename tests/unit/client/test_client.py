"""Leaders and connections that the clients of one process share, told by answers of a test."""

from __future__ import annotations

import fcntl
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, cast

import pytest

from minibroker.client import client as client_module
from minibroker.client.client import Client
from minibroker.client.connection import BlockingConnection
from minibroker.client.settings import ClientSettings, client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from minibroker.kafka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

PARTITIONS = 10_000


class ToldClient(Client):
    """Counts what it asks; the topics have `partitions`, all at one broker."""

    request_count = 0
    partitions = PARTITIONS
    leaderless: int | None = None
    port = 1

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> MetadataResponse:
        type(self).request_count += 1
        partitions = [
            MetadataResponsePartition(
                partition_index=number,
                leader_id=-1 if number == self.leaderless else 7,
                leader_epoch=3,
            )
            for number in range(self.partitions)
        ]
        name = request.of_version(versions[1]).topics[0].name
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=7, host="x", port=self.port)],
            topics=[MetadataResponseTopic(name=name, topic_id=bytes(16), partitions=partitions)],
        )


SETTINGS = cast("ClientSettings", "the settings of one cluster")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[ToldClient]:
    monkeypatch.setattr(client_module, "_leaders_of", {})
    return type("OwnClient", (ToldClient,), {})


def test_tasks_of_a_process_ask_once_for_all_partitions_of_a_topic(
    client: type[ToldClient],
) -> None:
    for partition in range(0, PARTITIONS, 10):
        assert client(SETTINGS).leader("t", partition).address == ("x", 1)
    assert client.request_count == 1
    client(SETTINGS).leader("another", 0)
    client(cast("ClientSettings", "another cluster")).leader("t", 0)
    assert client.request_count == 3


def test_leaders_that_are_wrong_old_or_not_known_are_asked_for(
    client: type[ToldClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = client(SETTINGS), client(SETTINGS)
    first.leader("t", 0)
    client.port = 2
    first.forget("t")
    assert second.leader("t", 0).address == ("x", 2)

    client.partitions += 1
    assert first.leader("t", PARTITIONS).epoch == 3
    assert client.request_count == 3
    with pytest.raises(KafkaError) as refused:
        first.leader("t", PARTITIONS + 1)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.request_count == 4

    client.leaderless = 5
    first.forget("t")
    with pytest.raises(KafkaError) as refused:
        first.leader("t", 5)
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert client.request_count == 6
    client.leaderless = None
    assert first.leader("t", 5).epoch == 3

    monkeypatch.setattr(client_module, "LEADERS_AGE_S", 0.0)
    first.leader("t", 0)
    assert client.request_count == 8


def test_a_process_knows_the_topics_that_were_asked_for_last(
    client: type[ToldClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "TOPICS_MAX", 2)
    for topic in ("a", "b", "c"):
        client(SETTINGS).leader(topic, 0)
    assert [topic for _, topic in client_module._leaders_of] == ["b", "c"]


@pytest.mark.parametrize("name", ["t", "another"])
def test_a_start_that_the_leader_does_not_tell_is_a_malformed_answer(
    client: type[ToldClient], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    partition = ListOffsetsPartitionResponse(partition_index=0, offset=7)
    topic = ListOffsetsTopicResponse(name=name, partitions=[partition])
    monkeypatch.setattr(client, "ask", lambda *_: ListOffsetsResponse(topics=[topic]))
    if name == "t":
        assert client(SETTINGS).earliest("t", 0) == 7
    with pytest.raises(ProtocolError, match=r"leaves \('t', 1\) out"):
        client(SETTINGS).earliest("t", 1)


def test_leaders_of_another_topic_are_a_malformed_answer(
    client: type[ToldClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    another = MetadataResponseTopic(name="another", partitions=[MetadataResponsePartition()])
    for topics in ([], [another]):
        metadata = MetadataResponse(topics=topics)
        monkeypatch.setattr(client, "ask_any", lambda *_, metadata=metadata: metadata)
        with pytest.raises(ProtocolError, match="leaves t out"):
            client(SETTINGS).leader("t", 0)


class HeldConnection:
    """A connection that waits, or that one client has."""

    address = ("x", 1)
    is_usable = True
    idle_since_s = 0.0
    instances: ClassVar[list[HeldConnection]] = []

    def __init__(self) -> None:
        self.is_open = True
        self.instances.append(self)

    def close(self) -> None:
        self.is_open = False


def test_threads_share_the_connections_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """None that a client has is closed, and none is left open without an owner."""
    HeldConnection.instances.clear()
    monkeypatch.setattr(client_module, "_idle", {})
    monkeypatch.setattr(client_module, "IDLE_S", 0.0)
    monkeypatch.setattr(client_module.BlockingConnection, "open", lambda *_: HeldConnection())

    def use() -> None:
        client = Client(cast("ClientSettings", "settings"))
        for _ in range(500):
            connection = client.connection(HeldConnection.address)
            assert connection.is_open
            client.give_back(connection)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(use) for _ in range(4)]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    client_module.close_idle()
    assert not any(connection.is_open for connection in HeldConnection.instances)


def test_a_process_with_many_files_uses_a_connection_again(high_descriptor: int) -> None:
    ours, broker = socket.socketpair()
    descriptor = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, high_descriptor)
    ours.close()
    stream: Any = socket.socket(fileno=descriptor)
    settings = client_settings({"bootstrap.servers": "127.0.0.1:9092"})
    connection = BlockingConnection(settings, settings.servers[0], stream)
    try:
        assert connection.is_usable
        broker.close()
        assert not connection.is_usable
    finally:
        connection.close()
