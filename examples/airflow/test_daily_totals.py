"""The DAG's tests: Airflow runs it as a whole, on its own database and a broker."""

import json

import pytest
from airflow.utils.db import initdb
from daily_totals import dag


@pytest.fixture(scope="session", autouse=True)
def _database():
    initdb()


@pytest.fixture
def run(kafka, monkeypatch):
    """Return a function that runs the DAG once and returns the state of its run."""
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "daily-totals",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "retry.backoff.ms": 20,
    }
    connection = {"conn_type": "kafka", "extra": settings}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    return lambda: dag.test().state


def order(kafka, customer, total):
    kafka.produce("orders", {"customer": customer, "total": total})


def totals(kafka):
    return [(record.key, record.json()["total"]) for record in kafka.records("totals")]


def test_each_customer_has_a_total(kafka, run):
    for customer, total in (("alice", 3), ("bob", 5), ("alice", 4)):
        order(kafka, customer, total)
    assert run() == "success"
    assert totals(kafka) == [(b"alice", 7), (b"bob", 5)]


def test_a_second_run_reads_only_new_orders_though_requests_fail(kafka, run):
    order(kafka, "alice", 3)
    run()
    order(kafka, "alice", 4)
    with kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="totals", times=2):
        assert run() == "success"
    assert totals(kafka) == [(b"alice", 3), (b"alice", 4)]
