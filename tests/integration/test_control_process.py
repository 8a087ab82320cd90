"""`minibroker serve --control` in use: a process, its ready file, HTTP and a client.

`tests/unit/control` tests the API in detail. Only a process shows the rest: the moment when it is
ready, and the metrics that a Prometheus reads.
"""

from __future__ import annotations

import json
import sys
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.clients import confluent_consume, confluent_produce, expected
from tests.support.probe import answers_metadata
from tests.support.processes import ManagedProcess, free_port
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WAIT_SECONDS = 180.0


class Served(NamedTuple):
    """A broker with its control API, on ports that are chosen before it starts."""

    process: ManagedProcess
    port: int
    control_port: int
    ready_file: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return status and text or JSON; status 0 while there is no answer."""
        connection = HTTPConnection("127.0.0.1", self.control_port, timeout=WAIT_SECONDS)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers or {})
            response = connection.getresponse()
            text = response.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()
        is_json = "json" in response.headers.get("Content-Type", "")
        return response.status, json.loads(text) if is_json else text

    def statuses_until_ready(self) -> list[int]:
        """Return the statuses of the health check from now on; the last one is 200."""
        statuses: list[int] = []

        def ask() -> bool:
            statuses.append(self.ask("GET", "/health/ready")[0])
            return statuses[-1] == 200

        self.process.wait_until(ask, WAIT_SECONDS, "/health/ready")
        return statuses

    def succeeds(self) -> bool:
        """Return whether a client works at the first try: brokers, a controller, a coordinator."""
        if not answers_metadata("127.0.0.1", self.port):
            return False
        with WireClient("127.0.0.1", self.port) as client:
            answer = client.call("find_coordinator", 0, key="a-group")
        return bool(answer["error_code"] == 0)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Yield a function that starts `serve --control` on one data directory, without waiting."""
    processes: list[ManagedProcess] = []

    def serve(*words: str) -> Served:
        port, control_port = free_port(), free_port()
        command = [sys.executable, "-m", "minibroker", "serve", "--topic", "orders"]
        command += ["--listen", f"127.0.0.1:{port}", "--data-dir", str(tmp_path / "data")]
        command += ["--control", f"127.0.0.1:{control_port}"]
        ready_file = tmp_path / f"ready-{port}"
        command += ["--ready-file", str(ready_file), *words]
        processes.append(ManagedProcess(command, tmp_path / f"{port}.log"))
        return Served(processes[-1], port, control_port, ready_file)

    yield serve
    for process in processes:
        process.stop()


def test_ready_is_when_a_client_succeeds(serve: Callable[..., Served]) -> None:
    first = serve()
    assert set(first.statuses_until_ready()) <= {0, 503, 200}
    assert first.succeeds()
    confluent_produce(first.address, "orders", "none", "order", 20)
    assert first.process.stop() == 0
    assert first.ask("GET", "/health/ready")[0] == 0
    # With a group's offsets and records to load, it is the same.
    again = serve()
    assert set(again.statuses_until_ready()) <= {0, 503, 200}
    assert again.succeeds()
    assert sorted(confluent_consume(again.address, "orders", 20)) == sorted(expected("order", 20))


def test_a_killed_broker_is_live_and_not_ready_until_it_is_back(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    served.statuses_until_ready()
    status, fault = served.ask("POST", "/faults", {"broker": "killed"})
    assert status in (200, 201)
    status, answer = served.ask("GET", "/health/ready")
    assert (status, served.ask("GET", "/health/live")[0]) == (503, 200)
    assert "killed by a fault" in json.dumps(answer)
    assert not served.succeeds()
    assert served.ask("DELETE", f"/faults/{fault['id']}")[0] in (200, 204)
    served.statuses_until_ready()
    assert served.succeeds()


def test_prometheus_reads_the_counters(serve: Callable[..., Served]) -> None:
    served = serve()
    served.statuses_until_ready()
    confluent_produce(served.address, "orders", "none", "order", 20)
    status, text = served.ask("GET", "/metrics")
    assert status == 200
    samples = {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["minibroker_up", ()] == 1
    produced = samples[
        "kafka_network_requestmetrics_requestspersec_total", (("request", "Produce"),)
    ]
    assert 1 <= produced <= 20
    end = ("kafka_log_log_logendoffset", (("partition", "0"), ("topic", "orders")))
    value_of = {(name, tuple(sorted(labels))): value for (name, labels), value in samples.items()}
    assert value_of[end] == 20


def test_the_ready_file_says_where_both_listen(serve: Callable[..., Served]) -> None:
    served = serve()
    served.process.wait_until(
        lambda: served.ready_file.exists() and served.ready_file.read_text().count("\n") == 2,
        WAIT_SECONDS,
        "the ready file",
    )
    assert served.ready_file.read_text() == (
        f"minibroker listening on {served.address}\n"
        f"minibroker control on http://127.0.0.1:{served.control_port}\n"
    )
    assert served.succeeds()


def test_the_console_reads_only_and_shows_the_registry(serve: Callable[..., Served]) -> None:
    served = serve("--registry", "127.0.0.1:0", "--console-read-only")
    assert served.statuses_until_ready()[-1] == 200
    page = {"Origin": f"http://127.0.0.1:{served.control_port}", "Sec-Fetch-Site": "same-origin"}
    assert served.ask("GET", "/registry/subjects", headers=page) == (200, [])
    _, views = served.ask("GET", "/views", headers=page)
    assert ("schemas" in views["views"], views["may_write"]) == (True, False)
    assert served.ask("POST", "/topics", {"name": "by-the-page"}, page)[0] == 403
    assert served.ask("POST", "/topics", {"name": "by-a-program"})[0] == 201
    status, text = served.ask("GET", "/", headers={**page, "Accept": "text/html"})
    assert (status, text.lower().startswith("<!doctype html>")) == (200, True)
    foreign = {**page, "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert served.ask("GET", "/topics", headers=foreign)[0] == 403
