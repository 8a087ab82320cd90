"""Kafka's scripts of the image: their words, records as lines, waiting, and what they refuse.

What they answer beside Kafka's own is in tests/integration/test_scripts.py.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.container.scripts import configs, connecting
from minibroker.container.scripts.__main__ import main
from minibroker.container.scripts.consumer import RecordFormat, ShownRecord
from minibroker.container.scripts.options import ScriptError, ScriptOption, WordsError, parse
from minibroker.container.scripts.producer import LineFormat
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.record import Record
from minibroker.testing import Broker

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = {
    "topic": ScriptOption("TOPIC", ""),
    "topic-partitions": ScriptOption("T", ""),
    "state": ScriptOption("STATES", "", is_optional=True),
    "list": ScriptOption("", ""),
}
TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}
ALICE = [
    *("--alter", "--zookeeper", "localhost:2181", "--entity-type", "users"),
    *("--entity-name", "alice", "--add-config", "SCRAM-SHA-512=[password=secret]"),
]


def ran(*words: str) -> tuple[int, str, str]:
    """Run a script; return its exit code, stdout and stderr."""
    out, errors = io.StringIO(), io.StringIO()
    return main(words, out, errors), out.getvalue(), errors.getvalue()


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the broker of a container says its address; it is not there yet."""
    path = tmp_path / "listener"
    monkeypatch.setattr(configs, "LISTENER_FILE", str(path))
    monkeypatch.setattr(connecting, "LISTENER_FILE", str(path))
    monkeypatch.setattr(configs, "USERS_FILE", str(tmp_path / "users"))
    return path


# Words.


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("--topic a --list", {"topic": ["a"], "list": [""]}),
        ("-topic=a --topic b", {"topic": ["a", "b"]}),
        ("--lis --topic a=b", {"list": [""], "topic": ["a=b"]}),
        ("--state --list", {"state": [""], "list": [""]}),
        ("--list --state Empty,Stable", {"list": [""], "state": ["Empty,Stable"]}),
        ("--topic --list", {"topic": ["--list"]}),
        ("more words --list", {"list": [""]}),
        ("--list -- --topic", {"list": [""]}),
    ],
)
def test_words_are_read_as_joptsimple_reads_them(line: str, values: dict[str, list[str]]) -> None:
    assert parse(line.split(), OPTIONS).values == values


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--nonsense", "nonsense is not a recognized option"),
        ("--to a", "to is not a recognized option"),
        ("--topic", "Option topic requires an argument"),
    ],
)
def test_wrong_words_are_named(line: str, sentence: str) -> None:
    with pytest.raises(WordsError, match=sentence):
        parse(line.split(), OPTIONS)


def test_an_unknown_script_names_those_that_are_here() -> None:
    code, _, errors = ran("/opt/kafka/bin/kafka-mirror-maker.sh")
    assert code == 1
    assert errors.startswith("kafka-mirror-maker: not among the scripts of this image: cub,")


def test_version_and_help_need_no_broker() -> None:
    code, out, _ = ran("kafka-topics.sh", "--version")
    assert (code, out.split()[0]) == (0, "3.9.1")
    code, out, _ = ran("kafka-run-class.sh", "kafka.tools.GetOffsetShell", "--help")
    assert code == 0
    assert out.startswith("kafka-get-offsets: ")


def test_a_broker_that_is_away_is_one_line() -> None:
    code, out, errors = ran("kafka-get-offsets", "--bootstrap-server", "127.0.0.1:1")
    assert (code, out) == (1, "")
    assert errors.startswith("kafka-get-offsets: ")
    assert errors.count("\n") == 1


# Records as lines.


def test_a_line_has_headers_key_and_value() -> None:
    form = LineFormat.of(
        {
            "parse.headers": "true",
            "parse.key": "true",
            "key.separator": "|",
            "null.marker": "NULL",
        }
    )
    record = form.record("a:1,b:NULL\tkey|value|more", 1)
    assert record[2:] == (b"key", b"value|more", (("a", b"1"), ("b", None)))
    record = form.record("NULL\tNULL|NULL", 2)
    assert record[2:] == (None, None, ())
    with pytest.raises(ScriptError, match="No key separator found on line number 3: 'nothing'"):
        form.record("NULL\tnothing", 3)


