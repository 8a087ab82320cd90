"""A test moves the broker's clock: real clients see the same as when that time passes on Kafka.

| what the time ends | with |
|---|---|
| retention, a session, a transaction, LogAppendTime | confluent-kafka, aiokafka, kafka-python |
| a rebalance | confluent-kafka, aiokafka |
| a quota's delay | confluent-kafka, aiokafka |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.reacting import PATIENT, READERS, WRITERS, Client, opened_clients, settle
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.testing import Broker

CLIENTS = tuple(WRITERS)
open_client = pytest.fixture(opened_clients)


def values(broker: Broker, topic: str, **how: Any) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, **how)]


@pytest.mark.parametrize("client", CLIENTS)
def test_retention_removes_old_records(
    kafka: Broker, open_client: Callable[[Client], Any], client: str
) -> None:
    """A consumer that lags is sent to the first record that is left."""
    kafka.create_topic("short", config={"retention.ms": 60_000})
    for value in (b"old", b"older"):
        kafka.produce("short", value)
    reader = open_client(READERS[client](kafka.bootstrap, "short", "g"))
    assert settle(reader.read(2)) == "done"
    kafka.clock.advance(minutes=6)
    wait_until(lambda: values(kafka, "short") == [], "the old segment is deleted")
    kafka.produce("short", b"new")
    late = open_client(READERS[client](kafka.bootstrap, "short"))
    assert settle(late.read(1)) == "done"
    assert settle(reader.read(3)) == "done"
    assert (late.values, reader.values[2:]) == ([b"new"], [b"new"])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_ends_and_the_member_joins_again(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    member = open_client(READERS[client](kafka.bootstrap, kafka_topic, "g"))
    assert settle(member.poll_until(lambda: member.assigned == [0])) == "done"
    kafka.clock.advance(minutes=1)
    back = member.poll_until(lambda: member.revoked == 1 and member.assigned == [0])
    assert settle(back) == "done"
    assert kafka.wait_for_requests("Heartbeat", error="UNKNOWN_MEMBER_ID")
    kafka.produce(kafka_topic, b"1")
    assert settle(member.read(1)) == "done"
    assert settle(member.commit()) == "done"


# kafka-python 3.0 spins in poll() every now and then when several join at once; where it does not,
# it ends as these two do, here and with Kafka 4.4.0.
@pytest.mark.parametrize("client", ["confluent", "aiokafka"])
def test_a_rebalance_does_not_wait_longer_than_its_time(
    kafka: Broker, open_client: Callable[[Client], Any], client: str
) -> None:
    """A member whose user is busy during a revocation is removed.

    It gets an error, and joins again.
    """
    kafka.create_topic("two", partitions=2)
    slow = open_client(READERS[client](kafka.bootstrap, "two", "g"))
    assert settle(slow.poll_until(lambda: slow.assigned == [0, 1])) == "done"
    slow.may_give_up.clear()
    stuck = slow.poll_until(lambda: slow.revoked == 1 and slow.may_give_up.is_set())
    other = open_client(READERS[client](kafka.bootstrap, "two", "g"))
    joined = other.poll_until(lambda: other.assigned == [0, 1])
    wait_until(lambda: slow.revoked == 1, "it is told to give its partitions up")
    kafka.clock.advance(minutes=10)
    assert settle(joined) == "done"
    slow.may_give_up.set()
    assert settle(stuck) == "done"
    halves = [
        consumer.poll_until(lambda consumer=consumer: len(consumer.assigned) == 1)
        for consumer in (slow, other)
    ]
    # Each goes on until both have theirs.
    assert [settle(half) for half in halves] == ["done", "done"]
    assert sorted(slow.assigned + other.assigned) == [0, 1]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    writer = open_client(WRITERS[client](kafka.bootstrap, "t", transaction_timeout_ms=20_000))
    writer.begin()
    assert settle(writer.send(kafka_topic, b"lost")) == "done"
    kafka.clock.advance(seconds=40)
    assert settle(writer.commit()) != "done"
    another = open_client(WRITERS[client](kafka.bootstrap, "t"))
    another.begin()
    assert settle(another.send(kafka_topic, b"kept")) == "done"
    assert settle(another.commit()) == "done"
    assert values(kafka, kafka_topic, isolation="read_committed") == [b"kept"]


@pytest.mark.parametrize("client", ["confluent", "aiokafka"])
def test_a_client_over_its_quota_waits(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    limit = {"producer_byte_rate": "1000"}
    kafka.await_node(lambda node: node.app.cluster.alter_config("clients", client, limit))
    writer = open_client(WRITERS[client](kafka.bootstrap, **PATIENT[client]))
    assert settle(writer.send(kafka_topic, b"v" * 20_000)) == "done"
    waiting = writer.send(kafka_topic, b"next")
    kafka.clock.advance(minutes=1)
    assert settle(waiting) == "done"
    first, second = kafka.wait_for_requests("Produce", 2)
    assert second.at_ms - first.at_ms > 9_000


@pytest.mark.parametrize("client", CLIENTS)
def test_records_carry_the_brokers_time(
    kafka: Broker, open_client: Callable[[Client], Any], client: str
) -> None:
    kafka.create_topic("times", config={"message.timestamp.type": "LogAppendTime"})
    writer = open_client(WRITERS[client](kafka.bootstrap))
    reader = open_client(READERS[client](kafka.bootstrap, "times"))
    assert settle(writer.send("times", b"1")) == "done"
    kafka.clock.advance(hours=2)
    assert settle(writer.send("times", b"2")) == "done"
    assert settle(reader.read(2)) == "done"
    first, second = reader.times
    assert 7_200_000 <= second - first < 7_300_000
