"""`minibroker consume`: which records, in which form, until when, and who reads the output."""

from __future__ import annotations

import json
import os
import signal

import pytest

from minibroker.testing import Broker
from tests.unit.verbs.conftest import Program

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def numbers(broker: Broker) -> str:
    """Return a topic with the values 0 to 9 in partition 0, an hour apart, and x in partition 1."""
    broker.create_topic("numbers", partitions=2)
    for number in range(10):
        broker.produce(
            "numbers",
            [b"%d" % number],
            key=b"k%d" % number,
            partition=0,
            timestamp=1_790_000_000_000 + number * HOUR_MS,
        )
    broker.produce("numbers", [b"x"], partition=1)
    return "numbers"


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ((), "0123456789x"),
        (("-p", "0"), "0123456789"),
        (("-p", "0", "--from", "7"), "789"),
        (("-p", "0", "--from", "-2"), "89"),
        (("--from", "end"), ""),
        (("-p", "0", "-n", "3"), "012"),
        (("-p", "0", "--until", "2"), "01"),
        (("-p", "0", "--from", "3", "--until", "5"), "34"),
        (("-p", "0", "--since", str(1_790_000_000_000 + 8 * HOUR_MS)), "89"),
        (("-p", "0", "--until", str(1_790_000_000_000 + 2 * HOUR_MS)), "01"),
        (("--from", "0"), "0123456789x"),
    ],
)
def test_places(program: Program, numbers: str, words: tuple[str, ...], values: str) -> None:
    ran = program.run("consume", numbers, *words)
    assert (ran.code, ran.errors) == (0, "")
    assert sorted("".join(ran.lines)) == sorted(values)


@pytest.mark.parametrize("group", [(), ("--group", "beyond")])
def test_an_offset_beyond_the_end_is_said(
    program: Program, numbers: str, group: tuple[str, ...]
) -> None:
    ran = program.run("consume", numbers, "--from", "99", *group)
    assert (ran.code, ran.lines) == (0, [])
    assert ran.errors == (
        "minibroker consume: offset 99 is beyond the end of numbers-0 (10) and of 1 other "
        "partition: it reads from there\n"
    )


def test_an_offset_before_the_first_record_is_said(program: Program, broker: Broker) -> None:
    broker.create_topic("shortened")
    broker.produce("shortened", [b"a", b"b", b"c"])
    broker.call(lambda: broker._app_brokers()[0].partitions.get("shortened", 0).delete_records(2))
    ran = program.run("consume", "shortened", "--from", "1")
    assert (ran.code, ran.lines) == (0, ["c"])
    assert ran.errors == (
        "minibroker consume: offset 1 is before the first record of shortened-0 (2): it reads from "
        "there\n"
    )


def test_layouts(program: Program, broker: Broker) -> None:
    headers = [("h", b"1"), ("h", b"2"), ("raw", b"\xff")]
    broker.create_topic("layouts")
    broker.produce("layouts", [b"v"], key=b"k", headers=headers, timestamp=1_790_000_000_005)
    broker.produce("layouts", [None], timestamp=1_790_000_000_005)
    broker.produce("layouts", [b"\x00\xff\n"], key=b"", timestamp=1_790_000_000_005)
    assert program.run("consume", "layouts").out == b"v\nNULL\n\x00\xff\n\n"
    assert program.run("consume", "layouts", "--keys", "--null", "-").out == (
        b"k\tv\n-\t-\n\t\x00\xff\n\n"
    )
    template = "{topic}[{partition}]@{offset} {time} {key}={value} {header.h} {value_size}\\t{{}}"
    assert program.run("consume", "layouts", "--format", template, "-n", "2").out == (
        b"layouts[0]@0 2026-09-21T14:13:20.005Z k=v 2 1\t{}\n"
        b"layouts[0]@1 2026-09-21T14:13:20.005Z NULL=NULL NULL -1\t{}\n"
    )
    first, second, third = map(json.loads, program.run("consume", "layouts", "--json").lines)
    assert first == {
        "topic": "layouts",
        "partition": 0,
        "offset": 0,
        "timestamp": 1_790_000_000_005,
        "key": "k",
        "value": "v",
        "headers": [["h", "1"], ["h", "2"], ["raw", {"base64": "/w=="}]],
    }
    assert (second["key"], second["value"]) == (None, None)
    assert (third["key"], third["value_base64"]) == ("", "AP8K")
    assert program.run("consume", "layouts", "--base64", "--keys").out == (
        b"aw==\tdg==\nNULL\tNULL\n\tAP8K\n"
    )


