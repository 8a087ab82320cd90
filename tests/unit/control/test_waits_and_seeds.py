"""Waits for consumers, and seeds, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

if TYPE_CHECKING:
    from tests.unit.control.conftest import Control

SEED = b"""{"create": "orders", "partitions": 2}
{"topic": "orders", "partition": 1, "key": "k", "value": "v", "timestamp": "-1h"}
{"group": "g", "topic": "orders", "partition": 1, "offset": 1}
"""
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.mark.kafka(topics=["orders"])
def test_a_group_that_is_ready_and_has_read(control: Control) -> None:
    settings = {
        "bootstrap.servers": control.broker.bootstrap,
        "group.id": "a/b",
        "client.id": "mine",
        "log_level": 0,
    }
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    with ThreadPoolExecutor(1) as thread:
        ready = "/groups/a%2Fb/ready?members=1&timeout_ms=30000"
        waiting = thread.submit(control.ask, "GET", ready)
        while not waiting.done():
            assert consumer.poll(0.05) is None
    status, members = waiting.result()
    assert status == 200
    (member,) = members
    assert (member["client_id"], member["partitions"]) == (
        "mine",
        [{"topic": "orders", "partition": 0}],
    )
    status, places = control.ask("GET", "/topics/orders/consumer?client_id=mine&partition=0")
    assert (status, [place["topic"] for place in places]) == (200, ["orders"])
    control.broker.produce("orders", b"v")
    assert consumer.poll(30) is not None
    status, sentence = control.ask("GET", "/groups/a%2Fb/read?timeout_ms=0")
    assert status == 504
    assert "group 'a/b' has read everything" in sentence["error"]
    consumer.commit(asynchronous=False)
    committed = [{"topic": "orders", "partition": 0, "offset": 1}]
    assert control.ask("GET", "/groups/a%2Fb/read") == (200, committed)
    consumer.close()


@pytest.mark.parametrize(
    ("path", "status", "subject"),
    [
        ("/groups/g/ready?timeout_ms=0", 504, "there is no such group"),
        ("/groups/g/ready?members=0", 400, "query 'members' is '0'"),
        ("/groups/g/read?timeout_ms=60001", 400, "up to 60000"),
        ("/groups/g/read?fetched=perhaps", 400, "true or false"),
        ("/topics/none/consumer?timeout_ms=0", 504, "topic 'none'"),
    ],
)
def test_waits_that_fail(control: Control, path: str, status: int, subject: str) -> None:
    answered, sentence = control.ask("GET", path)
    assert (answered, subject in sentence["error"]) == (status, True), sentence


def test_a_seed(control: Control) -> None:
    assert control.ask("POST", "/seeds", SEED, LINES) == (
        200,
        {"topics": ["orders"], "records": {"orders": 1}, "groups": ["g"]},
    )
    (record,) = control.broker.records("orders")
    assert (record.partition, record.key, record.value) == (1, b"k", b"v")
    yaml = {"Content-Type": "application/yaml; charset=utf-8"}
    body = b"topics:\n  more: {partitions: 3}\n"
    settings = {"bootstrap.servers": control.broker.bootstrap, "group.id": "g", "log_level": 0}
    consumer = Consumer(settings)
    (committed,) = consumer.committed([TopicPartition("orders", 1)], 30)
    assert committed.offset == 1
    consumer.close()
    assert control.ask("POST", "/seeds", b'{"creat": "x"}', LINES)[0] == 400
    status, sentence = control.ask("POST", "/seeds", body, {"Content-Type": "text/html"})
    assert (status, sentence["error"]) == (
        415,
        "Content-Type is text/html, expected application/x-ndjson or application/yaml",
    )
    assert control.ask("POST", "/seeds", body, yaml)[1]["topics"] == ["more"]
