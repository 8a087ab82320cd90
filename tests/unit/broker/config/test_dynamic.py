"""Run-time values over static ones: precedence, who is told, and values that cannot be."""

from __future__ import annotations

import logging

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig


class Listener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.news: list[object] = []

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        self.news.append((config.num_partitions, set(changed)))

    def on_topic_config(self, topic: str | None) -> None:
        self.news.append(topic)


def make(settings: dict[str, str] | None = None) -> tuple[DynamicConfig, Listener]:
    dynamic, listener = DynamicConfig(BrokerConfig(settings)), Listener()
    dynamic.subscribe(listener)
    return dynamic, listener


def test_per_broker_is_stronger_than_cluster_wide_is_stronger_than_static() -> None:
    dynamic, _ = make({"log.segment.bytes": "1000"})
    assert dynamic.topic("t").segment_bytes == 1000
    dynamic.set_cluster_default({"log.segment.bytes": "2000"})
    assert dynamic.topic("t").segment_bytes == 2000
    dynamic.set_broker({"log.segment.bytes": "3000"})
    assert dynamic.topic("t").segment_bytes == 3000
    dynamic.set_topic("t", {"segment.bytes": "4000"})
    assert dynamic.topic("t").segment_bytes == 4000
    assert dynamic.topic("other").segment_bytes == 3000
    dynamic.set_topic("t", {})
    dynamic.set_broker({})
    dynamic.set_cluster_default({})
    assert dynamic.topic("t").segment_bytes == 1000
    assert dynamic.static.originals == {"log.segment.bytes": "1000"}


def test_topics_are_resolved_once_and_share_what_they_do_not_set() -> None:
    dynamic, _ = make()
    assert dynamic.topic("a") is dynamic.topic("b")
    dynamic.set_topic("a", {"retention.ms": "5"})
    first = dynamic.topic("a")
    assert dynamic.topic("a") is first
    dynamic.set_topic("c", {"retention.ms": "5"})
    assert dynamic.topic("c") is first
    dynamic.set_cluster_default({"log.retention.ms": "9"})
    assert dynamic.topic("a").retention_ms == 5
    assert dynamic.topic("b").retention_ms == 9


def test_listeners_hear_of_what_changed_and_of_nothing_else() -> None:
    dynamic, listener = make()
    dynamic.set_topic("t", {"retention.ms": "5"})
    dynamic.set_topic("t", {"retention.ms": "5"})
    dynamic.set_broker({"max.connections": "7"})
    dynamic.set_broker({"max.connections": "7"})
    dynamic.set_cluster_default({"log.segment.bytes": "2000"})
    dynamic.set_topic("t", {})
    dynamic.set_topic("t", {})
    assert listener.news == ["t", (1, {"max.connections"}), (1, {"log.segment.bytes"}), None, "t"]
    assert dynamic.broker.max_connections == 7


def test_a_value_that_cannot_be_leaves_the_old_ones_in_force(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Like in Kafka, a bad value in the tree does not stop the broker."""
    dynamic, listener = make()
    with caplog.at_level(logging.ERROR):
        dynamic.set_broker({"log.segment.bytes": "none"})
        dynamic.set_topic("t", {"retention.ms": "none"})
        assert dynamic.topic("t") is dynamic.topic_default
    assert dynamic.broker is dynamic.static
    assert listener.news == ["t"]
    assert "Invalid value none for configuration log.segment.bytes" in caplog.text
    assert "topic t" in caplog.text


def test_the_memory_of_shared_values_is_bounded() -> None:
    dynamic, _ = make()
    for number in range(600):
        dynamic.set_topic("t", {"retention.ms": str(number)})
        assert dynamic.topic("t").retention_ms == number
    assert len(dynamic._shared) <= 256
