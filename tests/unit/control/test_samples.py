"""The samples of each second, quotas, and the clock's next calls."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.control import samples
from minibroker.control.gauges import UNITS, Totals, row_of
from minibroker.rig import upcoming
from tests.support.event_stream import EventStreamReader
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control


@pytest.mark.kafka(topics=["orders"])
def test_samples_are_taken_while_a_stream_is_open(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "INTERVAL_S", 0.02)
    sampler = control.api.scope.samples
    assert not sampler.is_running
    settings = {"bootstrap.servers": control.broker.bootstrap, "log_level": 0}
    consumer = Consumer({**settings, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    number = control.ask("POST", "/faults", {"api": "Metadata", "delay_ms": 1})[1]["id"]
    with EventStreamReader(control.port, "/live/samples") as stream:
        history = stream.next("history")
        assert (history["names"], history["rows"]) == (list(UNITS), [])
        assert stream.next("sample")["lag"] == {"g": 0}
        for _ in range(3):
            control.broker.produce("orders", b"v")
        sample = next(event.data for event in stream.events() if event.data["lag"] == {"g": 3})
        assert len(sample["values"]) == len(UNITS)
        assert sample["faults"] == {str(number): sample["faults"][str(number)]}
        assert sample["members"] == {"g": 0}
        with EventStreamReader(control.port, "/live/samples") as second:
            assert len(second.next("history")["rows"]) >= 2
    wait_until(lambda: not sampler.is_running, "the last page is closed")
    assert not sampler.ring
    wait_until(lambda: control.api.scope.streams.count == 0, "the streams are over")
    consumer.close()


def test_a_row_has_the_rates_between_two_moments() -> None:
    nothing = Totals(10.0, {}, 0, 0, 0, 0, 0, 0, 0, 5.0, 0, 0.0, {}, {})
    later = Totals(
        at_s=12.0,
        requests={"Produce": (4, 8.0), "Fetch": (2, 1000.0), "Metadata": (4, 8.0)},
        bytes_in=200,
        bytes_out=400,
        end_offsets=20,
        log_bytes=7,
        connections=3,
        groups=2,
        open_transactions=1,
        cpu_s=6.0,
        memory_bytes=9,
        loop_delay_ms=0.5,
        lag={"a": 1, "b": 2},
        members={},
    )
    row = dict(zip(UNITS, row_of(nothing, later), strict=True))
    assert row == {
        "requests": 5.0,
        "produce_requests": 2.0,
        "fetch_requests": 1.0,
        "request_ms": 2.0,  # the long polls of Fetch are left out
        "produce_ms": 2.0,
        "bytes_in": 100.0,
        "bytes_out": 200.0,
        "records": 10.0,
        "log_bytes": 7.0,
        "connections": 3.0,
        "groups": 2.0,
        "open_transactions": 1.0,
        "lag": 3.0,
        "cpu": 50.0,
        "memory_bytes": 9.0,
        "loop_delay_ms": 0.5,
    }
    assert min(row_of(later, nothing)) >= 0  # a reset


# Quotas.


def test_quotas_are_set_and_removed(control: Control) -> None:
    change: dict[str, Any] = {"user": "alice", "client_id": "<default>"}
    quotas = {"producer_byte_rate": 1024.0, "request_percentage": 50.0}
    entity = {"user": "alice", "client_id": "<default>", "ip": None}
    assert control.ask("POST", "/quotas", {**change, "set": quotas}) == (
        200,
        [{**entity, "values": quotas}],
    )
    change |= {"remove": ["request_percentage"], "set": {"consumer_byte_rate": 1}}
    quotas = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 1.0}
    assert control.ask("POST", "/quotas", change) == (200, [{**entity, "values": quotas}])
    body = {"ip": "127.0.0.1", "set": {"connection_creation_rate": 5}}
    assert len(control.ask("POST", "/quotas", body)[1]) == 2
    for wrong in (
        {},
        {"user": "alice"},
        {"set": {"producer_byte_rate": 1}},
        {"user": "alice", "set": {"nonsense": 1}},
        {"user": "alice", "set": {"producer_byte_rate": 0}},
        {"user": "alice", "ip": "127.0.0.1", "set": {"producer_byte_rate": 1}},
        {"user": "a", "set": {"producer_byte_rate": 1}, "remove": ["producer_byte_rate"]},
    ):
        assert control.ask("POST", "/quotas", wrong)[0] in (400, 409)
    assert len(control.ask("GET", "/quotas")[1]) == 2


# The clock.


@pytest.mark.kafka(topics=["orders"])
def test_the_next_calls_of_the_clock_are_told_in_words(control: Control) -> None:
    settings = {"bootstrap.servers": control.broker.bootstrap, "log_level": 0}
    producer = Producer({**settings, "transactional.id": "tx"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"v")
    assert producer.flush(60) == 0
    consumer = Consumer(
        {**settings, "group.id": "g", "session.timeout.ms": 6000, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    while control.ask("GET", "/groups/g")[1].get("state") != "Stable":
        consumer.poll(0.05)
    status, calls = control.ask("GET", "/clock/timers?limit=50")
    assert status == 200
    assert [call["in_ms"] for call in calls] == sorted(call["in_ms"] for call in calls)
    texts = {call["text"]: call for call in calls}
    (session,) = [text for text in texts if text.startswith("group g, member ")]
    assert session.endswith(": the session ends")
    assert 0 < texts[session]["in_ms"] <= 6000
    assert 50_000 < texts["transaction tx times out"]["in_ms"] <= 60_000
    for text in texts:
        assert "." not in text.partition(" (")[0], f"{text}: a name, not words"
    old_time = control.ask("GET", "/clock")[1]
    moved = control.ask("POST", "/clock", {"seconds": 7})[1]
    assert moved["ahead_ms"] == old_time["ahead_ms"] + 7000
    later = control.ask("GET", "/clock/timers?limit=50")[1]
    assert session not in {call["text"] for call in later}
    consumer.close()
    producer.abort_transaction(60)


def test_the_words_of_the_clock_are_of_functions_that_exist() -> None:
    for name in upcoming.TEXTS:
        module, cls, function = name.rsplit(".", 2)
        owner = getattr(import_module(f"minibroker.broker.{module}"), cls)
        assert callable(getattr(owner, function)), name


@pytest.mark.kafka(topics=["orders"])
def test_many_calls_are_read_as_far_as_they_are_shown(kafka_broker: Broker) -> None:
    def upcoming_of_many() -> list[float]:
        timers = kafka_broker._node.app.timers
        calls = [timers.after(1_000_000 + number, lambda: None) for number in range(1000)]
        calls[0].cancel()
        deadlines = [timer.deadline_s for timer in timers.upcoming(900)]
        for timer in calls:
            timer.cancel()
        return deadlines

    deadlines = kafka_broker.call(upcoming_of_many)
    assert len(deadlines) == 900
    assert deadlines == sorted(deadlines)
