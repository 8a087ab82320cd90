"""Faults as clients meet them: librdkafka and aiokafka, and raw frames for what they hide."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.rig.upcoming import upcoming_calls
from minibroker.testing import Broker
from tests.support.in_process import request_frame
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

QUIET = {"log_level": 0, "retry.backoff.ms": 10, "linger.ms": 0}


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(topics=["a:2", "b"]) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


@pytest.fixture
def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "client.id": "mine", **QUIET})


def send(producer: Producer, topic: str, *values: bytes) -> None:
    for index, value in enumerate(values):
        producer.produce(topic, value, partition=index)
    assert producer.flush(60) == 0


def errors_of(broker: Broker, api: str) -> list[str]:
    return [
        request.error
        for request in broker.requests
        if request.api == api and request.error is not None
    ]


def test_an_error_is_retried_and_the_other_partition_is_written(
    broker: Broker, producer: Producer
) -> None:
    with broker.faults.add(
        "Produce", error="NOT_LEADER_OR_FOLLOWER", topic="a", partition=0, times=2
    ) as fault:
        send(producer, "a", b"0", b"1")
    assert fault.hits == 2
    assert [record.value for record in broker.records("a")] == [b"0", b"1"]
    assert errors_of(broker, "Produce") == ["NOT_LEADER_OR_FOLLOWER"] * 2


async def test_an_error_that_says_nothing_of_the_work_is_answered_after_it(broker: Broker) -> None:
    with broker.faults.add("Produce", error="REQUEST_TIMED_OUT", times=1):
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, retry_backoff_ms=10
        ) as producer:
            await producer.send_and_wait("b", b"v")
    assert [record.value for record in broker.records("b")] == [b"v", b"v"]


@pytest.mark.parametrize(("drop", "copies"), [("before", 1), ("after", 2)])
def test_a_connection_that_ends_unanswered(
    broker: Broker, producer: Producer, drop: str, copies: int
) -> None:
    with broker.faults.add("Produce", drop=drop, times=1):
        send(producer, "b", b"v")
    assert len(broker.records("b")) == copies


def test_an_idempotent_producer_is_not_harmed_by_it(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, **QUIET}
    with broker.faults.add("Produce", drop="after", times=2) as fault:
        send(Producer(settings), "b", b"v")
    assert fault.hits == 2
    assert len(broker.records("b")) == 1


def test_an_answer_that_is_cut(broker: Broker, producer: Producer) -> None:
    with broker.faults.add("Produce", truncate_bytes=9, times=1, client_id="mine") as fault:
        send(producer, "b", b"v")
    assert fault.hits == 1
    assert len(broker.records("b")) == 2


def test_a_delay_is_on_the_brokers_clock(broker: Broker, producer: Producer) -> None:
    with broker.faults.add("Produce", delay_ms=20_000, times=1) as fault:
        producer.produce("b", b"v")
        while not fault.hits:
            producer.poll(0.01)
        assert broker.records("b") == []
        broker.clock.advance(seconds=20)
        assert producer.flush(60) == 0
        assert not any(broker._node.interceptor._waiting_by_fault.values())
    assert [record.value for record in broker.records("b")] == [b"v"]


def test_a_connection_that_is_held_goes_on_when_the_rule_is_removed(
    broker: Broker, producer: Producer
) -> None:
    fault = broker.faults.add("Produce", hold=True)
    producer.produce("b", b"v")
    while not fault.hits:
        producer.poll(0.01)
    assert broker.records("b") == []
    fault.remove()
    assert producer.flush(60) == 0
    assert len(broker.records("b")) == 1


def creation(broker: Broker, client_id: str, topic: str) -> Future[None]:
    """Begin to create a topic with a client of its own; return the future of its answer."""
    settings = {"bootstrap.servers": broker.bootstrap, "client.id": client_id}
    admin = AdminClient({**settings, "log_level": 0})
    future = admin.create_topics([NewTopic(topic, 1)], request_timeout=60)[topic]
    future.admin = admin  # type: ignore[attr-defined]  it ends with its last reference
    return future


def test_held_requests_leave_the_places_of_tasks_to_others() -> None:
    with Broker(config={"queued.max.requests": 1}) as broker:
        fault = broker.faults.add("CreateTopics", hold=True, client_id="held")
        creations = [creation(broker, "held", f"held-{number}") for number in range(2)]
        wait_until(lambda: fault.hits == 2, "two requests are held")
        creation(broker, "free", "free").result(60)
        assert not any(future.done() for future in creations)
        fault.remove()
        for future in creations:
            future.result(60)


def has_delay(broker: Broker) -> bool:
    """Return whether a timer of the broker ends a delay."""
    calls = broker.call(lambda: upcoming_calls(broker._running.app, 100))
    return "a fault's delay ends" in [call.text for call in calls]


def test_a_delay_ends_with_its_connection(broker: Broker) -> None:
    host, port = broker.bootstrap.split(":")
    with broker.faults.add("Metadata", delay_ms=86_400_000) as fault:
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(request_frame(MetadataRequest(topics=[]), 9))
            wait_until(lambda: fault.hits == 1, "the request is delayed")
            assert has_delay(broker)
        wait_until(lambda: not has_delay(broker), "the delay has ended")


def test_a_consumer_gets_the_other_partition_meanwhile(broker: Broker) -> None:
    for index in (0, 1):
        broker.produce("a", b"%d" % index, partition=index)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            **QUIET,
        }
    )
    consumer.subscribe(["a"])
    with broker.faults.add("Fetch", error="NOT_LEADER_OR_FOLLOWER", topic="a", partition=0):
        message = consumer.poll(60)
        assert message is not None
        assert message.value() == b"1"
    message = consumer.poll(60)
    assert message is not None
    assert message.value() == b"0"
    consumer.close()


def test_the_coordinator_moves(broker: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", **QUIET})
    with broker.faults.add("JoinGroup", error="NOT_COORDINATOR", group="g", times=1) as fault:
        consumer.subscribe(["b"])
        while not consumer.assignment():
            consumer.poll(0.1)
    assert fault.hits == 1
    assert errors_of(broker, "JoinGroup")[0] == "NOT_COORDINATOR"
    consumer.close()


def test_metadata_without_a_leader(broker: Broker, producer: Producer) -> None:
    with broker.faults.add("Metadata", error="LEADER_NOT_AVAILABLE", topic="b", times=2) as fault:
        send(producer, "b", b"v")
    assert fault.hits == 2
    assert len(broker.records("b")) == 1


def test_an_answer_comes_twice(broker: Broker) -> None:
    host, port = broker.bootstrap.split(":")
    frame = request_frame(MetadataRequest(topics=[]), 9)
    with (
        broker.faults.add("Metadata", twice=True),
        socket.create_connection((host, int(port)), 10) as connection,
    ):
        connection.sendall(frame)
        reader = connection.makefile("rb")
        answers = [reader.read(struct.unpack(">i", reader.read(4))[0]) for _ in range(2)]
        reader.close()
    assert answers[0] == answers[1]


def test_a_reset_ends_all_faults(broker: Broker, producer: Producer) -> None:
    broker.faults.add("Produce", hold=True)
    broker.faults.add(error="BROKER_NOT_AVAILABLE")
    assert len(list(broker.faults)) == 2
    broker.reset()
    assert list(broker.faults) == []
    send(producer, "b", b"v")
