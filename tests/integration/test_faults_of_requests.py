"""Reactions of real clients to each fault of requests.

As with Apache Kafka they retry, look for the leader or the coordinator again, join again, give up
or are fenced.

One table per family; every row with three libraries. `test_faults_beside_kafka` gives one error of
each family to the same clients before Apache Kafka.

A: confluent-kafka, B: aiokafka, C: kafka-python.

| fault | of | with |
|---|---|---|
| an error | Produce, Metadata, Fetch, ListOffsets, Heartbeat, OffsetCommit | A B C |
| an error | InitProducerId, AddPartitionsToTxn, EndTxn | A B C |
| an error | FindCoordinator, JoinGroup, SyncGroup | A B (C: beside Kafka) |
| dropped | Produce, Fetch, Heartbeat, OffsetCommit, EndTxn | A B C |
| dropped | JoinGroup | A B |
| truncated, twice, held, late | Produce, Fetch | A B C |
| disk full, slow sync, paused, ZooKeeper session lost | the broker | A B C |
| killed | the broker | A B |

Faults of the broker are in `test_faults_of_broker`, moves of the clock in `test_clock_moves`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from minibroker.kafka.error_codes import ErrorCode
from tests.support.reacting import (
    DEADLINE_S,
    IMPATIENT,
    READERS,
    WRITERS,
    RefusedError,
    opened_clients,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.testing import Broker
    from tests.support.reacting import Client

CLIENTS = tuple(WRITERS)


open_client = pytest.fixture(opened_clients)


def request_count(broker: Broker, api: str) -> int:
    """Return how many requests of a kind clients sent."""
    return Counter(request.api for request in broker.requests)[api]


class Sending(NamedTuple):
    """A fault of a producer's requests and the outcome of a record that is sent meanwhile."""

    name: str
    rule: dict[str, Any]
    outcome: str = "done"
    record_count: int = 1
    asks_again: str = "Produce"
    """The request that it has to send at least twice."""


FORBIDDEN = "TOPIC_AUTHORIZATION_FAILED"
REFUSED: dict[str, Any] = {"record_count": 0, "asks_again": ""}
METADATA: dict[str, Any] = {"asks_again": "Metadata"}
SENDING = (
    Sending("retriable error", {"error": "NOT_LEADER_OR_FOLLOWER", "times": 2}),
    Sending("looks for the leader again", {"error": "NOT_LEADER_OR_FOLLOWER"}, **METADATA),
    Sending("error after the work", {"error": "REQUEST_TIMED_OUT"}),
    Sending("too few replicas", {"error": "NOT_ENOUGH_REPLICAS"}),
    Sending("error for good", {"error": FORBIDDEN}, FORBIDDEN, **REFUSED),
    Sending("too large", {"error": "MESSAGE_TOO_LARGE"}, "MESSAGE_TOO_LARGE", **REFUSED),
    Sending("dropped before", {"drop": "before"}),
    Sending("dropped after", {"drop": "after"}),
    Sending("truncated", {"truncate_bytes": 7}),
    Sending("nothing at all", {"truncate_bytes": 0}),
    Sending(
        "leader not available", {"api": "Metadata", "error": "LEADER_NOT_AVAILABLE"}, **METADATA
    ),
)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", SENDING, ids=lambda row: row.name)
def test_a_producer(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], row: Sending, client: str
) -> None:
    rule = {"api": "Produce", "times": 1, "topic": kafka_topic, **row.rule}
    with kafka.faults.add(**rule) as fault:
        writer = open_client(WRITERS[client](kafka.bootstrap))
        assert settle(writer.send(kafka_topic, b"1")) == row.outcome
    assert fault.hits == rule["times"]
    assert len(kafka.records(kafka_topic)) == row.record_count
    if row.asks_again:
        assert request_count(kafka, row.asks_again) >= 2


