"""Transactions over HTTP: open ones, those that hang, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer

from minibroker.broker.partitions.partition import ACKS_ALL
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.rig.inspector import _Claim
from minibroker.testing import Cluster
from tests.unit.control.conftest import serve_of

if TYPE_CHECKING:
    from minibroker.rig.node import Node
    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control

HANGING = 77
"""A producer id that no coordinator gave out."""


def open_transaction(bootstrap: str, transactional_id: str = "tx") -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "log_level": 0,
            "retry.backoff.ms": 10,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"v", partition=0)
    assert producer.flush(60) == 0
    return producer


def hang_transaction(broker: Broker) -> None:
    """Append a transactional batch behind the coordinator's back, as KAFKA-14402 tells."""

    async def append(node: Node) -> None:
        record = Record(0, node.clock.now_ms(), b"k", b"v", ())
        batch = build_batch(
            [record], producer_id=HANGING, producer_epoch=3, base_sequence=0, is_transactional=True
        )
        partitions = node.app.partitions
        partition = partitions.get("orders", 0)
        partition.append(memoryview(batch), ACKS_ALL, node.clock.now_ms(), _Claim())
        partitions.commit()

    broker.await_node(append)


@pytest.mark.kafka(topics=["orders"])
def test_an_open_transaction_is_listed_and_aborted(control: Control) -> None:
    producer = open_transaction(control.broker.bootstrap)
    status, view = control.ask("GET", "/transactions")
    (transaction,) = view["transactions"]
    assert (status, view["hanging"], view["knows_all"], view["cut"]) == (200, [], True, False)
    assert (transaction["transactional_id"], transaction["state"]) == ("tx", "Ongoing")
    assert (transaction["is_open"], transaction["timeout_ms"]) == (True, 60_000)
    assert transaction["partitions"] == [{"topic": "orders", "partition": 0}]
    assert 0 <= transaction["age_ms"] < 60_000
    body = {"transactional_id": "tx"}
    assert control.ask("POST", "/transactions/abort", body) == (200, {"aborted": True})
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    (transaction,) = control.ask("GET", "/transactions")[1]["transactions"]
    assert (transaction["state"], transaction["is_open"]) == ("CompleteAbort", False)
    assert control.ask("GET", "/transactions?only_open=true")[1]["transactions"] == []
    status, answer = control.ask("POST", "/transactions/abort", body)
    assert status == 409
    assert "has no open transaction" in answer["error"]


@pytest.mark.kafka(topics=["orders"])
def test_a_transaction_that_hangs_is_shown_and_aborted(control: Control) -> None:
    producer = open_transaction(control.broker.bootstrap)
    hang_transaction(control.broker)
    view = control.ask("GET", "/transactions")[1]
    (hanging,) = view["hanging"]  # not that of the producer, which its coordinator knows
    assert (hanging["producer_id"], hanging["producer_epoch"]) == (HANGING, 3)
    assert (hanging["topic"], hanging["partition"], hanging["start_offset"]) == ("orders", 0, 1)
    producers = control.ask("GET", "/topics/orders/producers?partition=0")[1]
    assert [each["transaction_start_offset"] for each in producers] == [0, 1]
    place = {"topic": "orders", "partition": 0, "producer_id": HANGING}
    assert control.ask("POST", "/transactions/abort", place)[0] == 200
    assert control.ask("GET", "/transactions")[1]["hanging"] == []
    assert control.ask("POST", "/transactions/abort", place)[0] == 404
    own = {**place, "producer_id": producers[0]["producer_id"]}
    assert control.ask("POST", "/transactions/abort", own)[0] == 404  # it does not hang
    producer.commit_transaction(60)
    partition = control.ask("GET", "/topics/orders")[1]["partitions"][0]
    assert partition["last_stable_offset"] == partition["log_end_offset"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"transactional_id": "tx", "topic": "orders"}, 400),
        ({"topic": "orders", "partition": 0}, 400),
        ({"transactional_id": "nobody"}, 404),
        ({"topic": "orders", "partition": 0, "producer_id": 1}, 404),
    ],
)
def test_an_abort_that_cannot_be_is_refused(
    control: Control, body: dict[str, Any], status: int
) -> None:
    assert control.ask("POST", "/transactions/abort", body)[0] == status


@pytest.mark.kafka(topics=["orders"])
def test_more_transactions_than_asked_for_are_cut(control: Control) -> None:
    producers = [open_transaction(control.broker.bootstrap, f"tx{n}") for n in range(3)]
    view = control.ask("GET", "/transactions?limit=2")[1]
    ids = [transaction["transactional_id"] for transaction in view["transactions"]]
    assert (ids, view["cut"]) == (["tx0", "tx1"], True)
    for producer in producers:
        producer.abort_transaction(60)


def test_transactions_of_all_brokers_of_the_process_are_listed() -> None:
    with Cluster(3, topics=["orders:3"]) as cluster:
        producer = open_transaction(cluster.bootstrap)
        coordinators = set()
        for number in range(3):
            with serve_of(cluster, number) as control:
                (transaction,) = control.ask("GET", "/transactions")[1]["transactions"]
                coordinators.add(transaction["broker_id"])
        assert len(coordinators) == 1
        with serve_of(cluster, (coordinators.pop() + 1) % 3) as control:
            body = {"transactional_id": "tx"}
            assert control.ask("POST", "/transactions/abort", body)[0] == 200
        with pytest.raises(KafkaException):
            producer.commit_transaction(60)
