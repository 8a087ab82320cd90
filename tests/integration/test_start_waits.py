"""A start that waits for ZooKeeper: the log says so, and SIGTERM ends it at once."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG_MS = 600_000
"""Time for ZooKeeper to answer: longer than a test waits for the end of a process."""
WAIT_SECONDS = 60


@pytest.fixture(params=["closed", "silent"])
def zookeeper(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield an address where nobody answers: no server, or one that says nothing."""
    port = free_port()
    with ExitStack() as stack:
        if request.param == "silent":
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        yield f"127.0.0.1:{port}"


@pytest.mark.parametrize("broker_id", ["0", "-1"])
def test_a_start_that_waits_says_for_what_and_hears_sigterm(
    zookeeper: str, broker_id: str, tmp_path: Path
) -> None:
    settings = {
        "zookeeper.connect": zookeeper,
        "zookeeper.connection.timeout.ms": str(LONG_MS),
        "broker.id": broker_id,
    }
    command = [sys.executable, "-m", "minibroker", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path / "data")]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    process = ManagedProcess(command, tmp_path / "log")
    process.wait_until(
        lambda: (
            f"the start waits for ZooKeeper at {zookeeper}, {LONG_MS // 1000} s at most"
            in process.log_tail()
        ),
        WAIT_SECONDS,
        "a line about ZooKeeper",
    )
    assert process.stop(WAIT_SECONDS) == 0
    assert process.log_tail().endswith("minibroker: stopped before it was ready\n")
