"""Questions before Spark starts; brokers are in tests/pipeline."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from minibroker.client import admin
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.cluster import Kafka


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the waits between questions; the clock moves by them alone, a second at least."""
    now_s, waited = [1_000.0], []

    class Waiting:
        def wait(self, pause_s: float) -> None:
            now_s[0] += max(1.0, pause_s)
            waited.append(pause_s)

    monkeypatch.setattr(preflight.threading, "Event", Waiting)
    monkeypatch.setattr(preflight.time, "monotonic", lambda: now_s[0])
    return waited


@pytest.mark.parametrize(
    ("error", "count", "sentence"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no name"), 0, "no broker answers .*no name.*--boots"),
        (ssl.SSLError("no trust"), 0, "do not agree .*no trust.*see --kafka and --kafka-config"),
        (BrokerRefusedError("not you"), 0, "do not agree .*not you"),
        (ConfigError("no key"), 0, "do not agree .*no key"),
        (ConnectionResetError("gone"), 15, "start one .*or give what its TLS and logins need"),
        (TimeoutError("silent"), 15, "start one .*what its TLS"),
        (ConnectionRefusedError("nobody"), 3, "start one .*what its TLS"),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0, "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_a_reason_that_waiting_cannot_mend_is_said_at_once(
    error: Exception, count: int, sentence: str, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(admin, "describe", fail)
    with pytest.raises(PipelineError, match=sentence):
        preflight.ask(Kafka("nobody:9092"))
    assert len(waits) == count


@pytest.mark.parametrize(
    "name", ["socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"]
)
def test_a_setting_asks_for_more_time_where_nobody_listens(name: str, waits: list[float]) -> None:
    with pytest.raises(PipelineError, match="Connection refused"):
        preflight.ask(Kafka("127.0.0.1:1", settings={name: "3001"}))
    assert len(waits) == 15


def test_a_server_that_accepts_is_waited_for_beside_one_that_refuses(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        slow = f"127.0.0.1:{listening.getsockname()[1]}"
        kafka = Kafka(f"{slow},127.0.0.1:1", settings={"request.timeout.ms": "10"})
        with pytest.raises(PipelineError, match="timed out"):
            preflight.ask(kafka)
    assert len(waits) == 15


def test_a_topic_that_is_not_there_may_be_a_directory() -> None:
    topics_of_cluster = preflight.ClusterTopics("cluster", {"orders": 1})
    preflight.check_target_exists(topics_of_cluster, "orders")
    with pytest.raises(PipelineError, match=r"no topic 'out': create it, or write \./out for a"):
        preflight.check_target_exists(topics_of_cluster, "out")
