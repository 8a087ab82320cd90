"""`testing.Proxy` before minibroker: addresses, order, large frames, broken bytes, a lost Kafka."""

from __future__ import annotations

import os
import socket
import threading
from struct import pack
from typing import TYPE_CHECKING, Self

import pytest
from confluent_kafka import Consumer, Producer

from minibroker.kafka.protocol.header import response_header
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.list_offsets import ListOffsetsRequest
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.protocol.primitives import Writer
from minibroker.testing import Broker, Cluster, Proxy
from tests.support.batches import batch
from tests.support.dialogues import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Yield a broker that takes large requests."""
    settings = {"message.max.bytes": 110_000_000, "socket.request.max.bytes": 120_000_000}
    with Broker(topics=["orders:3"], config=settings) as broker:
        yield broker


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """Yield a proxy before it."""
    with Proxy(broker.bootstrap) as proxy:
        yield proxy


def test_a_client_produces_and_reads_through_it(broker: Broker, proxy: Proxy) -> None:
    broker.create_topic("both-ways", 3)
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "client.id": "shop"})
    for number in range(100):
        producer.produce("both-ways", str(number).encode())
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": proxy.bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["both-ways"])
    values = [message.value() for message in consumer.consume(100, 30)]
    consumer.close()
    assert sorted(map(int, values)) == list(range(100))  # type: ignore[arg-type]
    ports = {request.client_address.rpartition(":")[2] for request in broker.requests}
    through = proxy.wait_for_requests("Produce", client_id="shop")
    assert through[0].error is None
    assert "both-ways" in through[0].subject
    assert {"ApiVersions", "Metadata", "Produce", "JoinGroup", "Fetch", "OffsetCommit"} <= {
        request.api for request in proxy.requests
    }
    assert len(ports) > 1


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_each_version_names_the_proxy(proxy: Proxy, version: int) -> None:
    topics = [MetadataRequestTopic(name="orders")]
    with RawClient(proxy.bootstrap) as client:
        answer = client.ask(MetadataRequest(topics=topics), version)
    (place,) = answer.brokers
    assert f"{place.host}:{place.port}" == proxy.bootstrap
    assert [topic.name for topic in answer.topics] == ["orders"]


def test_other_apis_with_addresses_name_the_proxy(proxy: Proxy) -> None:
    with RawClient(proxy.bootstrap) as client:
        client.ask(MetadataRequest(topics=[]), 9)
        old = client.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
        (new,) = client.ask(
            FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4
        ).coordinators
        (described,) = client.ask(DescribeClusterRequest(), 0).brokers
    for place in (old, new, described):
        assert f"{place.host}:{place.port}" == proxy.bootstrap


def test_each_broker_of_a_cluster_is_reached_through_it() -> None:
    with (
        Cluster(3, topics=["wide:6"]) as cluster,
        Proxy(cluster.bootstrap) as proxy,
    ):
        producer = Producer({"bootstrap.servers": proxy.bootstrap})
        for number in range(60):
            producer.produce("wide", str(number).encode(), partition=number % 6)
        assert producer.flush(30) == 0
        with RawClient(proxy.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=[]), 9)
        addresses = {f"{place.host}:{place.port}" for place in answer.brokers}
        assert len(addresses) == 3
        assert addresses <= proxy.brokers.keys()
        assert not addresses & set(cluster.bootstrap.split(","))


def test_answers_keep_the_order_of_requests(proxy: Proxy) -> None:
    """An error of the proxy's own waits for the answers that Kafka owes before it."""
    proxy.faults.add("ListOffsets", error="LEADER_NOT_AVAILABLE")
    waiting = FetchRequest(
        max_wait_ms=200,
        min_bytes=1,
        max_bytes=1000,
        topics=[
            FetchTopic(
                topic="orders",
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)],
            )
        ],
    )
    with RawClient(proxy.bootstrap) as client:
        numbers = [
            client.send(waiting, 4),
            client.send(ListOffsetsRequest(replica_id=-1), 1),
            client.send(ApiVersionsRequest(), 0),
        ]
        frames = [client.receive_frame() for _ in numbers]
    assert [int.from_bytes(frame[:4]) for frame in frames] == numbers


