"""Row `suites`: what a test suite takes, from starting pytest to its end.

The same tests for every broker, as its users would write them: 100 with a topic of their own on one
broker, and 30 with a broker of their own each. A test writes ten records with librdkafka and reads
them back. minibroker is the fixture; the others are processes that a fixture starts.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.metrics import KAFKA_44, KFAKE, SUBJECT
from benchmarks.peers import Peer
from benchmarks.plan import Plan
from benchmarks.results import Results
from benchmarks.rows.session import RowError
from tests.support.build_files import ROOT

_TIMEOUT_S = 900.0
_TESTS = """
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

VALUES = [b"%d" % number for number in range(10)]


def round_trip(address, topic):
    settings = {"bootstrap.servers": address, "log_level": 0}
    producer = Producer({**settings, "linger.ms": 0})
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = [one.value() for one in consumer.consume(len(VALUES), 30)]
    consumer.close()
    assert found == VALUES
"""
_TOPIC_EACH = """

@pytest.mark.parametrize("number", range({count}))
def test_one(number, {fixture}):
    round_trip(*{fixture})
"""
_OWN_FIXTURES = """
import pytest


@pytest.fixture
def topic(kafka, kafka_topic):
    return kafka.bootstrap, kafka_topic


@pytest.fixture
def broker(kafka_broker):
    kafka_broker.create_topic("orders")
    return kafka_broker.bootstrap, "orders"
"""
_PROCESS_FIXTURES = """
import tempfile
from itertools import count
from pathlib import Path

import pytest
from benchmarks import wire
from benchmarks.peers import all_peers

peer = next(one for one in all_peers() if one.name == "{name}")
numbers = count()


def started():
    with tempfile.TemporaryDirectory() as directory:
        child, port = peer.start(Path(directory))
        yield port
        child.kill()


@pytest.fixture(scope="session")
def shared():
    yield from started()


@pytest.fixture
def own():
    yield from started()


def with_topic(port):
    name = f"orders-{{next(numbers)}}"
    connection = wire.Connection(port)
    wire.create_topic(connection, name)
    connection.close()
    return f"127.0.0.1:{{port}}", name


@pytest.fixture
def topic(shared):
    return with_topic(shared)


@pytest.fixture
def broker(own):
    return with_topic(own)
"""


def measure(peer: Peer, scratch: Path, results: Results, plan: Plan) -> None:
    """Both suites. Raises MissingError, RowError."""
    if peer.name not in (SUBJECT, KFAKE, KAFKA_44):
        results.note(peer.name, "suites", "not run: the table is of three")
        return
    probe = Path(tempfile.mkdtemp(dir=scratch, prefix=f"{peer.name}-probe-"))
    peer.prepare(probe, 0)
    results.add(peer.name, "suite_topics", _run(peer, scratch, "topic", plan.suite_topics))
    results.add(peer.name, "suite_brokers", _run(peer, scratch, "broker", plan.suite_brokers))


def _run(peer: Peer, scratch: Path, fixture: str, count: int) -> float:
    """Seconds of one run."""
    directory = Path(tempfile.mkdtemp(dir=scratch, prefix=f"{peer.name}-{fixture}-"))
    tests = _TESTS + _TOPIC_EACH.format(count=count, fixture=fixture)
    (directory / "test_suite.py").write_text(tests)
    is_subject = peer.name == SUBJECT
    fixtures = _OWN_FIXTURES if is_subject else _PROCESS_FIXTURES.format(name=peer.name)
    (directory / "conftest.py").write_text(fixtures)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(directory)]
    begun_at = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(directory)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    taken_s = time.perf_counter() - begun_at
    if done.returncode or f"{count} passed" not in done.stdout:
        raise RowError(f"its suite failed: {done.stdout[-1000:]}")
    return taken_s
