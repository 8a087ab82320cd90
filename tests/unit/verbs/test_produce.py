"""`minibroker produce`: lines, pairs, JSON and files as records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from minibroker.verbs.record_lines import RecordPace

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.testing import Broker
    from tests.unit.verbs.conftest import Program


def stored(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in broker.records(topic)]


def test_lines_are_values(program: Program, broker: Broker) -> None:
    ran = program.feed(b"one\n\ntwo\twords\nlast", "produce", "lines")
    assert (ran.code, ran.out, ran.errors) == (0, b"", "")
    assert stored(broker, "lines") == [
        (None, value) for value in (b"one", b"", b"two\twords", b"last")
    ]


def test_pairs_null_base64_and_headers(program: Program, broker: Broker) -> None:
    pairs = b"k\tv\nNULL\tx\nk\tNULL\nk\ta\tb\n"
    words = ("--keys", "--null", "NULL", "-H", "trace=1", "-H", "by=me")
    assert program.feed(pairs, "produce", "pairs", *words).code == 0
    assert stored(broker, "pairs") == [(b"k", b"v"), (None, b"x"), (b"k", None), (b"k", b"a\tb")]
    first = broker.records("pairs")[0]
    assert first.headers == (("trace", b"1"), ("by", b"me"))
    program.feed(b"AAH/;aGk=\n", "produce", "coded", "-k", "--separator", ";", "--base64")
    assert stored(broker, "coded") == [(b"\x00\x01\xff", b"hi")]


def test_json_lines_have_everything(program: Program, broker: Broker) -> None:
    broker.create_topic("json", partitions=3)
    lines = [
        {"key": "k", "value": {"a": 1}, "headers": {"h": "x"}, "timestamp": 5, "partition": 2},
        {"value": None, "key_base64": "AP8="},
    ]
    data = "\n".join(map(json.dumps, lines)).encode()
    assert program.feed(data, "produce", "json", "--json").code == 0
    by_key = {record.key: record for record in broker.records("json")}
    first = by_key[b"k"]
    assert (first.partition, first.timestamp, first.value) == (2, 5, b'{"a":1}')
    assert first.headers == (("h", b"x"),)
    assert by_key[b"\x00\xff"].value is None


def test_files_as_lines_and_whole(program: Program, broker: Broker, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"3")
    assert program.run("produce", "files", str(first), str(second), "--key", "k").code == 0
    assert stored(broker, "files") == [(b"k", b"1"), (b"k", b"2"), (b"k", b"3")]
    assert program.run("produce", "whole", str(first), "--whole").code == 0
    assert stored(broker, "whole") == [(None, b"1\n2\n")]
    ran = program.run("produce", "whole", str(tmp_path / "none"))
    assert (ran.code, "cannot read" in ran.errors) == (1, True)


@pytest.mark.parametrize(
    ("data", "words", "sentence"),
    [
        (b"a\tb\nab\n", ("--keys",), "standard input:2: the line has no tab between a key"),
        (b"x\n", ("--base64",), "standard input:1: b'x' is no base64"),
        (b'{"value": 1}\n{\n', ("--json",), "standard input:2: it is no JSON"),
        (b'{"valu": 1}\n', ("--json",), "standard input:1: "),
        (b"x\n", ("--partition", "7"), "topic wrong has partitions 0 to 0, not 7"),
    ],
)
def test_a_line_that_is_no_record_is_named(
    program: Program, data: bytes, words: tuple[str, ...], sentence: str
) -> None:
    ran = program.feed(data, "produce", "wrong", *words)
    assert ran.code == 1
    assert sentence in ran.errors


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_acks_and_compression(program: Program, broker: Broker, acks: str) -> None:
    topic = f"acks.{acks}"
    words = ("--acks", acks, "--compression", "zstd")
    assert program.feed(b"x" * 500 + b"\n", "produce", topic, *words).code == 0
    assert broker.wait_for(topic, 1)[0].value == b"x" * 500


def test_a_topic_is_made_only_if_it_may_be(program: Program) -> None:
    ran = program.feed(b"x\n", "produce", "absent", "--no-create")
    assert (ran.code, "UNKNOWN_TOPIC_OR_PARTITION" in ran.errors) == (1, True)
    assert program.run("produce", "t", "--keys", "--json").code == 2


def test_a_typed_line_is_sent_before_the_next_one(program: Program, broker: Broker) -> None:
    """The record is there while the input is open, and Ctrl-C loses nothing."""
    broker.create_topic("typed")
    process = program.start("produce", "typed")
    assert process.stdin is not None
    process.stdin.write(b"first\n")
    process.stdin.flush()
    assert broker.wait_for("typed", 1)[0].value == b"first"
    process.stdin.write(b"second\n")
    process.stdin.flush()
    broker.wait_for("typed", 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.stdin.close()
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def test_a_rate_spreads_the_records() -> None:
    pace = RecordPace(100, 5.0)
    assert pace.step == 10
    assert pace.pause(10, 5.0) == 0.0
    assert pace.pause(10, 5.0) == pytest.approx(0.1)
    assert pace.pause(10, 5.15) == pytest.approx(0.05)
    assert pace.pause(10, 60.0) == 0.0, "a pause of the input is not made up for"
    assert pace.pause(10, 60.0) == pytest.approx(0.1)
    assert RecordPace(3, 0.0).step == 1
    assert RecordPace(None, 0.0).pause(1_000_000, 0.0) == 0.0


def test_a_slow_rate_sends_each_record_at_its_time(program: Program, broker: Broker) -> None:
    broker.create_topic("paced")
    ran = program.feed(b"a\nb\nc\n", "produce", "paced", "--rate", "10")
    assert ran.code == 0
    times = [record.timestamp for record in broker.records("paced")]
    assert times == sorted(times)
    assert times[2] - times[0] >= 190, "two pauses of 100 ms"


def test_a_person_is_told_how_to_end(program: Program, broker: Broker) -> None:
    broker.create_topic("person")
    master, slave = os.openpty()
    process = program.start("produce", "person", stdin=slave, stderr=slave)
    os.write(master, b"hello\n")
    assert broker.wait_for("person", 1)[0].value == b"hello"
    os.write(master, b"\x04")
    assert process.wait(60) == 0
    process.communicate()
    os.close(slave)
    lines = os.read(master, 1000).decode().splitlines()
    assert "Each line is a record. Ctrl-D ends." in lines
    assert lines[-1] == "1 record to person"
    os.close(master)


def test_progress_is_for_a_terminal_alone(program: Program) -> None:
    master, slave = os.openpty()
    process = program.start("produce", "watched", stderr=slave, stdout=subprocess.DEVNULL)
    process.communicate(b"a\nb\n", timeout=60)
    os.close(slave)
    assert os.read(master, 1000).decode().strip().endswith("2 records to watched")
    os.close(master)


def test_a_record_that_is_too_large_is_named_with_its_limit(
    program: Program, tmp_path: Path
) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(2_000_000))
    ran = program.run("produce", "t", "--whole", str(path))
    assert (ran.code, "-0 takes no batch of 2000" in ran.errors) == (1, True), ran.errors
    assert "max.message.bytes" in ran.errors
