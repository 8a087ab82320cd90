"""The cluster of a plan."""

from __future__ import annotations

from minibroker.pipeline.kafka.cluster import Kafka


def test_committed_records_are_read_by_default() -> None:
    assert Kafka().options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.isolation.level": "read_committed",
    }
    told = Kafka("h:1", settings={"isolation.level": "read_uncommitted", "a": "b"})
    assert told.options()["kafka.isolation.level"] == "read_uncommitted"
    assert told.writer_options() == {"kafka.bootstrap.servers": "h:1", "kafka.a": "b"}
