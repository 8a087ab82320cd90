"""Clients that work while somebody looks at the console: topics, records, groups."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import requests
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.dialogue import Dialogue
from tests.compat.transactional import Producer as TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.conftest import ConsoleBroker

WAIT_S: Final = 60.0


def make_topic(broker: ConsoleBroker, name: str, **config: str) -> None:
    """Make a topic of one partition with these settings."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, 1, config=config)])[name].result(WAIT_S)


def write(broker: ConsoleBroker, topic: str, value: bytes | None, **fields: Any) -> None:
    """Write a record. Raises KafkaException if the broker refuses it."""
    errors: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "client.id": fields.pop("client_id", "writer"),
            "retries": 0,
            "message.max.bytes": 12_000_000,
        }
    )
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error), **fields)
    assert producer.flush(WAIT_S) == 0
    if errors[0] is not None:
        raise KafkaException(errors[0])


def consumed(broker: ConsoleBroker, topic: str, offset: int, count: int) -> list[Message]:
    """Return so many committed records of partition 0, from an offset on."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "a-reader"})
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        messages = consumer.consume(count, WAIT_S)
    finally:
        consumer.close()
    assert [message.error() for message in messages] == [None] * count
    return messages


def hang(broker: ConsoleBroker, topic: str, producer_id: int) -> None:
    """Leave a record in partition 0 whose transaction no coordinator knows, as clients before
    KIP-890 could. The broker does not verify partitions of transactions.
    """
    metadata = AdminClient({"bootstrap.servers": broker.address}).list_topics(topic, WAIT_S)
    leader = metadata.brokers[metadata.topics[topic].partitions[0].leader]
    talk = Dialogue(leader.host, leader.port, scenario="", api="produce", version=7)
    producer = TransactionalProducer(talk)
    producer.producer_id, producer.epoch = producer_id, 0
    producer.produce(topic, b"hangs")
    talk.close()


@contextmanager
def committed(
    broker: ConsoleBroker, group: str, topic: str, offset: int, **config: Any
) -> Iterator[Consumer]:
    """Commit an offset of partition 0 as no member of a group; its client is open meanwhile."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group, **config})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    try:
        yield consumer
    finally:
        consumer.close()


@contextmanager
def member_of(broker: ConsoleBroker, group: str, topic: str, **config: Any) -> Iterator[None]:
    """Run a consumer of a group meanwhile; it reads and commits nothing."""
    is_over = threading.Event()
    has_joined = threading.Event()
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "client.id": "member",
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.subscribe([topic], on_assign=lambda *_: has_joined.set())

    def run() -> None:
        while not is_over.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert has_joined.wait(WAIT_S)
        yield
    finally:
        is_over.set()
        thread.join()


def status_of(broker: ConsoleBroker, path: str) -> Any:
    """Return the JSON of a path of the control API."""
    return requests.get(broker.url + path, timeout=WAIT_S).json()


def quotas_of(broker: ConsoleBroker, client_id: str) -> dict[str, float]:
    """Return the quotas of a client id, as Kafka's clients ask for them."""
    host, _, port = broker.address.rpartition(":")
    talk = Dialogue(host, int(port), scenario="", api="describe_client_quotas", version=0)
    component = {"entity_type": "client-id", "match_type": 0, "match": client_id}
    answer = talk.quietly("describe_client_quotas", 0, components=[component], strict=True)
    talk.close()
    assert answer["error_code"] == 0, answer
    return {
        value["key"]: value["value"] for entry in answer["entries"] for value in entry["values"]
    }
