"""docs/how-to/proxy.md: its command runs, and so does its example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.testing import Broker
from tests.support import readme

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = readme.ROOT / "docs" / "how-to" / "proxy.md"
READY = re.compile(r"minibroker proxy listening on (127\.0\.0\.1:\d+), to (127\.0\.0\.1:\d+)\n")


@pytest.fixture
def process() -> Iterator[tuple[Broker, subprocess.Popen[str]]]:
    """Yield a broker, and the page's command before it, at a free port."""
    (command,) = readme.commands(readme.blocks([PAGE]))
    with Broker(topics=["orders"]) as broker:
        words = command.replace("127.0.0.1:9092", broker.bootstrap).replace(":9192", ":0").split()
        running = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        try:
            yield broker, running
        finally:
            running.kill()
            running.communicate()


def test_the_command_shows_requests_and_ends_by_a_signal(
    process: tuple[Broker, subprocess.Popen[str]],
) -> None:
    broker, running = process
    assert running.stdout is not None
    ready = READY.fullmatch(running.stdout.readline())
    assert ready is not None
    assert ready[2] == broker.bootstrap
    producer = Producer({"bootstrap.servers": ready[1], "client.id": "shop"})
    producer.produce("orders", b"an order")
    assert producer.flush(20) == 0
    running.terminate()
    lines, errors = running.communicate(timeout=20)
    assert running.returncode == 0
    assert errors == ""
    produced = [line for line in lines.splitlines() if " Produce v" in line]
    assert len(produced) == 1
    assert re.search(r" shop → 127\.0\.0\.1:\d+: orders-0 1 record .* ok, ", produced[0])


def test_the_example_runs() -> None:
    (example,) = (block.text for block in readme.blocks([PAGE]) if block.language == "python")
    exec(compile(example, str(PAGE), "exec"), {})


def test_a_port_that_is_taken_is_a_sentence(
    process: tuple[Broker, subprocess.Popen[str]],
) -> None:
    broker, running = process
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "minibroker", "proxy"),
            *("--to", broker.bootstrap, "--listen", broker.bootstrap),
        ],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"minibroker proxy: --listen {broker.bootstrap}: cannot listen")
    assert running.poll() is None
