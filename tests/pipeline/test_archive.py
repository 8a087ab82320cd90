"""`archive`: every record with every column, once, on each broker, by each source."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from minibroker.pipeline import PipelineError, archive, replay
from minibroker.pipeline.checkpoints.job_directory import write_job
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.files.paths import JOB_DIRECTORY
from minibroker.pipeline.kafka import preflight, schemas
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.schemas import ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.kafka.sink.frames import stream_to_files
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.kafka.source.frames import stream_topics
from minibroker.pipeline.tables.archived_files import all_rows
from minibroker.pipeline.tables.archived_rows import from_text, to_archive
from minibroker.pipeline.verbs.archive.job import job_of, reader_options
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.queries import run
from tests.pipeline.table_readers import READERS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from minibroker.pipeline.spark.progress import Batch

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


def rows_of(spark: SparkSession, directory: Path, file_format: str = "parquet") -> DataFrame:
    """Return an archive as its readers see it, in order."""
    rows = all_rows(spark, str(directory), file_format)
    if file_format == "csv":
        rows = from_text(rows)
    return rows.select(*schemas.ARCHIVE.names).orderBy("topic", "partition", "offset")


def offsets_of(spark: SparkSession, directory: Path) -> dict[tuple[str, int], list[int]]:
    """Return (topic, partition) → offsets in the archive, sorted, with repetitions."""
    offsets: dict[tuple[str, int], list[int]] = {}
    for row in rows_of(spark, directory).select("topic", "partition", "offset").collect():
        offsets.setdefault((row.topic, row.partition), []).append(row.offset)
    return offsets


def headers_of(row: Row) -> list[tuple[str, bytes | None]] | None:
    """Return the headers like a plain reader."""
    return [(header.key, header.value) for header in row.headers] if row.headers else None


def keep_for_ever(address: str, topic: str) -> None:
    """Set the retention of a topic to no limit: its records are of 2023."""
    entry = ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": address})
    client.incremental_alter_configs([resource])[resource].result(topics.SECONDS)


def test_every_column_of_every_record(
    spark: SparkSession, address: str, topic: str, tmp_path: Path
) -> None:
    """Odd records, aborted transactions and the broker's times, compared with a plain reader."""
    names = topics.fill_odd(address, topic)
    for name in names:
        keep_for_ever(address, name)
    topics.fill_transactional(address, f"{topic}transactional")
    names.append(f"{topic}transactional")
    batches: list[Batch] = []
    outcome = archive(
        names, to=tmp_path / "archive", bootstrap=address, spark=spark, progress=batches.append
    )
    rows = rows_of(spark, tmp_path / "archive").collect()
    for name in names:
        originals = records(address, name)[0]
        own_rows = [row for row in rows if row.topic == name]
        assert [(row.value, row.key, headers_of(row)) for row in own_rows] == [
            (record.value, record.key, record.headers) for record in originals
        ]
        assert [round(row.timestamp.timestamp() * 1000) for row in own_rows] == [
            record.timestamp_ms for record in originals
        ]
        assert {row.timestampType for row in own_rows} == {1 if name.endswith("appended") else 0}
        assert all(row.date == row.timestamp.date() for row in own_rows)
    assert outcome.rows == len(rows) == sum(batch.rows for batch in batches)
    assert batches[-1].lag == 0


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_text_formats_hold_the_same(
    spark: SparkSession, minibroker_address: str, topic: str, file_format: str, tmp_path: Path
) -> None:
    names = topics.fill_odd(minibroker_address, topic)
    for name in names:
        keep_for_ever(minibroker_address, name)
    for wrong_format in ("parquet", file_format):
        archive(
            names,
            to=tmp_path / wrong_format,
            bootstrap=minibroker_address,
            format=wrong_format,
            spark=spark,
        )
    assert (
        rows_of(spark, tmp_path / file_format, file_format).collect()
        == rows_of(spark, tmp_path / "parquet").collect()
    )


