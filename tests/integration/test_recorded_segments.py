"""Recordings beside Apache Kafka: its tool reads their segments, and its topics are recorded."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.cli.errors import EXIT_OK
from minibroker.cli.program import run_words
from minibroker.client import admin
from minibroker.client.client import Client
from minibroker.client.settings import client_settings
from minibroker.testing import Broker
from tests.support.log_tool import LogTool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import KafkaPeer

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

VALUES = [f"v{number}" for number in range(50)]


def produce(address: str, topic: str) -> None:
    """Write the values in transactions, with aborted ones between them, in all codecs."""
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        settings = {"bootstrap.servers": address, "compression.type": codec, "linger.ms": 5}
        client = Producer({**settings, "transactional.id": codec})
        client.init_transactions(10)
        for is_committed in (False, True):
            client.begin_transaction()
            for value in VALUES[10 * number : 10 * number + 10]:
                client.produce(topic, value if is_committed else "aborted", "k", partition=0)
            client.flush(10)
            (client.commit_transaction if is_committed else client.abort_transaction)(10)


def test_kafkas_tool_reads_recorded_and_loaded_segments(tmp_path: Path) -> None:
    with Broker(topics=["t:2"]) as source:
        produce(source.bootstrap, "t")
        words = ("record", "t", "-o", str(tmp_path / "seed"), "--bootstrap", source.bootstrap)
        assert run_words(words, io.StringIO(), io.StringIO()) == EXIT_OK
    data = tmp_path / "data"
    with Broker(data_dir=data) as target:
        target.load(tmp_path / "seed")
    with LogTool() as tool:
        for directory in (tmp_path / "seed", data):
            [path] = (directory / "t-0").glob("*.log")
            dumped = tool.dump("--deep-iteration", "--print-data-log", "--files", str(path))
            assert not dumped.failed, dumped.errors
            assert re.findall(r"payload: (\S+)", dumped.output) == VALUES
            assert "isTransactional: true" not in dumped.output
            assert set(re.findall(r"isvalid: (\w+)", dumped.output)) == {"true"}
            assert set(re.findall(r"producerId: (\S+)", dumped.output)) == {"-1"}
        indexes = [str(path) for path in (data / "t-0").glob("*index")]
        checked = tool.dump("--index-sanity-check", "--files", ",".join(indexes))
        assert not checked.failed, checked.errors


@pytest.mark.parametrize("form", ["seed", "seed.jsonl"])
@pytest.mark.parametrize("release", ["kafka_39", "kafka_44"])
def test_a_topic_of_apache_kafka_is_recorded(
    tmp_path: Path, request: pytest.FixtureRequest, release: str, form: str
) -> None:
    peer: KafkaPeer = request.getfixturevalue(release)
    topic = f"recorded-{form}"
    client = Client(client_settings({"bootstrap.servers": peer.address}))
    admin.create_topic(client, topic, 2, {"segment.ms": "50000"}, timeout_s=30)
    produce(peer.address, topic)
    words = ("record", topic, "-o", str(tmp_path / form), "--bootstrap", peer.address)
    assert run_words(words, io.StringIO(), io.StringIO()) == EXIT_OK
    with Broker() as target:
        assert target.load(tmp_path / form).records == {topic: len(VALUES)}
        assert target.topics == {topic: 2}
        records = target.records(topic, isolation="read_committed")
    assert [(record.key, record.text) for record in records] == [(b"k", value) for value in VALUES]
    file = tmp_path / form if form.endswith("jsonl") else tmp_path / form / "topics.jsonl"
    assert '"segment.ms": "50000"' in file.read_text().splitlines()[0]