def test_json_goes_back_as_it_came(program: Program, broker: Broker) -> None:
    broker.create_topic("before", partitions=2)
    broker.produce("before", [b"a", None, b"\xff", b'{"x": 1}'], key=b"k", headers=[("h", None)])
    lines = program.run("consume", "before", "--json").out
    broker.create_topic("after", partitions=2)
    assert program.feed(lines, "produce", "after", "--json").code == 0
    first_records, after = broker.records("before"), broker.records("after")
    assert [record[1:] for record in first_records] == [record[1:] for record in after]


def test_aborted_records_are_left_out_unless_they_are_wanted(program: Program) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  librdkafka, for this test alone

    producer = Producer({"bootstrap.servers": program.bootstrap, "transactional.id": "x"})
    producer.init_transactions()
    for value, ends in (("yes", producer.commit_transaction), ("no", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("decided", value)
        producer.flush()
        ends()
    assert program.run("consume", "decided").lines == ["yes"]
    level = ("--kafka", "isolation.level=read_uncommitted")
    assert program.run("consume", "decided", *level).lines == ["yes", "no"]


def test_follow_shows_what_comes_until_ctrl_c(program: Program, broker: Broker) -> None:
    broker.create_topic("followed")
    broker.produce("followed", [b"old"])
    process = program.start("consume", "followed", "--follow", "--from", "-1")
    assert process.stdout is not None
    assert process.stdout.readline() == b"old\n"
    broker.produce("followed", [b"new"])
    assert process.stdout.readline() == b"new\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.communicate()


def test_a_reader_that_has_enough_ends_it_quietly(program: Program, broker: Broker) -> None:
    broker.create_topic("many")
    broker.produce("many", [b"x" * 1000] * 5000)
    process = program.start("consume", "many")
    assert process.stdout is not None
    assert process.stdout.readline() == b"x" * 1000 + b"\n"
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(60)) == (b"", 0)
    process.communicate()


def test_a_terminal_is_not_steered(program: Program, broker: Broker) -> None:
    broker.produce("steering", [b"\x1b[2J caf\xc3\xa9 \xff\ttab"])
    master, slave = os.openpty()
    process = program.start("consume", "steering", stdout=slave)
    process.communicate(timeout=60)
    os.close(slave)
    assert os.read(master, 1000) == b"\\x1b[2J caf\xc3\xa9 \\xff\ttab\r\n"
    os.close(master)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--format", "{ofset}"), "{ofset}, which is no field (did you mean offset?)"),
        (("--format", "{value"), "has a { without its other one"),
        (("--format", "\\q"), "\\q is no escape"),
        (("--from", "soon"), "--from 'soon': expected beginning, end, an offset"),
        (("--keys", "--json"), "--keys and --json do not go together"),
        (("--until", "3", "--follow"), "--until and --follow do not go together"),
        (("--from", "1", "--since", "-1h"), "--from and --since do not go together"),
    ],
)
def test_wrong_usage(program: Program, words: tuple[str, ...], sentence: str) -> None:
    ran = program.run("consume", "t", *words)
    assert (ran.code, sentence in ran.errors) == (2, True), ran.errors


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--security", "SSL"), "ends the handshake of TLS: is security.protocol that of"),
        (("--user", "alice:secret"), "takes no logins on this listener: leave the user out"),
    ],
)
def test_a_listener_without_security_is_named(
    program: Program, words: tuple[str, ...], sentence: str
) -> None:
    ran = program.run("consume", "t", *words)
    assert (ran.code, sentence in ran.errors) == (1, True), ran.errors


def test_a_missing_file_of_a_user_is_one_sentence(program: Program) -> None:
    ran = program.run("consume", "t", "--user", "@nowhere")
    assert (ran.code, "--user @nowhere: No such file or directory;" in ran.errors) == (2, True)


def test_a_missing_topic_or_partition_is_named(program: Program, numbers: str) -> None:
    ran = program.run("consume", "nothing")
    assert (ran.code, "UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'nothing'" in ran.errors) == (
        1,
        True,
    )
    ran = program.run("consume", numbers, "-p", "5")
    assert (ran.code, "numbers has 2 partitions, 0 to 1: there is no 5" in ran.errors) == (1, True)


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.0", "0.11", "4.4"])
def test_any_release(release: str) -> None:
    with Broker(config={"minibroker.advertised.kafka.version": release}) as old:
        program = Program(old.bootstrap)
        program.feed(b"a\nb\n", "produce", "t", "--compression", "gzip")
        assert program.run("consume", "t").lines == ["a", "b"]
        if release != "0.8.2":  # which has no members of groups
            assert program.run("consume", "t", "--group", "g").lines == ["a", "b"]
            assert program.run("wait", "--group", "g", "--lag", "0").code == 0
            assert '"committed": 2' in program.run("groups", "g", "--json").out.decode()
            moved = program.run("groups", "g", "--reset-to", "1")
            assert moved.lines[-1].split() == ["t", "0", "2", "1"]