def test_frames_of_100_mb_pass(broker: Broker, proxy: Proxy) -> None:
    broker.create_topic("large", 1, {"max.message.bytes": 110_000_000})
    value = os.urandom(100_000_000)
    data = PartitionProduceData(index=0, records=batch(value))
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name="large", partition_data=[data])],
    )
    fetch = FetchRequest(
        max_wait_ms=10_000,
        min_bytes=1,
        max_bytes=110_000_000,
        topics=[
            FetchTopic(
                topic="large",
                partitions=[
                    FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=110_000_000)
                ],
            )
        ],
    )
    with RawClient(proxy.bootstrap) as client:
        (topic,) = client.ask(request, 7).responses
        assert topic.partition_responses[0].error_code == 0
        (fetched,) = client.ask(fetch, 11).responses
    assert value in bytes(fetched.partitions[0].records)
    assert broker.records("large")[0].offset == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        b"\xff\xff\xff\xff",
        pack(">i", 12) + b"\x03\xe7\0\0\0\0\0\x01\xff\xffab",
        pack(">i", 10) + b"\0\x03\0\x63\0\0\0\x01\xff\xff",
        pack(">i", 14) + b"\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff",
        pack(">i", 3) + b"abc",
    ],
    ids=["http", "negative size", "unknown api", "unknown version", "broken body", "too short"],
)
def test_bytes_that_kafka_refuses_are_kafkas_to_refuse(
    broker: Broker, proxy: Proxy, data: bytes
) -> None:
    outcomes = []
    for address in (broker.bootstrap, proxy.bootstrap):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(data)
            try:
                outcomes.append(client.recv(100))
            except ConnectionResetError:
                outcomes.append(b"")
    assert outcomes[0] == outcomes[1] == b""
    with RawClient(proxy.bootstrap) as client:
        assert client.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_client_without_kafka_is_told_by_a_closed_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with Proxy(f"127.0.0.1:{port}") as proxy, RawClient(proxy.bootstrap) as client:
        assert client.socket.recv(1) == b""
        assert proxy.events[0].startswith("no connection to Kafka for 127.0.0.1:")
        assert f"127.0.0.1:{port}: " in proxy.events[0]


def test_clients_come_back_when_kafka_does() -> None:
    with Broker(topics=["orders"]) as broker, Proxy(broker.bootstrap) as proxy:
        with RawClient(proxy.bootstrap) as client:
            client.ask(ApiVersionsRequest(), 0)
            killed = broker.faults.add(broker="killed")
            assert client.socket.recv(1) == b""
        killed.remove()
        with RawClient(proxy.bootstrap) as client:
            assert client.ask(ApiVersionsRequest(), 0).error_code == 0


def test_half_a_connection_still_gets_its_answers(proxy: Proxy) -> None:
    """The client sends no more, and reads on, as some tools do; Kafka decides what it answers."""
    with RawClient(proxy.bootstrap) as client:
        client.ask(ApiVersionsRequest(), 0)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.socket.recv(1) == b""


class MovingKafka:
    """Says in Metadata that broker 1 is at `address`, and nothing else."""

    def __init__(self) -> None:
        self.address = ("127.0.0.1", 1)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.bootstrap = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection, connection.makefile("rb") as requests:
            while size := requests.read(4):
                request = requests.read(int.from_bytes(size))
                host, port = self.address
                brokers = [MetadataResponseBroker(node_id=1, host=host, port=port)]
                writer = Writer()
                number = int.from_bytes(request[4:8])
                writer.append(response_header(MetadataRequest.API_KEY, 9, number))
                MetadataResponse(brokers=brokers).write(writer, 9)
                answer = writer.to_bytes()
                connection.sendall(pack(">i", len(answer)) + answer)


def test_the_listener_of_an_old_address_is_gone_when_clients_get_the_new_one() -> None:
    with (
        MovingKafka() as kafka,
        Proxy(kafka.bootstrap) as proxy,
        RawClient(proxy.bootstrap) as client,
    ):
        for number in range(1, 5):
            kafka.address = ("127.0.0.1", number)
            (broker,) = client.ask(MetadataRequest(topics=[]), 9).brokers
            assert proxy.brokers == {
                proxy.bootstrap: kafka.bootstrap,
                f"{broker.host}:{broker.port}": f"127.0.0.1:{number}",
            }
