"""The outbox's tests: Django's test database and a broker, both clean for every test."""

import pytest
from django.core.management import call_command
from django.db import transaction
from shop.models import Order, OutboxRecord, place_order
from shop.relay import make_producer, relay_batch

pytestmark = pytest.mark.django_db


@pytest.fixture
def producer(kafka):
    return make_producer(kafka.bootstrap, **{"retry.backoff.ms": 10, "log_level": 0})


def totals(kafka):
    return [record.json()["total"] for record in kafka.records("orders")]


def test_an_order_is_in_kafka_after_the_command(kafka, settings, capsys):
    settings.KAFKA_BOOTSTRAP_SERVERS = kafka.bootstrap
    order = place_order("alice", 7)
    call_command("relay_outbox")
    (record,) = kafka.records("orders")
    assert (record.key, record.json()["id"]) == (b"alice", order.pk)
    assert capsys.readouterr().out == "1 records written\n"
    assert not OutboxRecord.objects.exists()


@transaction.atomic
def place_order_without_payment():
    place_order("alice", 7)
    raise RuntimeError("the payment was refused")


def test_an_order_that_is_rolled_back_is_not_in_kafka(kafka, producer):
    with pytest.raises(RuntimeError):
        place_order_without_payment()
    assert (relay_batch(producer), Order.objects.count()) == (0, 0)
    assert kafka.records("orders") == []


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "NOT_LEADER_OR_FOLLOWER"},
        {"error": "REQUEST_TIMED_OUT"},
        {"drop": "before"},
        {"drop": "after"},
    ],
    ids=str,
)
def test_orders_are_written_once_and_in_order(kafka, producer, fault):
    for total in range(5):
        place_order("alice", total)
    with kafka.faults.add("Produce", times=2, **fault):
        assert relay_batch(producer) == 5
    assert totals(kafka) == [0, 1, 2, 3, 4]


def test_a_relay_that_dies_writes_its_records_again_with_the_same_ids(kafka, producer, monkeypatch):
    place_order("alice", 7)
    with monkeypatch.context() as patch:
        patch.setattr(OutboxRecord.objects.all().__class__, "delete", _die)
        with pytest.raises(SystemExit):
            relay_batch(producer)
    relay_batch(producer)
    first, second = kafka.records("orders")
    assert first.header("event-id") == second.header("event-id")


def _die(_):
    raise SystemExit


def test_a_record_that_kafka_refuses_keeps_those_behind_it_in_the_outbox(kafka, producer):
    place_order("alice", 1)
    OutboxRecord.objects.create(topic="no such topic", key="alice", value={})
    place_order("alice", 2)
    assert relay_batch(producer) == 1
    assert [record.value.get("total") for record in OutboxRecord.objects.all()] == [None, 2]
