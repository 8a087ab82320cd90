"""`inspect`: its transforms on rows written here, and the whole job on topics and directories."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from minibroker.broker.storage import names
from minibroker.cli.program import run_words
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.pipeline import inspect
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.inspect.facts import FrequentKey, GroupLag
from minibroker.pipeline.verbs.inspect.job import run
from minibroker.pipeline.verbs.inspect.plan import InspectPlan
from minibroker.pipeline.verbs.inspect.words import findings
from tests.pipeline import topics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

NOON_MS = 1_790_000_000_000


def dicts(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def write_skewed(directory: Path) -> None:
    """Write four partitions: one key fills the second, the last is empty, each has a defect."""
    for partition, count in enumerate((300, 2400, 300, 0)):
        log = directory / f"orders-{partition}" / names.segment_file(0, names.LOG)
        log.parent.mkdir(parents=True)
        parts: list[bytes | bytearray] = []
        for offset in range(0, count, 100):
            some = [
                Record(
                    0,
                    NOON_MS + (offset + n) * 10 - (5_000 if n == 50 else 0),
                    b"hot" if partition == 1 and n % 10 else b"key-%d" % n,
                    b"value" * 20,
                )
                for n in range(100)
            ]
            sequence = offset + (7 if offset >= 200 else 0)
            parts.append(
                build_batch(
                    some,
                    base_offset=offset,
                    codec="gzip",
                    producer_id=partition,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
            )
        if partition == 2:
            parts.append(b"\x00" * 30)
        log.write_bytes(b"".join(parts))


def test_a_directory_is_inspected_and_the_page_shows_its_contents(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path works, too, although Spark's processes run in another directory."""
    write_skewed(tmp_path / "logs")
    page = tmp_path / "page.html"
    monkeypatch.chdir(tmp_path)
    inspection = inspect(log_dir="logs", report=page, spark=spark)
    [topic] = inspection.topics
    assert [partition.records for partition in topic.partitions] == [300, 2400, 300, 0]
    assert [partition.out_of_order for partition in topic.partitions] == [3, 24, 3, 0]
    assert topic.partitions[1].most_behind_ms == 4_990
    assert topic.frequent_keys[0] == FrequentKey("hot", 2160, 1)
    assert sum(time_slice.records for time_slice in topic.slices) == 3000
    assert [(producer.producer_id, producer.missing) for producer in topic.producers] == [
        (0, 7),
        (1, 7),
        (2, 7),
    ]
    assert [(codec.codec, codec.batches, codec.records) for codec in topic.codecs] == [
        ("gzip", 30, 3000)
    ]
    assert topic.unfolded_bytes > 5 * topic.stored_bytes
    assert [(defect.partition, defect.size_bytes) for defect in topic.defects] == [(2, 30)]
    warnings = [finding.text for finding in findings(topic) if finding.is_warning]
    assert warnings[0] == (
        "Skewed: partition 1 holds 80 % of the records, 3.2 times the fair share of 4 partitions; "
        "the key “hot” alone makes 90 % of that partition."
    )
    assert warnings[0] in page.read_text(encoding="utf-8")


def test_a_topic_is_inspected_by_its_broker_with_the_lag_of_groups(
    spark: SparkSession, address: str, topic: str
) -> None:
    topics.create(address, topic, 2)
    topics.send(address, topic, 60)
    topics.send(address, topic, 20, partition=1)
    for group in (f"of-{topic}", f"minibroker-sink-{topic}-0"):  # the second reads nothing
        reader = Consumer({"bootstrap.servers": address, "group.id": group})
        reader.commit(offsets=[TopicPartition(topic, 0, 45)], asynchronous=False)
        reader.close()

    [inspected] = inspect(topic, bootstrap=address, spark=spark).topics

    assert [partition.records for partition in inspected.partitions] == [60, 20]
    assert (inspected.keys, inspected.out_of_order, inspected.codecs) == (60, 0, ())
    assert inspected.groups == (GroupLag(f"of-{topic}", "empty", 15, 2, 1),)


def test_a_broker_and_its_files_tell_the_same(
    spark: SparkSession, minibroker: Any, topic: str
) -> None:
    topics.create(minibroker.address, topic, 2)
    topics.send(minibroker.address, topic, 30, codec="zstd")

    [by_broker] = inspect(topic, bootstrap=minibroker.address, spark=spark).topics
    lines: list[str] = []
    plan = InspectPlan(Kafka(), (topic,), str(minibroker.data_dir))
    [by_files] = run(spark, plan, tell=lines.append).topics

    assert lines[0] == "reading records"
    assert lines[1].startswith("30 records  ")
    assert lines[2:] == ["reading batches"]
    only_files = {"codecs": (), "producers": (), "defects": ()}
    assert by_files._replace(**only_files) == by_broker
    assert by_files.codecs[0].records == 30


def test_a_topic_that_is_not_there_is_one_sentence(
    spark: SparkSession, minibroker_address: str
) -> None:
    with pytest.raises(PipelineError, match="there is no topic 'nowhere'"):
        inspect("nowhere", bootstrap=minibroker_address, spark=spark)


def test_the_command_prints_the_table_and_writes_the_page(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It runs in the session of this process; the command line's own tests start processes."""
    write_skewed(tmp_path / "logs")
    page = tmp_path / "page.html"
    words = ["inspect", "--log-dir", str(tmp_path / "logs"), "--report", str(page)]
    out, errors = io.StringIO(), io.StringIO()
    assert run_words(["pipeline", *words], out, errors) == 0, errors.getvalue()
    assert "orders: 3,000 records" in out.getvalue()
    assert "! Skewed: partition 1 holds 80 % of the records" in out.getvalue()
    assert "<svg" in page.read_text(encoding="utf-8")
