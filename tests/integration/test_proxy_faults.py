"""Each field of a fault before Kafka 3.9.1, Kafka 4.4.0 and minibroker: the proxy applies it."""

from __future__ import annotations

import inspect
import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.rig.faults import BROKER_FAULTS, Fault
from minibroker.testing import Proxy
from tests.support.batches import batch
from tests.support.dialogues import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKAS = (
    "minibroker",
    pytest.param("kafka_39", marks=pytest.mark.java),
    pytest.param("kafka_44", marks=pytest.mark.java),
)
PRODUCE, FETCH, OFFSETS, CREATE = 9, 11, 6, 5
"""Versions that all of them have."""
NUMBERS = itertools.count()
BUSY = int(ErrorCode.REBALANCE_IN_PROGRESS)


@pytest.fixture(scope="module", params=KAFKAS)
def proxy_of_the_module(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """Yield a proxy before each Kafka."""
    with Proxy(request.getfixturevalue(request.param).address) as proxy:
        yield proxy


@pytest.fixture
def proxy(proxy_of_the_module: Proxy) -> Iterator[Proxy]:
    """Yield it without faults."""
    yield proxy_of_the_module
    proxy_of_the_module.reset()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[RawClient]:
    """Yield a connection through it."""
    with RawClient(proxy.bootstrap) as client:
        yield client


@pytest.fixture
def topic(client: RawClient) -> str:
    """Return a new topic of two partitions, whose leaders are known."""
    name = f"fault-{next(NUMBERS)}"
    wish = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    (creation,) = client.ask(CreateTopicsRequest(topics=[wish], timeout_ms=30_000), CREATE).topics
    assert creation.error_code == 0
    deadline = time.monotonic() + 30
    # Metadata may name a leader that does not know of it yet.
    while any(part.error_code for part in offsets(client, name)):
        assert time.monotonic() < deadline
    return name


def offsets(client: RawClient, topic: str) -> list[Any]:
    """Return what ListOffsets says of the end of both partitions, in their order."""
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)]
    )
    (answer,) = client.ask(request, OFFSETS).topics
    return sorted(answer.partitions, key=lambda part: part.partition_index)


def produce(topic: str, *partitions: int, acks: int = -1) -> ProduceRequest:
    """Return a request that writes a record to each of these partitions."""
    data = [PartitionProduceData(index=index, records=batch(b"v")) for index in partitions]
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )


def codes_of(answer: Any) -> dict[int, int]:
    """Return partition → error of an answer to `produce`."""
    (topic,) = answer.responses
    return {part.index: part.error_code for part in topic.partition_responses}


def ends(client: RawClient, topic: str) -> list[int]:
    """Return the number of records of both partitions."""
    return [part.offset for part in offsets(client, topic)]


def test_an_error_answers_without_kafka(proxy: Proxy, client: RawClient, topic: str) -> None:
    fault = proxy.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
    code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert codes_of(client.ask(produce(topic, 0, 1), PRODUCE)) == {0: code, 1: code}
    assert ends(client, topic) == [0, 0]
    assert codes_of(client.ask(produce(topic, 0, 1), PRODUCE)) == {0: 0, 1: 0}
    assert ends(client, topic) == [1, 1]
    assert fault.hits == 1
    (request, *_) = [request for request in proxy.requests if request.api == "Produce"]
    assert (request.error, request.fault) == (
        "NOT_LEADER_OR_FOLLOWER",
        "error NOT_LEADER_OR_FOLLOWER",
    )


def test_an_error_of_a_partition_leaves_the_others_real(
    proxy: Proxy, client: RawClient, topic: str
) -> None:
    proxy.faults.add("Produce", error="KAFKA_STORAGE_ERROR", topic=topic, partition=1)
    answer = client.ask(produce(topic, 0, 1), PRODUCE)
    assert codes_of(answer) == {0: 0, 1: int(ErrorCode.KAFKA_STORAGE_ERROR)}
    assert ends(client, topic) == [1, 0]


def test_an_error_of_a_partition_of_a_fetch_leaves_the_others_real(
    proxy: Proxy, client: RawClient, topic: str
) -> None:
    client.ask(produce(topic, 0, 1), PRODUCE)
    proxy.faults.add("Fetch", error="NOT_LEADER_OR_FOLLOWER", topic=topic, partition=0)
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        for index in (0, 1)
    ]
    request = FetchRequest(
        max_wait_ms=20_000,
        min_bytes=1,
        max_bytes=10_000,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=partitions)],
    )
    (answer,) = client.ask(request, FETCH).responses
    parts = {part.partition_index: part for part in answer.partitions}
    assert parts[0].error_code == int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert not parts[0].records
    assert parts[1].error_code == 0
    assert parts[1].records


