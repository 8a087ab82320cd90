"""`replay`: the archived records are in the topic, once, in order, after any interruption."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline import PipelineError, archive, replay
from minibroker.pipeline.kafka import preflight, schemas
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.spark import numbered_batch
from minibroker.pipeline.spark import target_topics as target
from minibroker.pipeline.spark.progress import Reports
from minibroker.pipeline.spark.target_topics import ReplayTarget
from minibroker.pipeline.verbs.replay import rows as replayed
from minibroker.pipeline.verbs.replay.job import check, run
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from tests.pipeline import topics
from tests.pipeline.committed import Record, records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from minibroker.pipeline.spark.progress import Batch, Note
    from minibroker.testing import Broker

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

RECORDS = 300
PARTITIONS = 4
"""Partitions of the archived topic; the last one is empty."""

Archived = tuple[dict[int, list[Record]], "Path"]
"""The records of the topic, and the directory of its archive."""


@pytest.fixture(scope="module")
def archived(
    spark: SparkSession, minibroker_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Archived:
    """Return a topic of four partitions with gaps and odd records, and its archive in small
    batches.
    """
    topic = "replay-origin"
    topics.create(minibroker_address, topic, PARTITIONS, topics.FOR_EVER)
    client = topics.producer(minibroker_address)
    for number in range(RECORDS):
        client.produce(
            topic,
            None if number % 17 == 0 else f"value {number}".encode(),
            None if number % 5 == 0 else f"key {number % 7}".encode(),
            partition=number % 7 % 3,
            timestamp=1_700_000_000_000 + number * 10 - (500 if number % 50 == 0 else 0),
            headers=[("number", str(number).encode()), ("null", None)] if number % 3 else None,
        )
    assert client.flush(topics.SECONDS) == 0
    source = tmp_path_factory.mktemp("replay") / "archive"
    archive(topic, to=source, bootstrap=minibroker_address, spark=spark, batch_rows=100)
    return records(minibroker_address, topic), source


def test_partitions_times_and_everything_else_are_kept(
    spark: SparkSession, archived: Archived, address: str, topic: str
) -> None:
    """On each broker, in several batches; the second run finds no records."""
    originals, source = archived
    topics.create(address, topic, PARTITIONS, topics.FOR_EVER)

    def run() -> int:
        return replay(
            source,
            to_topic=topic,
            bootstrap=address,
            keep_timestamps=True,
            keep_partitions=True,
            batch_rows=120,
            spark=spark,
        ).rows

    assert run() == RECORDS
    assert records(address, topic) == originals
    assert run() == 0
    assert records(address, topic) == originals


def test_a_target_that_is_not_there_is_made(
    spark: SparkSession, archived: Archived, kafka_address: str, topic: str, tmp_path: Path
) -> None:
    """Kafka makes it in two requests, with the empty partition, too, and keeps old records.

    The README's test covers minibroker.
    """
    originals, source = archived
    address = kafka_address
    notes: list[Note] = []
    plan = ReplayPlan(
        kafka=Kafka(bootstrap=address),
        archive=str(source),
        to_topic=topic,
        keep_timestamps=True,
        keep_partitions=True,
        checkpoint_directory=str(tmp_path / "checkpoint"),
    )
    assert check(plan) == ReplayTarget(PARTITIONS, is_there=False)
    reports = Reports(threading.Event(), note=notes.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "PARTITIONS_AT_ONCE", PARTITIONS - 1)
        assert run(spark, plan, reports).rows == RECORDS
    fields = {"created_topic": topic, "partitions": PARTITIONS, "retention.ms": "-1"}
    assert [note.fields for note in notes] == [fields]
    settings = {e.name: e.value for e in preflight.topic_settings(plan.kafka, topic)}
    assert settings["retention.ms"] == "-1"
    assert settings["message.timestamp.after.max.ms"] == str(2**63 - 1)
    assert records(address, topic) == originals
    assert run(spark, plan, reports).rows == 0
    assert len(notes) == 1


def test_stopped_and_started_again_nothing_is_lost_or_there_twice(
    spark: SparkSession, archived: Archived, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """The records of each key are in order, and the archive may have grown meanwhile.

    The checkpoint of the first run, put back at the end, is refused.
    """
    originals, source = archived
    directory, old = tmp_path / "replay", tmp_path / "old"
    topics.create(minibroker_address, topic, 2)
    common: dict[str, Any] = {
        "to_topic": topic,
        "bootstrap": minibroker_address,
        "checkpoint": directory,
        "spark": spark,
        "batch_rows": 60,
    }
    total, runs = 0, 0
    while total < RECORDS:
        stop = threading.Event()

        def stop_after_one(batch: Batch, stop: threading.Event = stop) -> None:
            stop.set()

        outcome = replay(source, progress=stop_after_one, stop=stop, **common)
        total, runs = total + outcome.rows, runs + 1
        assert runs < 10
        if runs == 1:
            shutil.copytree(directory, old)
    replay(source, **common)
    copies = records(minibroker_address, topic)
    values = sorted(str(record.value) for part in copies.values() for record in part)
    assert values == sorted(str(record.value) for part in originals.values() for record in part)
    for key in {record.key for part in originals.values() for record in part if record.key}:
        assert [
            record.value for part in copies.values() for record in part if record.key == key
        ] == [record.value for part in originals.values() for record in part if record.key == key]
    shutil.rmtree(directory)
    old.rename(directory)
    with pytest.raises(PipelineError, match="the checkpoint is older than the topic; put the"):
        replay(source, **common)
    assert records(minibroker_address, topic) == copies


def test_at_a_speed_records_are_written_when_they_are_due(
    spark: SparkSession, archived: Archived, minibroker_address: str, topic: str
) -> None:
    """3.5 s of records at twice the speed: more than one batch, one of them after a second."""
    originals, source = archived
    topics.create(minibroker_address, topic, PARTITIONS, topics.FOR_EVER)
    batches: list[Batch] = []
    outcome = replay(
        source,
        to_topic=topic,
        bootstrap=minibroker_address,
        speed="2x",
        keep_partitions=True,
        keep_timestamps=True,
        spark=spark,
        progress=batches.append,
    )
    assert outcome.rows == RECORDS
    assert outcome.seconds > 1
    assert len(batches) > 1
    assert records(minibroker_address, topic) == originals


def test_impossible_jobs_are_one_sentence_and_write_nothing(
    spark: SparkSession, archived: Archived, in_process: Broker, topic: str, tmp_path: Path
) -> None:
    _, source = archived
    address = in_process.bootstrap
    common = {"bootstrap": address, "spark": spark}
    with pytest.raises(PipelineError, match="there is no archive at"):
        replay(tmp_path / "nowhere", to_topic=topic, **common)
    with pytest.raises(PipelineError, match="has no records of topic 'other'"):
        replay(source, to_topic=topic, topics="other", **common)
    refused = in_process.faults.add("CreateTopics", error="TOPIC_AUTHORIZATION_FAILED")
    with (
        refused,
        pytest.raises(
            PipelineError,
            match=f"no topic '{topic}', and the cluster does not make it .* with 4 partitions",
        ),
    ):
        replay(source, to_topic=topic, **common)
    assert refused.hits == 1
    assert topic not in in_process.topics
    topics.create(address, topic, 1)
    with pytest.raises(PipelineError, match="has no records of topic 'other'"):
        replay(source, to_topic=topic, topics="other", **common)
    with pytest.raises(PipelineError, match="has 1 partition and the archive 3"):
        replay(source, to_topic=topic, keep_partitions=True, **common)
    assert not (source / "_minibroker" / "replays" / topic).exists()

    both = tmp_path / "both"
    topics.send(address, topic, 1)
    topics.create(address, f"{topic}-b")
    topics.send(address, f"{topic}-b", 1)
    archive([topic, f"{topic}-b"], to=both, **common)
    with pytest.raises(PipelineError, match=r"has topics .* say with --topic which"):
        replay(both, to_topic=topic, **common)

    replay(both, to_topic=topic, topics=f"{topic}-b", **common)
    topics.delete(address, topic)
    with pytest.raises(PipelineError, match=r"is gone: give another directory with --checkpoint"):
        replay(both, to_topic=topic, topics=f"{topic}-b", **common)
    topics.create(address, topic)
    with pytest.raises(PipelineError, match=r"topic id .* give another directory"):
        replay(both, to_topic=topic, topics=f"{topic}-b", **common)
    assert records(address, topic) == {0: []}


def test_a_batch_of_ten_thousand_partitions_is_one_join(spark: SparkSession) -> None:
    """A condition for each range would be a tree of that depth, which Spark cannot walk.

    The hash of the topic's name is 2^31 - 634: with the numbers of its partitions it is no int.
    """
    topic = "orders-4356044"
    rows = spark.range(40_000).selectExpr(
        f"'{topic}' as topic", "cast(id % 10000 as int) as partition", "id div 10000 as offset"
    )
    ranges = [OffsetRange(topic, number, 1, 3) for number in range(10_000)]
    originals = spark.createDataFrame([tuple(span) for span in ranges], schemas.RANGE)

    joined = numbered_batch.within(rows, originals, numbered_batch.writers_of(ranges))

    assert joined.rdd.getNumPartitions() == numbered_batch.WRITERS_MAX
    assert joined.selectExpr("count(*)", "min(offset)", "max(offset)").collect() == [(20_000, 1, 2)]
    parts = [list(part) for part in joined.rdd.glom().collect()]
    assert all(part == sorted(part) for part in parts)


def test_an_index_has_a_size_that_files_do_not_change(spark: SparkSession) -> None:
    """1,000 files of each of two partitions, one of them with gaps, and 10 stretches of each."""
    files = spark.range(2_000).selectExpr(
        "concat('f', id div 2) as path",
        "'t' as topic",
        "cast(id % 2 as int) as partition",
        "id div 2 * (1 + id % 2) * 100 as first",
        "id div 2 * (1 + id % 2) * 100 + 99 as last",
        "100L as records",
    )
    stretches = sorted(replayed.stretches_of(files, 10).collect())

    assert len(stretches) == 20
    assert stretches[0] == ("t", 0, 0, 9_999, 10_000)
    assert stretches[-1] == ("t", 1, 180_000, 199_899, 10_000)
    ranges = spark.createDataFrame([("t", 0, 150, 301), ("t", 1, 299, 400)], schemas.RANGE)
    paths = sorted(row.path for row in replayed.paths_within(files, ranges).collect())
    assert paths == ["f1", "f2", "f3"]


def test_a_rate_in_bytes_is_kept_by_the_tasks_together(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(minibroker_address, topic, 2)
    client = topics.producer(minibroker_address)
    for number in range(2 * 1_500):
        client.produce(topic, b"x" * 1_000, partition=number % 2)
    assert client.flush(topics.SECONDS) == 0
    source = tmp_path / "archive"
    common = {"bootstrap": minibroker_address, "spark": spark}
    archive(topic, to=source, **common)
    begun_s = time.monotonic()

    done = replay(source, to_topic=f"{topic}-copy", max_rate="1MB/s", batch_bytes="1MB", **common)

    assert (done.rows, done.batches) == (3_000, 3)
    assert time.monotonic() - begun_s >= 3_000 * 1_000 / (1 << 20)
