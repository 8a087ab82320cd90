"""Real clients through TLS, with certificates of their own: one broker for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from minibroker.testing import Broker
from tests.support.clients import kafka_python
from tests.support.java import TOOLS_43
from tests.support.kafka_tools import run_commands
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kafka(
    topics=["confluent", "aiokafka", "python"],
    security="SSL",
    config={"ssl.client.auth": "required"},
)
TIMEOUT_S = 180
VALUES = [f"value {number}".encode() * 100 for number in range(200)]


def clients_of(broker: Broker) -> set[tuple[str, str]]:
    """Return the principals and the versions of TLS of the open connections."""

    def look() -> set[tuple[str, str]]:
        connections = broker._node.app._server.connections
        return {(c._context.principal, c._transport._tls_object.version()) for c in connections}

    connections: set[tuple[str, str]] = broker.call(look)
    return connections


def write_and_read(broker: Broker, version: str) -> None:
    """Produce and consume with librdkafka."""
    settings = broker.client_config("confluent-kafka", user="alice")
    producer = Producer(settings)
    for value in VALUES:
        producer.produce("confluent", value)
    assert producer.flush(TIMEOUT_S) == 0
    assert ("User:alice", version) in clients_of(broker)
    consumer = Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("confluent", 0, OFFSET_BEGINNING)])
    values: list[bytes | None] = []

    def has_read_all() -> bool:
        values.extend(message.value() for message in consumer.consume(100, 0.2))
        return len(values) >= len(VALUES)

    wait_until(has_read_all, "all values are read")
    consumer.close()
    assert values == VALUES


def test_librdkafka_with_tls_1_3(kafka_module: Broker) -> None:
    write_and_read(kafka_module, "TLSv1.3")


@pytest.mark.kafka(
    topics=["confluent"], security="SSL", config={"ssl.enabled.protocols": "TLSv1.2"}
)
def test_librdkafka_with_tls_1_2(kafka_broker: Broker) -> None:
    write_and_read(kafka_broker, "TLSv1.2")


def test_librdkafka_hears_that_its_certificate_is_missing(kafka_module: Broker) -> None:
    settings = kafka_module.client_config("confluent-kafka")
    errors: list[str] = []
    consumer = Consumer(
        {**settings, "group.id": "g", "error_cb": lambda error: errors.append(str(error))}
    )
    with pytest.raises(KafkaException):
        consumer.list_topics(timeout=0.5)
    wait_until(lambda: consumer.poll(0.1) is None and errors, "an error is told")
    consumer.close()
    assert any("certificate required" in error for error in errors), errors


async def test_aiokafka(kafka_module: Broker) -> None:
    settings = kafka_module.client_config("aiokafka", user="bob")
    async with AIOKafkaProducer(**settings) as producer:
        for value in VALUES:
            await producer.send("aiokafka", value)
        await producer.flush()
        assert ("User:bob", "TLSv1.3") in clients_of(kafka_module)
    async with AIOKafkaConsumer("aiokafka", **settings, auto_offset_reset="earliest") as consumer:
        assert [(await consumer.getone()).value for _ in VALUES] == VALUES


def test_kafka_python(kafka_module: Broker) -> None:
    kafka = kafka_python()
    settings = kafka_module.client_config("kafka-python", user="carol")
    producer = kafka.KafkaProducer(**settings)
    for value in VALUES:
        producer.send("python", value)
    producer.flush(TIMEOUT_S)
    assert ("User:carol", "TLSv1.3") in clients_of(kafka_module)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "python", **settings, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000
    )
    values = [next(consumer).value for _ in VALUES]
    consumer.close()
    assert values == VALUES


@pytest.mark.java
def test_java_shows_its_certificate(kafka_module: Broker, tmp_path: Path) -> None:
    settings = kafka_module.client_config("java", user="dora")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    server = ("--bootstrap-server", kafka_module.bootstrap)
    (outcome,) = run_commands(
        TOOLS_43,
        ("org.apache.kafka.tools.TopicCommand", *server, "--command-config", str(file), "--list"),
    )
    assert "confluent" in outcome.text.split(), outcome
