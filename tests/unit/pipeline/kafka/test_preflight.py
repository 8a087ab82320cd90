"""Questions before Spark starts; brokers are in tests/pipeline."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.cluster import Kafka


class Unanswered(preflight.Admin):
    """A client whose connections fail for one reason; it keeps how long it was to wait."""

    def __init__(self, code: int) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
        self._code = code
        self.waits: list[float] = []

    def poll(self, *_: Any) -> int:
        return 0  # of its real connection nothing is told

    def list_topics(self, *_: Any, timeout: float, **__: Any) -> Any:
        self.waits.append(timeout)
        self.last_error = KafkaError(self._code, "the reason")
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@pytest.mark.parametrize(
    ("code", "waits", "sentence"),
    [
        (KafkaError._RESOLVE, [3], "no broker answers at nobody:9092 .*the reason.*--bootstrap"),
        (KafkaError._SSL, [3], "do not agree .*the reason.*see --kafka and --kafka-config"),
        (KafkaError._AUTHENTICATION, [3], "do not agree"),
        (KafkaError._TRANSPORT, [3, 12], "start one .*or give what its TLS and logins need"),
    ],
)
def test_a_reason_that_waiting_cannot_mend_is_said_at_once(
    code: int, waits: list[float], sentence: str
) -> None:
    admin = Unanswered(code)
    with pytest.raises(PipelineError, match=sentence):
        preflight.ask(Kafka("nobody:9092"), admin)
    assert admin.waits == waits


def test_a_port_where_nobody_listens_is_said_as_soon() -> None:
    """A setting asks for more time, or one of the servers takes connections: it is waited for."""
    waits = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        slow = f"127.0.0.1:{listening.getsockname()[1]}"
        for servers, settings in (
            ("127.0.0.1:1,localhost:1", {}),
            ("127.0.0.1:1", {"socket.connection.setup.timeout.max.ms": "3001"}),
            (f"127.0.0.1:1,{slow}", {}),
        ):
            admin = Unanswered(KafkaError._TRANSPORT)
            with pytest.raises(PipelineError, match=r"start one .*what its TLS and logins"):
                preflight.ask(Kafka(servers, settings=settings), admin)
            waits.append(admin.waits)
    assert waits == [[3], [3, 12], [3, 12]]


def test_a_name_with_an_address_that_is_slow_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One address refuses; at the other one the queue of connections is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        slow = full.getsockname()
        for _ in range(4):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(slow)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", at) for at in (("127.0.0.1", 1), slow)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
        admin = Unanswered(KafkaError._TRANSPORT)
        with pytest.raises(PipelineError):
            preflight.ask(Kafka("two.addresses:9092"), admin)
        assert admin.waits == [3, 12]


def test_a_topic_that_is_not_there_may_be_a_directory() -> None:
    there = preflight.ClusterTopics("cluster", {"orders": 1})
    preflight.check_target_exists(there, "orders")
    with pytest.raises(PipelineError, match=r"no topic 'out': create it, or write \./out for a"):
        preflight.check_target_exists(there, "out")