def test_another_topic_does_not_meet_a_rule(proxy: Proxy, client: RawClient, topic: str) -> None:
    proxy.faults.add("Produce", error="KAFKA_STORAGE_ERROR", topic="other", may_miss=True)
    assert codes_of(client.ask(produce(topic, 0), PRODUCE)) == {0: 0}


def test_an_applied_error_comes_after_the_work(proxy: Proxy, client: RawClient, topic: str) -> None:
    proxy.faults.add("Produce", error="CORRUPT_MESSAGE", applied=True)
    assert codes_of(client.ask(produce(topic, 0), PRODUCE)) == {0: int(ErrorCode.CORRUPT_MESSAGE)}
    assert ends(client, topic) == [1, 0]


def test_a_dropped_request_is_not_done(proxy: Proxy, client: RawClient, topic: str) -> None:
    proxy.faults.add("Produce", drop="before")
    with RawClient(proxy.bootstrap) as other:
        other.send(produce(topic, 0), PRODUCE)
        assert other.socket.recv(1) == b""
    assert ends(client, topic) == [0, 0]


def test_a_dropped_answer_is_of_a_request_that_is_done(
    proxy: Proxy, client: RawClient, topic: str
) -> None:
    proxy.faults.add("Produce", drop="after")
    with RawClient(proxy.bootstrap) as other:
        other.send(produce(topic, 0), PRODUCE)
        assert other.socket.recv(1) == b""
    assert ends(client, topic) == [1, 0]


def test_an_answer_is_sent_twice(proxy: Proxy, client: RawClient, topic: str) -> None:
    proxy.faults.add("Produce", twice=True)
    client.send(produce(topic, 0), PRODUCE)
    assert client.receive_frame() == client.receive_frame()


def test_an_answer_is_cut(proxy: Proxy, topic: str) -> None:
    proxy.faults.add("Produce", truncate_bytes=10)
    with RawClient(proxy.bootstrap) as other:
        other.send(produce(topic, 0), PRODUCE)
        data = b""
        while piece := other.socket.recv(100):
            data += piece
    assert len(data) == 10


def test_an_answer_comes_slowly(proxy: Proxy, client: RawClient) -> None:
    size = len(answer_to_versions(client))
    proxy.faults.add("ApiVersions", bytes_per_s=size * 4)
    start = time.monotonic()
    assert len(answer_to_versions(client)) == size
    assert time.monotonic() - start > 0.2


def answer_to_versions(client: RawClient) -> bytes:
    """Return the bytes of an answer that is some hundred bytes long."""
    client.send(ApiVersionsRequest(), 0)
    return client.receive_frame()


def test_a_delayed_request_holds_those_behind_it(
    proxy: Proxy, client: RawClient, topic: str
) -> None:
    proxy.faults.add("Produce", delay_ms=150)
    start = time.monotonic()
    numbers = [client.send(produce(topic, 0), PRODUCE), client.send(ApiVersionsRequest(), 0)]
    frames = [client.receive_frame() for _ in numbers]
    assert time.monotonic() - start > 0.15
    assert [int.from_bytes(frame[:4]) for frame in frames] == numbers


def test_a_held_request_goes_on_when_the_rule_ends(
    proxy: Proxy, client: RawClient, topic: str
) -> None:
    fault = proxy.faults.add("Produce", hold=True)
    with RawClient(proxy.bootstrap) as other:
        number = other.send(produce(topic, 0), PRODUCE)
        fault.wait()
        assert ends(client, topic) == [0, 0]
        fault.remove()
        assert int.from_bytes(other.receive_frame()[:4]) == number
    assert ends(client, topic) == [1, 0]


@pytest.mark.parametrize(
    ("fields", "meets"),
    [
        ({"group": "billing"}, True),
        ({"group": "other"}, False),
        ({"client_id": "raw"}, True),
        ({"client_id": "other"}, False),
        ({"version": 3}, True),
        ({"version": 2}, False),
    ],
)
def test_a_rule_asks_for_a_group_a_client_and_a_version(
    proxy: Proxy, client: RawClient, fields: dict[str, Any], meets: bool
) -> None:
    proxy.faults.add("Heartbeat", error="REBALANCE_IN_PROGRESS", may_miss=True, **fields)
    answer = client.ask(HeartbeatRequest(group_id="billing", member_id="m"), 3)
    assert (answer.error_code == BUSY) == meets


