"""Lines as Prometheus' own parser reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from minibroker.broker.metrics import TimeSum
from minibroker.control.text_format import (
    counter,
    gauge,
    head,
    labels,
    metric_name,
    sample,
    summary,
)


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
    up, seen = text_string_to_metric_families(text)
    assert (up.name, up.type, up.documentation, up.samples[0].value) == ("up", "gauge", "1: up", 1)
    assert (seen.name, seen.type, seen.samples[0].name) == ("seen", "counter", "seen_total")


def test_a_summary_is_of_now() -> None:
    times = TimeSum()

    def shown() -> dict[str, float]:
        text = head("waited", "summary", "How long") + summary("waited", "Fetch", times)
        (family,) = text_string_to_metric_families(text)
        assert family.type == "summary"
        assert {sample.labels["request"] for sample in family.samples} == {"Fetch"}
        return {
            sample.labels.get("quantile", sample.name): sample.value for sample in family.samples
        }

    assert set(shown().values()) == {0}
    times.add(1500, 99)
    times.add(4000)
    expected = {"waited_count": 100, "waited_sum": 152.5, "0.5": 2.048, "0.99": 2.048, "0.999": 4}
    assert shown().items() >= expected.items()
    assert shown() == shown()
    times.add(1500)
    assert shown()["waited_count"] == 101
