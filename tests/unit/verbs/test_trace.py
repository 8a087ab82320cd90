"""`minibroker trace`: lines, full text and JSON of a capture, and what is refused."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from minibroker.cli.program import run_words
from minibroker.trace.picture import EXCHANGES_MAX
from tests.support.packets import Wire, client_hello, pcap
from tests.support.trace_frames import recorded_frames

if TYPE_CHECKING:
    from minibroker.testing import Broker

CAPTURE = str(Path(__file__).parents[2] / "golden" / "captures" / "clients.pcap")


def trace(*words: str) -> tuple[int, list[str], str]:
    """Return exit code, lines and complaints."""
    out, errors = io.StringIO(), io.StringIO()
    code = run_words(["trace", *words], out, errors)
    return code, out.getvalue().splitlines(), errors.getvalue()


def test_each_request_is_a_line() -> None:
    code, lines, errors = trace("--pcap", CAPTURE)
    assert (code, len(lines)) == (0, 55)
    assert errors == "minibroker trace: 55 requests on 12 connections in 218 packets\n"
    produced = [line for line in lines if " Produce " in line]
    assert re.fullmatch(
        r"16:19:42\.139 Produce v10 shop → 127\.0\.0\.1:42113: orders-1 16 records 263 B producer 0"
        r" epoch 0 sequence 0 → orders-1 @0: ok, 51\.\d ms",
        produced[0],
    )


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("--api", "joingroup,SyncGroup"), 3),
        (("--client", "bank"), 13),
        (("--topic", "orders", "--client", "kp"), 2),
        (("--errors",), 1),
        (("--slow", "50ms"), 5),
        (("-n", "4"), 4),
        (("--port", "9092"), 0),
        (("--port", "42113"), 55),
    ],
)
def test_options_choose_requests(words: tuple[str, ...], count: int) -> None:
    assert len(trace("--pcap", CAPTURE, *words)[1]) == count


def test_json_is_a_dialogue_that_shows_the_same(tmp_path: Path) -> None:
    dialogue = tmp_path / "talk.jsonl"
    dialogue.write_text("\n".join(trace("--pcap", CAPTURE, "--json")[1]))
    for layout in ((), ("--full",), ("--json",), ("--topic", "orders")):
        _, lines, errors = trace("--dialogue", str(dialogue), *layout)
        assert lines == trace("--pcap", CAPTURE, *layout)[1]
        assert errors == ""


def test_html_is_a_page_of_the_chosen_requests(tmp_path: Path) -> None:
    target = tmp_path / "talk.html"
    code, lines, errors = trace("--pcap", CAPTURE, "--client", "bank", "--html", str(target))
    assert (code, lines) == (0, [])
    assert errors.startswith("minibroker trace: 55 requests")
    text = target.read_text()
    assert "<title>Conversation in clients.pcap</title>" in text
    assert "<dt>Requests</dt><dd>13</dd>" in text


def test_svg_is_a_picture_of_a_short_conversation(tmp_path: Path) -> None:
    target = tmp_path / "talk.svg"
    assert trace("--pcap", CAPTURE, "--api", "SyncGroup", "--svg", str(target))[:2] == (0, [])
    assert "gets orders-0 orders-1 orders-2" in target.read_text()
    wire = Wire()
    wire.begin()
    wire.talk(recorded_frames()[: EXCHANGES_MAX + 1])
    long = tmp_path / "long.pcap"
    long.write_bytes(pcap(wire.packets))
    code, _, errors = trace("--pcap", str(long), "--svg", str(target))
    assert code == 1
    assert f"a picture has at most {EXCHANGES_MAX} requests" in errors


def test_a_capture_may_come_by_a_pipe() -> None:
    with Path(CAPTURE).open("rb") as capture:
        done = subprocess.run(
            [sys.executable, "-m", "minibroker", "trace", "--pcap", "-", "--api", "EndTxn"],
            stdin=capture,
            capture_output=True,
            check=True,
            timeout=60,
        )
    assert b"EndTxn v1 bank" in done.stdout
    assert b"55 requests on 12 connections" in done.stderr


def test_the_summary_says_what_could_not_be_read(tmp_path: Path) -> None:
    wire = Wire()
    wire.begin()
    wire.send(client_hello("kafka.example"))
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(wire.packets))
    _, _, errors = trace("--pcap", str(path))
    assert errors == (
        "minibroker trace: 0 requests on 0 connections in 4 packets;"
        " 1 connection with TLS cannot be read: 1 to 127.0.0.1:9092 (kafka.example)\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "give either --pcap or --dialogue"),
        (("--pcap", "a", "--dialogue", "b"), 2, "give either --pcap or --dialogue"),
        (("--dialogue", "b", "--port", "9"), 2, "--port needs --pcap"),
        (("--pcap", "a", "--full", "--json"), 2, "--full and --json do not go together"),
        (("--pcap", "a", "--api", "Fetsh"), 2, "no API has this name (did you mean Fetch?)"),
        (("--pcap", "a", "--port", "99999"), 2, "expected a port"),
        (("--pcap", "a", "--html", "b", "--json"), 2, "--json and --html do not go together"),
        (("--pcap", "a", "--seed", "b", "--html", "c"), 2, "--html and --seed do not go"),
        (("--pcap", "a", "--seed", "b", "--serve", "h:1"), 2, "--seed and --serve do not go"),
        (("--pcap", "a", "--serve", "h"), 2, "expected HOST:PORT"),
        (("--pcap", "-", "--seed", "b"), 2, "--seed reads a capture twice"),
        (("--pcap", CAPTURE, "--seed", "/none/b.yaml"), 1, "a file that ends in .jsonl"),
        (("--pcap", CAPTURE, "--html", "/none/b"), 1, "its directory is not there"),
        (("--pcap", CAPTURE, "--html", "/proc"), 1, "/proc cannot be written: Is a directory"),
        (("--pcap", "/none"), 1, "/none is no file"),
        (("--pcap", __file__), 1, "test_trace.py: unknown file format\n"),
        (("--dialogue", __file__), 1, "line 1: no JSON"),
    ],
)
def test_wrong_words_and_files_are_refused(words: tuple[str, ...], code: int, message: str) -> None:
    exit_code, lines, errors = trace(*words)
    assert (exit_code, lines) == (code, [])
    assert message in errors


def test_a_seed_has_the_records_that_were_produced(tmp_path: Path, broker: Broker) -> None:
    target = tmp_path / "records.jsonl"
    code, lines, errors = trace("--pcap", CAPTURE, "--seed", str(target))
    assert (code, lines) == (0, [])
    assert errors == "minibroker trace: 53 records of 1 topic\n"
    broker.load(target)
    values = [record.value for record in broker.records("orders")]
    assert len(values) == 53
    assert {b"v0", b"v49", b"x", b"y", b"z"} <= set(values)
    assert trace("--pcap", CAPTURE, "--seed", str(target))[0] == 1


def consume_from_script(directory: Path) -> tuple[set[bytes | None], str, str, int]:
    """Read the captured topic from a scripted broker in a group.

    Returns the values, what the broker wrote and complained of, and its exit code. Ends early where
    the client asks what was not recorded: which partitions a Fetch names depends on the moment.
    """
    words = ["trace", "--pcap", CAPTURE, "--serve", "127.0.0.1:0"]
    errors = directory / "errors"
    values: set[bytes | None] = set()
    with (
        errors.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", "minibroker", *words],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("minibroker listening on ").strip()
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "billing",
                "client.id": "c1",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        while len(values) < 50 and "not recorded: " not in errors.read_text():
            values.update(message.value() for message in consumer.consume(1, timeout=1))
        consumer.close()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    return values, out, errors.read_text(), process.returncode


def test_a_scripted_broker_answers_real_clients(tmp_path: Path) -> None:
    """A consumer in a group, as it was captured."""
    values: set[bytes | None] = set()
    while len(values) < 50:
        values, out, errors, code = consume_from_script(tmp_path)
    assert values == {b"v%d" % number for number in range(50)}
    assert " Fetch v16 c1 → script: orders-2 @0 → orders-2 21 records" in out
    assert "requests answered, " in errors
    assert code == 0


def test_nothing_cannot_be_served() -> None:
    code, _, errors = trace("--pcap", CAPTURE, "--port", "1", "--serve", "127.0.0.1:0")
    assert (code, errors.splitlines()[-1]) == (
        1,
        "minibroker trace: the recording has no request, so there is nothing to serve",
    )