def test_bad_lines_may_be_values() -> None:
    form = LineFormat.of({"parse.key": "true", "ignore.error": "true"})
    assert form.record("nothing", 1)[2:] == (None, b"nothing", ())


def test_equal_separators_are_refused() -> None:
    with pytest.raises(ScriptError, match="may not be equal"):
        LineFormat.of({"headers.separator": ":"})


def test_a_record_is_shown_in_kafkas_order() -> None:
    names = ("timestamp", "partition", "offset", "epoch", "headers", "key")
    form = RecordFormat.of({f"print.{name}": "true" for name in names} | {"key.separator": " "})
    record = Record(7, 1000, None, b"\xff", (("h", None),))
    shown_record = ShownRecord(TopicPartition("t", 2), record, 3, is_append_time=True)
    line = b"LogAppendTime:1000 Partition:2 Offset:7 Epoch:3 h:null null \xff\n"
    assert form.line(shown_record) == line
    shown_record = ShownRecord(
        TopicPartition("t", 2), Record(7, -1, b"k", b"v", ()), -1, is_append_time=False
    )
    line = b"NO_TIMESTAMP Partition:2 Offset:7 Epoch:NOT_PRESENT NO_HEADERS k v\n"
    assert form.line(shown_record) == line


@pytest.mark.parametrize(
    ("of_producer", "of_consumer"),
    [
        (
            "--broker-list {} --property parse.key=true --producer-property linger.ms=5",
            "--bootstrap-server {} --property print.key=true --consumer-property client.id=c",
        ),
        (
            "--bootstrap-server {} --reader-property parse.key=true --command-property linger.ms=5",
            "--bootstrap-server {} --formatter-property print.key=true"
            " --command-property client.id=c",
        ),
    ],
    ids=["3.9", "4.x"],
)
def test_names_of_options_of_both_releases_are_known(
    of_producer: str, of_consumer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(topics=["t"]) as broker:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"k\tv\n")))
        words = of_producer.format(broker.bootstrap).split()
        assert ran("kafka-console-producer", "--topic", "t", *words) == (0, "", "")
        words = of_consumer.format(broker.bootstrap).split()
        common = ("--topic", "t", "--from-beginning", "--max-messages", "1")
        assert ran("kafka-console-consumer", *common, *words)[:2] == (0, "k\tv\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--formatter", "org.acme.Avro"], "--formatter org.acme.Avro: no Java class is loaded"),
        (
            ["--property", "value.deserializer=org.acme.Avro"],
            "value.deserializer=org.acme.Avro: no Java class is loaded",
        ),
        (["--property", "print.key=true", "--offset", "x", "--partition", "0"], "'x' is incorrect"),
    ],
)
def test_a_class_of_java_is_refused(words: list[str], sentence: str) -> None:
    with Broker(topics=["t"]) as broker:
        common = ("--topic", "t", "--bootstrap-server", broker.bootstrap)
        code, _, errors = ran("kafka-console-consumer", *common, *words)
    assert code == 1
    assert sentence in errors


def test_sigterm_ends_a_member_whose_offsets_are_kept() -> None:
    with Broker(topics=["t"]) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", b"one")
        assert producer.flush(30) == 0
        script = (sys.executable, "-m", "minibroker.container.scripts")
        words = ("--topic", "t", "--from-beginning", "--group", "g")
        with subprocess.Popen(
            [*script, "kafka-console-consumer", *words, "--bootstrap-server", broker.bootstrap],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"one\n"
            process.send_signal(signal.SIGTERM)
            out, errors = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, b"")
        assert errors == b"Processed a total of 1 messages\n"
        described = ("--describe", "--group", "g", "--bootstrap-server", broker.bootstrap)
        row = ran("kafka-consumer-groups", *described)[1].splitlines()[-1].split()
        assert row == ["g", "t", "0", "1", "1", "0", "-", "-", "-"]