def test_the_next_run_goes_on_and_takes_new_partitions(
    spark: SparkSession, address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(address, topic, 1)
    topics.send(address, topic, 50)
    directory = tmp_path / "archive"
    assert archive(topic, to=directory, bootstrap=address, spark=spark, batch_rows=20).rows == 50
    assert archive(topic, to=directory, bootstrap=address, spark=spark).rows == 0
    topics.add_partitions(address, topic, 3)
    topics.send(address, topic, 10)
    topics.send(address, topic, 7, partition=2)
    again = archive(topic, to=directory, bootstrap=address, spark=spark)
    assert again.rows == 17
    assert offsets_of(spark, directory) == {(topic, 0): list(range(60)), (topic, 2): list(range(7))}


def test_many_partitions_are_few_files_and_a_batch_has_a_limit_in_bytes(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """60 partitions with 100 KB each, and a megabyte at most in a batch: pieces of 60 partitions
    are more than that, so the partitions take turns, and no batch has a file for each of them.
    """
    topics.create(minibroker_address, topic, 60)
    client = topics.producer(minibroker_address)
    for number in range(60 * 100):
        client.produce(topic, b"x" * 1_000, partition=number % 60)
    assert client.flush(topics.SECONDS) == 0
    batches: list[Batch] = []
    done = archive(
        topic,
        to=tmp_path / "archive",
        bootstrap=minibroker_address,
        spark=spark,
        batch_bytes="1MB",
        progress=batches.append,
    )
    assert done.rows == 60 * 100
    assert 6 <= len(batches) <= 8
    assert max(batch.rows for batch in batches) <= 1_100
    assert len(list((tmp_path / "archive").rglob("part-*.parquet"))) <= 2 * len(batches)
    offsets = offsets_of(spark, tmp_path / "archive")
    assert offsets == {(topic, number): list(range(100)) for number in range(60)}


def test_a_rate_in_bytes_is_kept(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Two tasks of a megabyte a second each at most; what else a batch costs is on top."""
    topics.create(minibroker_address, topic, 2)
    client = topics.producer(minibroker_address)
    for number in range(2 * 1_500):
        client.produce(topic, b"x" * 1_000, partition=number % 2)
    assert client.flush(topics.SECONDS) == 0
    begun_s = time.monotonic()
    done = archive(
        topic, to=tmp_path / "archive", bootstrap=minibroker_address, spark=spark, max_rate="1MB/s"
    )
    assert done.rows == 3_000
    assert time.monotonic() - begun_s >= 3_000 * 1_000 / (1 << 20)


def test_an_archive_of_sparks_file_sink_goes_on(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Archives of earlier versions have its lists, which keep what no other run has written."""
    address, directory = minibroker_address, tmp_path / "archive"
    topics.create(address, topic)
    topics.send(address, topic, 10)
    plan = ArchivePlan(Kafka(address), str(directory), (topic,))
    write_job(LocalFiles(), str(directory), job_of(plan))
    records_of = stream_topics(spark, reader_options(plan))
    rows = to_archive(records_of)
    run(
        lambda: stream_to_files(
            rows,
            plan.to,
            checkpoint=plan.checkpoint,
            file_format=plan.format,
            partition_by=ARCHIVE_PARTITION_COLUMNS,
            available_now=True,
        )
    )
    topics.send(address, topic, 5)
    assert archive(topic, to=directory, bootstrap=address, spark=spark).rows == 5
    assert offsets_of(spark, directory) == {(topic, 0): list(range(15))}
    assert spark.read.parquet(str(directory)).count() == 15
    assert not (directory / "_minibroker" / "batches").exists()


def test_an_archive_can_be_moved_and_read_by_others(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    address, directory, moved = minibroker_address, tmp_path / "archive", tmp_path / "moved"
    topics.create(address, topic, 2)
    topics.send(address, topic, 6)
    archive(topic, to=directory, bootstrap=address, spark=spark)
    directory.rename(moved)
    topics.send(address, topic, 4, partition=1)
    assert archive(topic, to=moved, bootstrap=address, spark=spark).rows == 4
    expected = [(topic, 0, number) for number in range(6)] + [(topic, 1, n) for n in range(4)]
    for reader in READERS["parquet"]:
        assert [record[:3] for record in reader(moved)] == expected, reader
    assert offsets_of(spark, moved) == {(topic, 0): list(range(6)), (topic, 1): list(range(4))}
    assert spark.read.parquet(str(moved)).count() == 10


def test_a_pattern_follows_until_it_is_told_to_stop(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """New records and a new topic are archived meanwhile; then the job ends."""
    address = minibroker_address
    for name in ("a", "b"):
        topics.create(address, f"{topic}-{name}")
    topics.send(address, f"{topic}-a", 5)
    stop, enough = threading.Event(), threading.Event()

    def follow(batch: Batch) -> None:
        if not batch.rows:
            return  # a topic that has no record yet makes a batch, too
        if batch.total_rows == 5:
            topics.send(address, f"{topic}-b", 5)
        if batch.total_rows == 10:
            topics.create(address, f"{topic}-c")
            topics.send(address, f"{topic}-c", 5)
        if batch.total_rows == 15:
            enough.set()
            stop.set()

    directory = tmp_path / "archive"
    pattern = f"{topic}-."
    outcome = archive(
        pattern=pattern,
        to=directory,
        bootstrap=address,
        follow=True,
        every="1ms",
        spark=spark,
        progress=follow,
        stop=stop,
    )
    assert outcome.was_stopped
    assert offsets_of(spark, directory) == {
        (f"{topic}-{name}", 0): list(range(5)) for name in "abc"
    }


def test_one_partition_is_read_by_every_core(
    spark: SparkSession,
    minibroker_address: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each task writes a file: two for many records, one for the few that follow.

    It writes it by itself, with the session's codec.
    """
    monkeypatch.setattr(sources, "TASK_ROWS_MIN", 10)
    address, directory = minibroker_address, tmp_path / "archive"
    own = spark.newSession()
    own.conf.set("spark.sql.parquet.compression.codec", "gzip")
    topics.create(address, topic)
    for count, files in ((20_000, 2), (9, 3)):
        topics.send(address, topic, count)
        assert archive(topic, to=directory, bootstrap=address, spark=own).rows == count
        part_files = list(directory.rglob("part-00000000?-*.parquet"))
        assert len(part_files) == files
        groups = [pq.read_metadata(file).row_group(0) for file in part_files]
        assert {group.column(0).compression for group in groups} == {"GZIP"}
    assert offsets_of(spark, directory) == {(topic, 0): list(range(20_009))}


def test_a_topic_made_anew_is_not_taken_for_the_old_one(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """It has grown past the checkpoint: by its offsets nothing is wrong."""
    address, directory = minibroker_address, tmp_path / "archive"
    topics.create(address, topic, 2)
    topics.send(address, topic, 3)
    archive(topic, to=directory, bootstrap=address, spark=spark)
    replay(directory, to_topic=f"{topic}-copy", bootstrap=address, spark=spark)
    topics.delete(address, topic)
    topics.create(address, topic)
    topics.send(address, topic, 5)

    with pytest.raises(
        PipelineError, match=r"was made anew since .*: give another directory, or --on-rec"
    ):
        archive(topic, to=directory, bootstrap=address, spark=spark)
    assert offsets_of(spark, directory) == {(topic, 0): [0, 1, 2]}

    again = archive(topic, to=directory, bootstrap=address, spark=spark, on_recreated="read")
    assert again.rows == 5
    with pytest.raises(PipelineError, match=r"made anew since the replay .* has records of both"):
        replay(directory, to_topic=f"{topic}-copy", bootstrap=address, spark=spark)
    checkpoint, old = directory / JOB_DIRECTORY / "checkpoint", tmp_path / "old"
    shutil.copytree(checkpoint, old)
    topics.send(address, topic, 1)
    assert archive(topic, to=directory, bootstrap=address, spark=spark).rows == 1
    assert offsets_of(spark, directory) == {(topic, 0): [0, 0, 1, 1, 2, 2, 3, 4, 5]}

    # An old copy of the checkpoint: its next batch has the number of one that was written.
    shutil.rmtree(checkpoint)
    old.rename(checkpoint)
    topics.send(address, topic, 1)
    with pytest.raises(PipelineError, match=r"is older than .*: put the newer checkpoint back"):
        archive(topic, to=directory, bootstrap=address, spark=spark)


def test_impossible_jobs_are_one_sentence_and_write_nothing(
    spark: SparkSession,
    minibroker_address: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, directory = minibroker_address, tmp_path / "archive"
    topics.create(address, topic)
    topics.send(address, topic, 3)
    topics.create(address, f"{topic}-other")
    common = {"bootstrap": address, "spark": spark}
    with pytest.raises(PipelineError, match=r"there is no topic 'nowhere': check its name or"):
        archive("nowhere", to=directory, **common)
    with pytest.raises(PipelineError, match=r"no topic matches 'nowhere.*'"):
        archive(pattern="nowhere.*", to=directory, **common)
    with monkeypatch.context() as patch:
        patch.setattr(preflight, "ANSWER_TIMEOUT_S", 1)  # nobody will: 15 s would show no more
        with pytest.raises(PipelineError, match=r"no broker answers at 127.0.0.1:1 "):
            archive(topic, to=directory, spark=spark, bootstrap="127.0.0.1:1")
    assert not directory.exists()

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("dear")
    with pytest.raises(PipelineError, match=r"has files that no job .* \(letter.txt\)"):
        archive(topic, to=foreign, **common)
    assert [path.name for path in foreign.iterdir()] == ["letter.txt"]

    archive(topic, to=directory, **common)
    with pytest.raises(
        PipelineError, match=r"with format 'parquet' and this one has format 'json'"
    ):
        archive(topic, to=directory, format="json", **common)
    with pytest.raises(PipelineError, match=f"holds the progress of topic {topic}, which this"):
        archive(f"{topic}-other", to=directory, **common)
    topics.delete(address, topic)
    topics.create(address, topic)
    with pytest.raises(PipelineError, match="made anew since the last run"):
        archive(topic, to=directory, **common)
    assert offsets_of(spark, directory) == {(topic, 0): [0, 1, 2]}