def heartbeats(client: RawClient, count: int) -> list[bool]:
    """Return whether each of some heartbeats was met by the rule."""
    request = HeartbeatRequest(group_id="billing", member_id="m")
    return [client.ask(request, 3).error_code == BUSY for _ in range(count)]


def test_a_rule_counts_requests(proxy: Proxy, client: RawClient) -> None:
    proxy.faults.add("Heartbeat", error="REBALANCE_IN_PROGRESS", skip=2, times=1)
    assert heartbeats(client, 5) == [False, False, True, False, False]


def test_a_rule_has_a_chance_that_a_seed_repeats(proxy: Proxy, client: RawClient) -> None:
    outcomes = []
    for _ in range(2):
        with proxy.faults.add("Heartbeat", error="REBALANCE_IN_PROGRESS", probability=0.5, seed=7):
            outcomes.append(heartbeats(client, 20))
    assert outcomes[0] == outcomes[1]
    assert 0 < sum(outcomes[0]) < 20


def test_a_rule_for_any_request_meets_each_api(proxy: Proxy, client: RawClient) -> None:
    proxy.faults.add(error="REBALANCE_IN_PROGRESS", times=2)
    assert heartbeats(client, 1) == [True]
    assert client.ask(ApiVersionsRequest(), 0).error_code == BUSY


def test_a_paused_proxy_takes_connections_and_answers_nothing(proxy: Proxy) -> None:
    with proxy.faults.add(broker="paused") as fault, RawClient(proxy.bootstrap) as other:
        number = other.send(ApiVersionsRequest(), 0)
        fault.wait()
        fault.remove()
        assert int.from_bytes(other.receive_frame()[:4]) == number


def test_a_killed_proxy_is_back_at_its_address(proxy: Proxy, client: RawClient) -> None:
    with proxy.faults.add(broker="killed"):
        assert client.socket.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            RawClient(proxy.bootstrap)
    with RawClient(proxy.bootstrap) as other:
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_producer_gets_over_a_leader_that_moved(proxy: Proxy, topic: str) -> None:
    fault = proxy.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=topic, times=2)
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True})
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(30) == 0
    assert fault.hits == 2


def test_a_transaction_is_fenced(proxy: Proxy) -> None:
    proxy.faults.add("InitProducerId", error="INVALID_PRODUCER_EPOCH")
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "transactional.id": "t"})
    with pytest.raises(KafkaException, match="_FENCED"):
        producer.init_transactions(30)


def _refused() -> Iterator[tuple[str, dict[str, Any]]]:
    served = ("paused", "killed")
    delays = {"slow_sync", "slow_follower"}
    for kind in BROKER_FAULTS:
        if kind not in served:
            yield kind, {"broker": kind, "delay_ms": 5 if kind in delays else 0}
    yield "tls_cut", {"login": "tls_cut"}
    yield "tls_slow", {"login": "tls_slow", "delay_ms": 5}


@pytest.mark.parametrize(("kind", "fields"), list(_refused()))
def test_a_fault_inside_of_a_broker_is_refused(kind: str, fields: dict[str, Any]) -> None:
    with Proxy("127.0.0.1:1") as proxy, pytest.raises(ConfigError, match=kind):
        proxy.faults.add(**fields)


def test_acks_0_with_an_error_ends_the_connection(proxy: Proxy, topic: str) -> None:
    """A broker does so, too: its client waits for no answer."""
    proxy.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER")
    with RawClient(proxy.bootstrap) as other:
        other.send(produce(topic, 0, acks=0), PRODUCE)
        assert other.socket.recv(1) == b""


def test_fields_of_a_fault_are_all_tried_or_refused() -> None:

    tried = {
        *("api", "error", "delay_ms", "drop", "twice", "truncate_bytes", "bytes_per_s", "hold"),
        *("applied", "topic", "partition", "group", "client_id", "version", "skip", "times"),
        *("probability", "seed", "broker", "may_miss"),
    }
    in_secured_tests = {"login", "user"}
    of_peers = {"peer"}
    assert tried | in_secured_tests | of_peers == set(inspect.signature(Fault).parameters)