# The broker of the container.


def test_zookeeper_stands_for_the_broker_of_this_container(listener: Path) -> None:
    with Broker(topics=["t"]) as broker:
        listener.write_text(f"{broker.bootstrap} PLAINTEXT")
        assert ran("kafka-topics.sh", "--list", "--zookeeper", "zoo:2181") == (0, "t\n", "")


def test_a_broker_without_a_plain_listener_needs_a_login(listener: Path) -> None:
    listener.write_text("127.0.0.1:1 SASL_SSL")
    code, _, errors = ran("kafka-topics", "--list", "--zookeeper", "zoo:2181")
    assert code == 1
    assert "use --bootstrap-server and --command-config" in errors


def test_a_user_logs_in(listener: Path) -> None:
    with Broker(config=TWO_LISTENERS) as broker:
        listener.write_text(f"{broker.bootstrap} PLAINTEXT")
        done = "Completed updating config for user alice.\n"
        assert ran("kafka-configs", *ALICE) == (0, done, "")
        login = {
            "bootstrap.servers": f"127.0.0.1:{broker._node.app.ports['SASL']}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
        assert Producer(login).list_topics(timeout=60).brokers


def test_a_login_waits_for_the_start_of_the_broker(listener: Path) -> None:
    assert ran("kafka-configs", *ALICE)[0] == 0
    users = (listener.parent / "users").read_text()
    assert "alice" in users
    assert "secret" not in users


def test_a_password_that_is_missing_is_named(listener: Path) -> None:
    code, _, errors = ran("kafka-configs", *ALICE[:-1], "SCRAM-SHA-512=[password=]")
    assert code == 1
    assert "password=… is missing" in errors
    assert not (listener.parent / "users").exists()


# Waiting.


def test_a_port_that_listens_is_there() -> None:
    with Broker() as broker:
        host, port = broker.bootstrap.split(":")
        assert ran("nc", "-z", host, port) == (0, "", "")
        assert ran("nc", "-zv", "-w", "2", host, port)[2].endswith("succeeded!\n")
        assert ran("nc", "-vzw2", host, port)[0] == 0
        assert ran("dub", "wait", host, port, "10")[0] == 0
        assert ran("wait-for-port", "--host", host, port)[0] == 0
        assert ran("cub", "kafka-ready", "-b", broker.bootstrap, "1", "10")[0] == 0
        assert ran("cub", "zk-ready", f"{host}:{port}/chroot", "10")[0] == 0
        code, _, errors = ran("cub", "kafka-ready", "-b", broker.bootstrap, "2", "0")
        assert (code, errors) == (1, "cub: expected 2 brokers and there are 1\n")
    assert ran("nc", "-z", host, port)[0] == 1


def test_a_port_that_does_not_listen_is_waited_for() -> None:
    began = time.monotonic()
    code, _, errors = ran("dub", "wait", "127.0.0.1", "1", "0.3")
    assert code == 1
    assert errors.startswith("dub: ")
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nc localhost 9092", "only nc -z HOST PORT is here"),
        ("cub sr-ready host 8081 10", "only kafka-ready"),
        ("dub path /tmp", "only wait HOST PORT SECONDS"),
    ],
)
def test_other_ways_to_wait_are_refused(words: str, sentence: str) -> None:
    code, _, errors = ran(*words.split())
    assert code == 1
    assert sentence in errors


@pytest.mark.parametrize("buffering", ["", "1"])
def test_a_closed_pipe_is_no_traceback(buffering: str) -> None:
    with Broker(topics=["t"]) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", b"one")
        assert producer.flush(30) == 0
        reading, writing = os.pipe()
        os.close(reading)
        script = (sys.executable, "-m", "minibroker.container.scripts", "kafka-console-consumer")
        words = ("--topic", "t", "--from-beginning", "--bootstrap-server", broker.bootstrap)
        done = subprocess.run(
            [*script, *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": buffering},
        )
        os.close(writing)
    assert done.returncode == 1
    assert done.stderr == b"Processed a total of 0 messages\n"