@pytest.mark.parametrize("client", CLIENTS)
def test_an_answer_comes_late(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    """By the broker's clock: not before it is moved, and at once then."""
    writer = open_client(WRITERS[client](kafka.bootstrap))
    assert settle(writer.send(kafka_topic, b"1")) == "done"
    with kafka.faults.add("Produce", delay_ms=20_000, times=1) as fault:
        delivery = writer.send(kafka_topic, b"2")
        fault.wait(1)
        assert not delivery.done()
        kafka.clock.advance(seconds=20)
        assert settle(delivery) == "done"
    assert [record.value for record in kafka.records(kafka_topic)] == [b"1", b"2"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_connection_that_is_not_read_is_left_and_the_record_sent_anew(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    writer = open_client(WRITERS[client](kafka.bootstrap, **IMPATIENT[client]))
    assert settle(writer.send(kafka_topic, b"1")) == "done"
    with kafka.faults.add("Produce", hold=True, times=1) as fault:
        assert settle(writer.send(kafka_topic, b"2")) == "done"
        assert fault.hits == 1
    assert settle(writer.send(kafka_topic, b"3")) == "done"
    assert [record.value for record in kafka.records(kafka_topic)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_answer_that_comes_twice_writes_nothing_twice(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    """Some clients ignore the second answer, some close the connection; then they go on."""
    writer = open_client(WRITERS[client](kafka.bootstrap))
    with kafka.faults.add("Produce", twice=True, times=1) as fault:
        for value in (b"1", b"2", b"3"):
            assert settle(writer.send(kafka_topic, value)) == "done"
        assert fault.hits == 1
    assert [record.value for record in kafka.records(kafka_topic)] == [b"1", b"2", b"3"]


READING = (
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "KAFKA_STORAGE_ERROR"},
    {"error": "OFFSET_OUT_OF_RANGE"},
    {"error": "UNKNOWN_TOPIC_OR_PARTITION"},
    {"error": "FENCED_LEADER_EPOCH"},
    {"drop": "before"},
    {"drop": "after"},
    {"truncate_bytes": 30},
    {"twice": True},
    {"delay_ms": 50},
    {"hold": True},
    {"api": "ListOffsets", "error": "LEADER_NOT_AVAILABLE"},
)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("rule", READING, ids=lambda rule: "-".join(map(str, rule.values())))
def test_a_consumer_reads_everything_once_and_in_order(
    kafka: Broker,
    kafka_topic: str,
    open_client: Callable[[Client], Any],
    rule: dict[str, Any],
    client: str,
) -> None:
    originals = [b"%d" % number for number in range(20)]
    for value in originals:
        kafka.produce(kafka_topic, value)
    with kafka.faults.add(**{"api": "Fetch", "times": 1, **rule}) as fault:
        settings = IMPATIENT[client] if "hold" in rule else {}
        reader = open_client(READERS[client](kafka.bootstrap, kafka_topic, **settings))
        assert settle(reader.read(len(originals))) == "done"
        assert fault.hits == 1
    assert reader.values == originals


# --- groups -------------------------------------------------------------------------------------


class InGroup(NamedTuple):
    """A fault of a group's requests and the member's reaction: it sends `then` once more."""

    rule: dict[str, Any]
    then: str


IN_GROUP = (
    InGroup({"api": "Heartbeat", "error": "NOT_COORDINATOR"}, "FindCoordinator"),
    InGroup({"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}, "JoinGroup"),
    InGroup({"api": "Heartbeat", "error": "UNKNOWN_MEMBER_ID"}, "JoinGroup"),
    InGroup({"api": "Heartbeat", "error": "ILLEGAL_GENERATION"}, "JoinGroup"),
    InGroup({"api": "Heartbeat", "drop": "before"}, "Heartbeat"),
)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", IN_GROUP, ids=lambda row: "-".join(map(str, row.rule.values())))
def test_a_member_finds_its_way_back(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], row: InGroup, client: str
) -> None:
    member = open_client(READERS[client](kafka.bootstrap, kafka_topic, "g"))
    assert settle(member.poll_until(lambda: member.assigned == [0])) == "done"
    old_count = request_count(kafka, row.then)

    def is_back() -> bool:
        if kafka.groups["g"] == "PreparingRebalance":
            # It came as somebody else, and the broker waits for whom it was.
            kafka.clock.advance(minutes=6)
        return request_count(kafka, row.then) > old_count and kafka.groups["g"] == "Stable"

    with kafka.faults.add(**row.rule, group="g", times=1) as fault:
        assert settle(member.poll_until(lambda: fault.hits == 1 and is_back())) == "done"
    beats = request_count(kafka, "Heartbeat")
    well = member.poll_until(
        lambda: (
            is_back() and member.assigned == [0] and request_count(kafka, "Heartbeat") > beats + 1
        )
    )
    assert settle(well) == "done"
    assert member.revoked == (row.then == "JoinGroup")
    kafka.produce(kafka_topic, b"1")
    assert settle(member.read(1)) == "done"
    assert settle(member.commit()) == "done"
    assert kafka.committed("g") == {(kafka_topic, 0): 1}


# kafka-python 3.0, too, but it forgets the socket of a connection that is dropped as it joins, and
# pytest counts that against whatever test runs then.
JOINING_CLIENTS = ("confluent", "aiokafka")
JOINING = (
    {"api": "FindCoordinator", "error": "COORDINATOR_NOT_AVAILABLE"},
    {"api": "JoinGroup", "error": "NOT_COORDINATOR"},
    {"api": "JoinGroup", "drop": "before"},
    {"api": "SyncGroup", "error": "NOT_COORDINATOR"},
)


@pytest.mark.parametrize("client", JOINING_CLIENTS)
@pytest.mark.parametrize("rule", JOINING, ids=lambda rule: "-".join(map(str, rule.values())))
def test_a_consumer_joins_over_it(
    kafka: Broker,
    kafka_topic: str,
    open_client: Callable[[Client], Any],
    rule: dict[str, Any],
    client: str,
) -> None:
    kafka.produce(kafka_topic, b"1")
    with kafka.faults.add(**rule, times=1) as fault:
        member = open_client(READERS[client](kafka.bootstrap, kafka_topic, "g"))
        assert settle(member.read(1)) == "done"
        assert fault.hits == 1
    assert kafka.groups == {"g": "Stable"}


COMMITS = (
    {"error": "COORDINATOR_LOAD_IN_PROGRESS"},
    {"error": "NOT_COORDINATOR"},
    {"drop": "after"},
    {"error": "GROUP_AUTHORIZATION_FAILED"},
)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("rule", COMMITS, ids=lambda rule: "-".join(rule.values()))
def test_a_commit(
    kafka: Broker,
    kafka_topic: str,
    open_client: Callable[[Client], Any],
    rule: dict[str, str],
    client: str,
) -> None:
    error = rule.get("error", "")
    outcome = error if error == "GROUP_AUTHORIZATION_FAILED" else "done"
    kafka.produce(kafka_topic, b"1")
    member = open_client(READERS[client](kafka.bootstrap, kafka_topic, "g"))
    assert settle(member.read(1)) == "done"
    with kafka.faults.add("OffsetCommit", **rule, times=1) as fault:
        assert settle(member.commit()) == outcome
        assert fault.hits == 1
    assert kafka.committed("g") == ({(kafka_topic, 0): 1} if outcome == "done" else {})


# --- transactions -------------------------------------------------------------------------------

FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, -144}
"""librdkafka's code _FENCED, -144."""


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("api", ["EndTxn", "AddPartitionsToTxn"])
def test_a_producer_that_is_fenced_says_so_and_is_lost(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], api: str, client: str
) -> None:
    """The error is Kafka's code in the versions of these clients."""
    writer = open_client(WRITERS[client](kafka.bootstrap, "t"))
    writer.begin()
    code = 0
    with kafka.faults.add(api, error="INVALID_PRODUCER_EPOCH", times=1) as fault:
        try:
            writer.send(kafka_topic, b"1").result(DEADLINE_S)
            writer.commit().result(DEADLINE_S)
        except RefusedError as refused:
            code = refused.code
        assert fault.hits == 1
    assert code in FENCED
    assert kafka.records(kafka_topic, isolation="read_committed") == []


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "rule",
    [
        {"api": "EndTxn", "error": "COORDINATOR_NOT_AVAILABLE"},
        {"api": "EndTxn", "error": "NOT_COORDINATOR"},
        {"api": "EndTxn", "error": "CONCURRENT_TRANSACTIONS"},
        {"api": "EndTxn", "drop": "after"},
        {"api": "AddPartitionsToTxn", "error": "CONCURRENT_TRANSACTIONS"},
        {"api": "InitProducerId", "error": "COORDINATOR_LOAD_IN_PROGRESS"},
    ],
    ids=lambda rule: "-".join(map(str, rule.values())),
)
def test_a_transaction_is_committed_over_it(
    kafka: Broker,
    kafka_topic: str,
    open_client: Callable[[Client], Any],
    rule: dict[str, Any],
    client: str,
) -> None:
    with kafka.faults.add(**rule, times=2) as fault:
        writer = open_client(WRITERS[client](kafka.bootstrap, "t"))
        writer.begin()
        assert settle(writer.send(kafka_topic, b"1")) == "done"
        assert settle(writer.commit()) == "done"
        assert fault.hits == 2
    records = kafka.wait_for(kafka_topic, 1)
    assert [record.value for record in records] == [b"1"]
