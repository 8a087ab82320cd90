"""Lag for Prometheus, over HTTP, read by its own parser."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag
from minibroker.pipeline.verbs.lag.metrics import LagMetrics, serve
from minibroker.pipeline.verbs.lag.text import Look

LABELS = ("consumergroup", "topic", "partition")


def scraped(url: str) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return {
        (
            sample.name,
            *(sample.labels[name] for name in LABELS if name in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_has_the_last_look() -> None:
    metrics = LagMetrics()
    url = serve(metrics, "127.0.0.1:0")
    assert scraped(url) == {("kafka_consumergroup_up",): 0}
    part = PartitionLag("orders", 2, 40, 100)
    metrics.look = Look(5000, [ReaderLag('a"b', "stable", (part,))], {part: 2000})
    assert scraped(url) == {
        ("kafka_consumergroup_up",): 1,
        ("kafka_consumergroup_lag", 'a"b', "orders", "2"): 60,
        ("kafka_consumergroup_current_offset", 'a"b', "orders", "2"): 40,
        ("kafka_consumergroup_oldest_unread_seconds", 'a"b', "orders", "2"): 3,
        ("kafka_topic_partition_current_offset", "orders", "2"): 100,
    }


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(PipelineError, match=f"cannot be served at 127.0.0.1:{port}: .* choose"):
            serve(LagMetrics(), f"127.0.0.1:{port}")
