"""A broker and its tools where something is missing: extras, wheels, or what only POSIX has.

Missing things are hidden from the broker's process before it loads anything (`support.bare`). A
real client on the other side has everything.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.support.bare import (
    EXTRAS,
    POSIX,
    WHEELS,
    bare_environment,
    run_bare,
    serving_bare,
)

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import Message

COUNT = 200
SECONDS = 60.0


def produce(address: str, value: bytes, count: int, codec: str = "none") -> list[KafkaError | None]:
    """Send the value `count` times to the topic `t`; return the error of each record."""
    errors: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": address, "compression.type": codec})
    for _ in range(count):
        producer.produce("t", value, on_delivery=note)
    assert producer.flush(SECONDS) == 0
    return errors


def consume(address: str, count: int) -> list[bytes | None]:
    """Return the values of the first `count` records of the topic `t`."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    records = consumer.consume(count, SECONDS)
    consumer.close()
    return [record.value() for record in records]


def hidden_things(names: tuple[str, ...]) -> list[str]:
    """Return those of the names that a bare Python has all the same."""
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    module, dot, attribute = name.rpartition('.')\n"
        "    try:\n"
        "        exists = hasattr(importlib.import_module(module), attribute) if dot else "
        "importlib.import_module(name)\n"
        "    except ModuleNotFoundError:\n"
        "        exists = False\n"
        "    if exists: print(name)\n"
    )
    return run_bare(names, "-c", code, *names).stdout.split()


def test_hidden_things_are_not_there() -> None:
    assert hidden_things((*EXTRAS, *WHEELS, *POSIX)) == []


@pytest.mark.parametrize(
    "hidden",
    [EXTRAS, (*EXTRAS, *WHEELS), (*EXTRAS, *POSIX)],
    ids=["base-install", "no-wheels", "no-posix"],
)
def test_records_are_written_and_read_across_a_stop(
    hidden: tuple[str, ...], tmp_path: Path
) -> None:
    with serving_bare(hidden, tmp_path, "--topic", "t:1") as (address, _):
        assert produce(address, b"v" * 100, COUNT) == [None] * COUNT
        assert consume(address, COUNT) == [b"v" * 100] * COUNT
    assert "asyncio's loop serves, because uvloop is not installed" in log_of(tmp_path)
    with serving_bare(hidden, tmp_path) as (address, _):
        assert produce(address, b"w" * 100, COUNT) == [None] * COUNT
        assert consume(address, 2 * COUNT) == [b"v" * 100] * COUNT + [b"w" * 100] * COUNT
    arguments = ("-m", "minibroker", "check-log", "--strict", "--deep", str(tmp_path / "data"))
    checked = run_bare(hidden, *arguments)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "ERROR" not in log_of(tmp_path)


@pytest.mark.parametrize(
    "hidden", [(*EXTRAS, *WHEELS), (*EXTRAS, *POSIX)], ids=["no-wheels", "no-posix"]
)
def test_the_small_verbs_write_and_read_records(hidden: tuple[str, ...], tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(1_000))
    with serving_bare(hidden, tmp_path) as (address, _):
        verb = ("-m", "minibroker")
        producing = run_bare(hidden, *verb, "produce", "t", "--bootstrap", address, stdin=lines)
        assert producing.returncode == 0, producing.stderr
        consuming = run_bare(hidden, *verb, "consume", "t", "--bootstrap", address)
        assert (consuming.returncode, consuming.stdout) == (0, lines), consuming.stderr
        joined = run_bare(hidden, *verb, "consume", "t", "-g", "g", "--bootstrap", address)
        assert (joined.returncode, joined.stdout) == (0, lines), joined.stderr
        topics = run_bare(hidden, *verb, "topics", "--bootstrap", address)
        assert topics.returncode == 0, topics.stderr
        assert "t" in topics.stdout.split()


def log_of(directory: Path) -> str:
    """Return what the last broker of this directory said on stderr."""
    return (directory / "stderr").read_text()


def test_a_second_broker_on_the_same_data_is_refused_without_fcntl(tmp_path: Path) -> None:
    with serving_bare(POSIX, tmp_path):
        done = run_bare(
            POSIX,
            *("-m", "minibroker", "serve", "--listen", "127.0.0.1:0"),
            *("--data-dir", str(tmp_path / "data")),
        )
    assert done.returncode == 1
    assert "in use by another process" in done.stderr


def test_a_start_that_waits_ends_with_a_signal_that_the_loop_cannot_take(tmp_path: Path) -> None:
    """The ZooKeeper takes the connection and never answers, so the signal alone wakes the loop."""
    with (
        socket.create_server(("127.0.0.1", 0)) as zookeeper,
        subprocess.Popen(
            [
                *(sys.executable, "-m", "minibroker", "serve", "--listen", "127.0.0.1:0"),
                *("--data-dir", str(tmp_path / "data")),
                *("--zookeeper", "{}:{}".format(*zookeeper.getsockname())),
            ],
            env=bare_environment((*EXTRAS, *POSIX)),
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        zookeeper.settimeout(SECONDS)
        with zookeeper.accept()[0]:
            process.terminate()
            _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert errors.endswith("minibroker: stopped before it was ready\n")


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_without_its_library_a_codec_is_refused_and_gzip_is_not(codec: str, tmp_path: Path) -> None:
    with serving_bare(("cramjam",), tmp_path, "--topic", "t:1") as (address, _):
        (error,) = produce(address, b"v" * 500, 1, codec)
        assert error is not None
        assert error.code() == KafkaError.UNSUPPORTED_COMPRESSION_TYPE
        assert produce(address, b"v" * 500, 1, "gzip") == [None]
        assert consume(address, 1) == [b"v" * 500]


def test_a_loop_that_is_not_installed_is_one_sentence(tmp_path: Path) -> None:
    done = run_bare(
        EXTRAS,
        *("-m", "minibroker", "serve", "--listen", "127.0.0.1:0", "--loop", "uvloop"),
        *("--data-dir", str(tmp_path / "data")),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "minibroker: --loop uvloop needs the package uvloop: pip install 'minibroker[uvloop]', or"
        " leave the flag out\n"
    )
