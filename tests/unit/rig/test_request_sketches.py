"""Subjects of requests that are made when somebody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from minibroker.rig import request_sketches

if TYPE_CHECKING:
    from minibroker.testing import Broker


@pytest.fixture(autouse=True)
def only_followed(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody else follow the log: with `--kafka-report` the plugin follows every request."""
    monkeypatch.setattr(kafka_broker._node.request_log, "_followers", 0)
    monkeypatch.setattr(kafka_broker._node.request_log, "keeps_every", False)


def produce(broker: Broker, count: int, size_bytes: int = 1) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 0, "client.id": "p"}
    )
    for _ in range(count):
        producer.produce("orders", b"v" * size_bytes)
        assert producer.flush(60) == 0


def subjects(broker: Broker, api: str) -> list[str]:
    log = broker._node.request_log

    def describe() -> list[str]:
        return [log.describe(request.number) for request in log if request.api == api]

    return list(broker.call(describe))


@pytest.mark.kafka(topics=["orders"])
def test_requests_of_a_followed_log_are_described_when_asked_for(kafka_broker: Broker) -> None:
    log = kafka_broker._node.request_log
    produce(kafka_broker, 1)
    kafka_broker.call(log.follow)
    produce(kafka_broker, 2)
    first, second, third = subjects(kafka_broker, "Produce")
    assert first == ""  # nobody followed then
    assert second.endswith("→ orders-0 @1")
    assert third.endswith("→ orders-0 @2")
    assert third == subjects(kafka_broker, "Produce")[-1]  # asked for again
    assert all(request.subject == "" for request in log)
    kafka_broker.call(log.leave)
    assert set(subjects(kafka_broker, "Produce")) == {""}


@pytest.mark.kafka(topics=["orders"])
def test_the_answer_of_a_fetch_is_kept_without_its_records(kafka_broker: Broker) -> None:
    """It holds maps of files, which may not stay open."""
    log = kafka_broker._node.request_log
    kafka_broker.call(log.follow)
    produce(kafka_broker, 1)
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g", "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(60)
    assert message is not None
    consumer.close()
    fetched = [subject for subject in subjects(kafka_broker, "Fetch") if "1 record" in subject]
    assert "orders-0" in fetched[0]
    assert "→ orders-0 1 record 69 B" in fetched[0]
    kafka_broker.call(log.leave)


@pytest.mark.kafka(topics=["orders"])
def test_only_the_first_requests_of_a_while_are_kept(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_sketches, "PERIOD_MAX", 2)
    monkeypatch.setattr(request_sketches, "PERIOD_NS", 1 << 60)
    log = kafka_broker._node.request_log
    kafka_broker.call(log.follow)
    produce(kafka_broker, 4)
    assert [subject != "" for subject in subjects(kafka_broker, "Produce")] == [True] * 2 + [
        False
    ] * 2
    assert any(subjects(kafka_broker, "Metadata"))  # another API
    kafka_broker.call(log.leave)


@pytest.mark.kafka(topics=["orders"])
def test_the_bytes_that_are_kept_are_bounded(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_sketches, "BYTES_MAX", 50_000)
    log = kafka_broker._node.request_log
    kafka_broker.call(log.follow)
    produce(kafka_broker, 4, 20_000)
    described = [subject != "" for subject in subjects(kafka_broker, "Produce")]
    assert described == [False, False, True, True]
    produce(kafka_broker, 1, 100_000)  # only its answer is described
    assert subjects(kafka_broker, "Produce")[-1] == "→ orders-0 @4"
    kafka_broker.call(log.leave)
