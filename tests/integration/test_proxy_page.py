"""docs/how-to/proxy.md: its commands run, and so does its example."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from minibroker.testing import Broker
from tests.support import readme
from tests.support.dialogues import RawClient
from tests.support.event_stream import EventStreamReader

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = Path("/dev/full")
"""A file whose disk is full."""
PAGE = readme.ROOT / "docs" / "how-to" / "proxy.md"
READY = re.compile(r"minibroker proxy listening on (127\.0\.0\.1:\d+), to (127\.0\.0\.1:\d+)\n")


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Yield a broker."""
    with Broker(topics=["orders"]) as broker:
        yield broker


@contextmanager
def running(
    command: str, broker: Broker, *more: str, errors: IO[str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command of the page before the broker, at free ports. `errors`: for standard error."""
    command = command.replace("127.0.0.1:9092", broker.bootstrap)
    words = re.sub(r":(9192|9193)", ":0", command).split()
    process = subprocess.Popen(
        [sys.executable, "-m", *words, *more],
        stdout=subprocess.PIPE,
        stderr=errors or subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str], broker: Broker) -> str:
    """Return the address of a proxy that has started."""
    assert process.stdout is not None
    match = READY.fullmatch(process.stdout.readline())
    assert match is not None
    assert match[2] == broker.bootstrap
    return match[1]


def produce(address: str) -> None:
    """Produce one record."""
    producer = Producer({"bootstrap.servers": address, "client.id": "shop"})
    producer.produce("orders", b"an order")
    assert producer.flush(20) == 0


def commands(section: str) -> list[str]:
    """Return the commands of a section."""
    return readme.commands(block for block in readme.blocks([PAGE]) if block.section == section)


def test_the_command_shows_requests_and_ends_by_a_signal(broker: Broker) -> None:
    (command,) = commands("A proxy before any Kafka")
    with running(command, broker) as process:
        produce(ready(process, broker))
        process.terminate()
        lines, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == ""
    produced = [line for line in lines.splitlines() if " Produce v" in line]
    assert len(produced) == 1
    assert re.search(r" shop → 127\.0\.0\.1:\d+: orders-0 1 record .* ok, ", produced[0])


def test_a_recording_is_shown_again(broker: Broker, tmp_path: Path) -> None:
    (command,) = commands("A proxy before any Kafka")
    file = tmp_path / "dialogue.jsonl"
    page = tmp_path / "conversation.html"
    options = ("--record", str(file), "--api", "Produce,Metadata", "--full", f"--html={page}")
    with running(command, broker, *options) as process:
        produce(ready(process, broker))
        process.terminate()
        output, _ = process.communicate(timeout=20)
    assert "ApiVersions" not in output
    assert "topicData:" in output
    assert "Conversation through the proxy" in page.read_text()
    assert "orders-0 1 record" in page.read_text()
    dialogue = subprocess.run(
        [sys.executable, "-m", "minibroker", "trace", "--dialogue", str(file), "--api", "Produce"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r" Produce v\d+ shop → .*: orders-0 1 record .* ok, ", dialogue.stdout)


@pytest.mark.skipif(not FULL.exists(), reason="not run: no /dev/full here")
def test_clients_are_served_on_where_nothing_can_be_written(broker: Broker) -> None:
    (command,) = commands("A proxy before any Kafka")
    with (
        FULL.open("w") as full,
        running(command, broker, "--record", str(FULL), errors=full) as process,
    ):
        address = ready(process, broker)
        produce(address)
        produce(address)
        process.terminate()
        lines, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert len([line for line in lines.splitlines() if " Produce v" in line]) == 2


def test_faults_are_added_over_http(broker: Broker) -> None:
    command, *calls = commands("Faults of a proxy over HTTP")
    with running(command, broker) as process:
        address = ready(process, broker)
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        outputs = []
        for call in calls:
            words = shlex.split(call.replace("http://127.0.0.1:9193", url))
            outputs.append(subprocess.run(words, capture_output=True, check=True).stdout)
            produce(address)
        added, listing, removed = outputs
    assert json.loads(added)["error"] == "NOT_LEADER_OR_FOLLOWER"
    requests = [json.loads(line) for line in listing.splitlines()]
    assert [request["error"] for request in requests] == ["NOT_LEADER_OR_FOLLOWER"] * 3 + [None]
    assert json.loads(removed) == []


def test_the_page_and_its_paths_are_served(broker: Broker) -> None:
    command, *_ = commands("Faults of a proxy over HTTP")
    with running(command, broker) as process:
        ready(process, broker)
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        answers = {
            path: json.loads(urllib.request.urlopen(url + path, timeout=10).read())
            for path in ("/", "/health/live", "/health/ready", "/views", "/faults")
        }
        page = urllib.request.Request(url, headers={"Accept": "text/html"})
        html = urllib.request.urlopen(page, timeout=10).read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/brokers/1/faults", timeout=10, data=b'{"twice": true}')
    assert answers["/views"]["kind"] == "proxy"
    assert answers["/views"]["views"] == ["requests", "faults"]
    assert answers["/health/ready"] == {"ready": True, "reasons": []}
    assert html.startswith(b"<!doctype html>")


def test_a_request_that_waits_is_shown_with_its_subject(broker: Broker) -> None:
    command, *_ = commands("Faults of a proxy over HTTP")
    with running(command, broker) as process:
        address = ready(process, broker)
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        rule = b'{"api": "OffsetFetch", "hold": true}'
        urllib.request.urlopen(f"{url}/faults", timeout=60, data=rule).read()
        port = int(url.rpartition(":")[2])
        with EventStreamReader(port, "/live/requests") as stream, RawClient(address) as client:
            assert stream.next("requests")["open"] == []
            topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
            client.send(OffsetFetchRequest(group_id="billing", topics=[topic]), 5)
            while not (event := stream.next("requests"))["open"]:
                pass
            (waiting,) = event["open"]
            removal = urllib.request.Request(f"{url}/faults", method="DELETE")
            urllib.request.urlopen(removal, timeout=60).read()
            while not (event := stream.next("requests"))["requests"]:
                pass
    assert (waiting["api"], waiting["answer_bytes"]) == ("OffsetFetch", None)
    assert waiting["subject"] == "group billing, orders-0"
    (ended,) = event["requests"]
    assert ended["subject"].startswith(waiting["subject"])
    assert event["open"] == []


def test_the_example_runs() -> None:
    (example,) = (block.text for block in readme.blocks([PAGE]) if block.language == "python")
    exec(compile(example, str(PAGE), "exec"), {})


def test_a_port_that_is_taken_is_a_sentence(broker: Broker) -> None:
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
