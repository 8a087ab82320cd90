"""A start that waits for another machine: the log says so, and SIGTERM ends it at once."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG_MS = 600_000
"""Time for ZooKeeper to answer: longer than a test waits for the end of a process."""
WAIT_SECONDS = 60
STOP_SECONDS = 15
"""Less than the keys of tokens are waited for; a stop takes a tenth of a second."""


@pytest.fixture
def silent() -> Iterator[str]:
    """Yield the address of a server that takes connections and says nothing."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        yield f"127.0.0.1:{port}"


@pytest.fixture(params=["closed", "silent"])
def zookeeper(request: pytest.FixtureRequest) -> str:
    """Return an address where nobody answers: no server, or one that says nothing."""
    if request.param == "silent":
        address: str = request.getfixturevalue("silent")
        return address
    return f"127.0.0.1:{free_port()}"


def stop_at(line: str, settings: dict[str, str], directory: Path) -> None:
    """Start a broker, send SIGTERM when its log has the line, and check how it ends."""
    command = [sys.executable, "-m", "minibroker", "serve", "--data-dir", str(directory / "data")]
    for key, value in {"listeners": "PLAINTEXT://127.0.0.1:0", **settings}.items():
        command += ["--set", f"{key}={value}"]
    process = ManagedProcess(command, directory / "log")
    process.wait_until(lambda: line in process.log_tail(), WAIT_SECONDS, line)
    assert process.stop(STOP_SECONDS) == 0
    assert process.log_tail().endswith("minibroker: stopped before it was ready\n")


@pytest.mark.parametrize("broker_id", ["0", "-1"])
def test_a_start_that_waits_for_zookeeper(zookeeper: str, broker_id: str, tmp_path: Path) -> None:
    settings = {
        "zookeeper.connect": zookeeper,
        "zookeeper.connection.timeout.ms": str(LONG_MS),
        "broker.id": broker_id,
    }
    line = f"the start waits for ZooKeeper at {zookeeper}, {LONG_MS // 1000} s at most"
    stop_at(line, settings, tmp_path)


def test_a_start_that_waits_for_the_keys_of_tokens(silent: str, tmp_path: Path) -> None:
    url = f"http://{silent}/keys"
    prefix = "listener.name.sasl_plaintext.oauthbearer."
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        f"{prefix}sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        f"{prefix}sasl.oauthbearer.jwks.endpoint.url": url,
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": url,
    }
    stop_at(f"waiting for the keys of signed tokens at {url}, 20 s at most", settings, tmp_path)
