"""The output of `/metrics` for a broker with clients."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from minibroker.broker.metrics import TimeSum
from minibroker.control.families import (
    FRESH_S,
    ProcessMetrics,
    counter,
    families,
    gauge,
    head,
    labels,
    metric_name,
    sample,
    summary,
)

if TYPE_CHECKING:
    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control


def samples(text: bytes | bytearray) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """(Name, labels) → value. Every family comes once."""
    parsed_families = list(text_string_to_metric_families(text.decode()))
    names = [family.name for family in parsed_families]
    assert len(names) == len(set(names))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parsed_families
        for sample in family.samples
    }


def of(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def text_of(broker: Broker) -> bytes:
    """Return the output in one string."""
    return broker.call(lambda: "".join(families(broker._node.app))).encode()


@pytest.mark.kafka(topics=["orders:2"])
def test_requests_of_clients_are_counted(control: Control) -> None:
    settings = {"bootstrap.servers": control.broker.bootstrap, "log_level": 0}
    producer = Producer(settings)
    producer.produce("orders", b"value", partition=1)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 1, 1)], asynchronous=False)
    consumer.close()
    status, headers, text = control.raw("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    values = samples(text)
    requests = "kafka_network_requestmetrics"
    assert values[of(f"{requests}_requestspersec_total", request="Produce")] == 1
    assert values[of(f"{requests}_totaltimems_count", request="Produce")] == 1
    assert values[of(f"{requests}_totaltimems", request="Produce", quantile="0.99")] > 0
    place = {"topic": "orders", "partition": "1"}
    assert values[of("kafka_log_log_logendoffset", **place)] == 1
    assert values[of("kafka_log_log_size", **place)] > 0
    assert values[of("kafka_controller_kafkacontroller_activecontrollercount")] == 1
    assert values[of("minibroker_group_committed_offset", group="g", **place)] == 1
    assert values[of("kafka_coordinator_group_groupmetadatamanager_numgroups")] == 1
    assert values[of("minibroker_up")] == 1


def test_the_cleaner_is_shown_once_it_has_worked(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("table", config={"cleanup.policy": "compact"})
    kafka_broker.produce("table", b"v", key=b"k")
    kafka_broker.clock.advance(minutes=1)
    figures = samples(text_of(kafka_broker))
    assert of("kafka_log_logcleanermanager_max_dirty_percent") in figures
    aside = [name for name in figures if "uncleanable" in str(name)]
    assert [figures[name] for name in aside] == [0, 0]


def test_a_broker_that_compacts_nothing_shows_zeros(kafka_broker: Broker) -> None:
    figures = samples(text_of(kafka_broker))
    for name in ("max_clean_time_secs", "cleaner_recopy_percent", "deadthreadcount"):
        assert figures[of(f"kafka_log_logcleaner_{name}")] == 0
    assert sum("uncleanable_bytes" in str(name) for name in figures) == 1


def test_the_age_of_the_metadata_counts_from_the_last_request_of_a_controller(
    kafka_broker: Broker,
) -> None:
    old_values = samples(text_of(kafka_broker))
    assert old_values[of("minibroker_cluster_controller_epoch")] == 1
    age = of("minibroker_cluster_metadata_age_seconds")
    assert age not in old_values
    app = kafka_broker._node.app
    now_ms = kafka_broker.call(app.clock.now_ms)
    kafka_broker.call(lambda: setattr(app.cluster.requests, "updated_at_ms", now_ms - 5000))
    assert samples(text_of(kafka_broker))[age] >= 5


def test_a_killed_broker_says_that_it_is_down(control: Control) -> None:
    with control.broker.faults.add(broker="killed"):
        values = samples(control.raw("GET", "/metrics")[2])
    assert values[of("minibroker_up")] == 0
    assert not any(name.startswith("kafka_") for name, _ in values)


# Lines as Prometheus' own parser reads them.


def test_names_by_the_rule() -> None:
    kafka = ("kafka.network", "RequestMetrics", "TotalTimeMs")
    assert metric_name(*kafka) == "kafka_network_requestmetrics_totaltimems"
    assert metric_name("kafka.server", "socket-server-metrics") == (
        "kafka_server_socket_server_metrics"
    )


def test_names_are_escaped_as_prometheus_wants_it() -> None:
    group = 'a "b" \\ c\nd'
    text = sample("offset", 3, labels(group=group, topic="t"))
    assert text == 'offset{group="a \\"b\\" \\\\ c\\nd",topic="t"} 3.0\n'
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"group": group, "topic": "t"}


def test_families_of_one_sample() -> None:
    text = gauge("up", "1: up", value=True) + counter("seen", "So many", 2)
    up, seen_family = text_string_to_metric_families(text)
    assert (up.name, up.type, up.documentation, up.samples[0].value) == ("up", "gauge", "1: up", 1)
    assert (seen_family.name, seen_family.type, seen_family.samples[0].name) == (
        "seen",
        "counter",
        "seen_total",
    )


def test_a_summary_is_of_now() -> None:
    times = TimeSum()

    def values() -> dict[str, float]:
        text = head("waited", "summary", "How long") + summary("waited", "Fetch", times)
        (family,) = text_string_to_metric_families(text)
        assert family.type == "summary"
        assert {sample.labels["request"] for sample in family.samples} == {"Fetch"}
        return {
            sample.labels.get("quantile", sample.name): sample.value for sample in family.samples
        }

    assert set(values().values()) == {0}
    times.add(1500, 99)
    times.add(4000)
    expected = {"waited_count": 100, "waited_sum": 152.5, "0.5": 2.048, "0.99": 2.048, "0.999": 4}
    assert values().items() >= expected.items()
    assert values() == values()
    times.add(1500)
    assert values()["waited_count"] == 101


# Metrics of the process, and how often they are gathered.


async def test_the_process_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("minibroker.control.families.monotonic", lambda: now_s)
    looked = 0

    def counted(registry: CollectorRegistry) -> bytes:
        nonlocal looked
        looked += 1
        return generate_latest(registry)

    monkeypatch.setattr("minibroker.control.families.generate_latest", counted)
    metrics = ProcessMetrics()
    first = await metrics.text()
    now_s += FRESH_S - 0.001
    assert await metrics.text() == first
    assert looked == 1
    now_s += 0.001
    await metrics.text()
    assert looked == 2
    names = {family.name for family in text_string_to_metric_families(first)}
    assert {"process_cpu_seconds", "process_open_fds", "process_resident_memory_bytes"} <= names


async def test_the_loop_goes_on_while_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    has_gone_on, threads = threading.Event(), []

    def slow(_: object) -> bytes:
        threads.append(threading.current_thread())
        assert has_gone_on.wait(60)
        return b"text"

    monkeypatch.setattr("minibroker.control.families.generate_latest", slow)
    metrics = ProcessMetrics()
    asked_twice = asyncio.gather(metrics.text(), metrics.text())
    await asyncio.sleep(0)
    has_gone_on.set()
    assert await asked_twice == ["text", "text"]
    assert len(threads) == 1
    assert threads != [threading.current_thread()]
