"""Dead letters: records that a job cannot use, in a topic or in a directory. One way for all verbs.

The tasks that decode a batch also write its dead letters, into files of the batch. The driver
publishes them under the number of the batch: into a topic by the exactly-once sink, into a
directory by a list of its own. An archive does so before the batch is committed, a rollup behind
that (`rollup.bad_records`). A job whose records are Spark's rows publishes a frame of them
(`BadDates`). A batch that is repeated publishes the same records again, which changes nothing. So
each dead letter is there once.

    DIR/topic=…/date=…/part-….json     one line for each record, with the reason and its position

A job that masks keeps only the reason and the position: the letter would have what a mask hides.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from minibroker.cli.kinds import is_path
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.checkpoints.query_identity import check_owner
from minibroker.pipeline.files.file_system import files_of, files_with
from minibroker.pipeline.files.object_stores import is_object_store
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.schemas import ARCHIVE, ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.operations import dated_columns
from minibroker.pipeline.operations.dated_columns import WithoutBad
from minibroker.pipeline.operations.dead_letter_rows import REASON, to_records, to_rows
from minibroker.pipeline.spark.numbered_batch import write_once
from minibroker.pipeline.tables.choice import place_of
from minibroker.pipeline.tables.file_archive import FileArchive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.files.object_stores import ObjectStore
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.kafka.preflight import ClusterTopics
    from minibroker.pipeline.tables.table import BatchId

JOB: Final[Mapping[str, str]] = {"job": "dead letters"}
_CONTENT: Final = ("key", "value", "headers")


class DeadLetters(ABC):
    """The place of the dead letters of one job; used by the driver alone."""

    def __init__(self, store: ObjectStore | None = None) -> None:
        """Take the store in which the tasks write the batches, None for paths."""
        self._store = store

    def publish(self, spark: SparkSession, batch: BatchId, paths: Sequence[str]) -> None:
        """Publish the records in files of `data_files.DEAD_LETTER`, once for each batch."""
        if paths:
            self.publish_rows(batch, _read(spark, paths, self._store))

    @abstractmethod
    def publish_rows(self, batch: BatchId, records: DataFrame) -> None:
        """Publish records with the columns of `schemas.ARCHIVE` and `reason`, as `publish`."""


class DeadLetterTopic(DeadLetters):
    """Dead letters in a topic."""

    def __init__(
        self, options: Mapping[str, str], topic: str, store: ObjectStore | None = None
    ) -> None:
        """Take the options of the sink (`sink.options`), and the store of the batches' files."""
        super().__init__(store)
        self._options = {**options, "topic": topic, "tasks": "1"}
        self._run = str(uuid.uuid4())

    def publish_rows(self, batch: BatchId, records: DataFrame) -> None:
        spark = records.sparkSession
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would choose the tasks anew
        write_once(
            to_records(records),
            self._options,
            name=f"dead-letters-{batch.query}",
            run=self._run,
            number=batch.number,
        )


class DeadLetterDirectory(DeadLetters):
    """Dead letters in a directory of JSON lines."""

    def __init__(self, files: FileSystem, directory: str, store: ObjectStore | None = None) -> None:
        super().__init__(store)
        self._files = files
        self._archive = FileArchive(files, directory)
        self._directory = directory

    def publish_rows(self, batch: BatchId, records: DataFrame) -> None:
        check_owner(self._files, self._directory, batch.query)
        if self._archive.has(batch):
            return
        stage = self._archive.new_stage(batch)
        if is_object_store(stage):
            self._write_here(to_rows(records), stage)
        else:
            sinks.write_files(
                to_rows(records),
                stage,
                file_format="json",
                partition_by=ARCHIVE_PARTITION_COLUMNS,
            )
        self._archive.commit(batch, stage)

    def _write_here(self, rows: DataFrame, stage: str) -> None:
        """Write the lines from this process: Spark may know no store."""
        names = [name for name in rows.columns if name not in ARCHIVE_PARTITION_COLUMNS]
        lines: dict[str, list[str]] = {}
        line = f.to_json(f.struct(*names)).alias("line")
        # As text: Python has no date behind the year 9999, and a letter may be there for its date.
        places = [f.col(name).cast("string").alias(name) for name in ARCHIVE_PARTITION_COLUMNS]
        for row in rows.select(*places, line).collect():
            directory = join(stage, f"topic={row['topic']}", f"date={row['date']}")
            lines.setdefault(directory, []).append(row["line"])
        for directory, texts in lines.items():
            self._files.write(join(directory, "part-00000.json"), "\n".join(texts) + "\n")


def check(
    place: str | None,
    cluster: ClusterTopics,
    spark: SparkSession | None = None,
    files: FileSystem | None = None,
) -> None:
    """Raise PipelineError if the place of the dead letters is not there, or another job's.

    Args:
        place: a topic or a directory; None: dead letters fail the job.
        cluster: topics of the cluster.
        spark: needed for a directory that is a URL.
        files: of the job if PyArrow writes it into a store; None: those of the place.
    """
    if place is None:
        return
    if not is_path(place):
        preflight.check_target_exists(cluster, place)
        return
    files = files or files_of(place, spark)
    if files is not None:
        job_directory.check_job(place, job_directory.read_job(files, place), JOB)


def open_place(
    place: str | None, kafka: Kafka, spark: SparkSession, store: ObjectStore | None = None
) -> DeadLetters | None:
    """Return the place of the dead letters, None if they fail the job.

    Args:
        place: a topic of `kafka`, or a directory.
        store: settings of the store in which the tasks write the batches, None for a path.
    """
    if place is None:
        return None
    if not is_path(place):
        return DeadLetterTopic(kafka.writer_options(), place, store)
    files = files_with(spark, place) if store is None else place_of(place, store).files
    job_directory.write_job(files, place, JOB)
    return DeadLetterDirectory(files, place, store)


class BadDates:
    """The records of Spark's rows with a bad date (`operations.record_times`), and their place."""

    def __init__(
        self, place: DeadLetters, files: FileSystem, checkpoint: str, *, hides: bool
    ) -> None:
        """Args:
        place: of the records.
        files: of the checkpoint.
        checkpoint: of the query, which has the times of its batches.
        hides: whether keys, values and headers are left out: the job masks them.
        """
        self._place = place
        self._files = files
        self._checkpoint = checkpoint
        self._hides = hides

    def now_ms(self, number: int) -> int:
        """Return the time of a batch. Raises PipelineError."""
        return job_directory.batch_time_ms(self._files, self._checkpoint, number)

    def without(self, rows: DataFrame, batch: BatchId) -> WithoutBad:
        """Publish the bad records of a batch, and return the good ones.

        Args:
            rows: with the columns of `schemas.RECORD_WITH_HEADERS`, and perhaps more. They are read
                twice, or three times if some are bad.
            batch: the one that they belong to.
        """
        with_reasons = dated_columns.judged(rows, self.now_ms(batch.number))
        [counts] = with_reasons.agg(f.count(f.lit(1)), f.count(REASON)).collect()
        good = with_reasons.where(f.col(REASON).isNull()).drop(REASON)
        if counts[1]:
            bad = with_reasons.where(f.col(REASON).isNotNull())
            letters = bad.withColumn("date", f.to_date("timestamp")).select(*ARCHIVE.names, REASON)
            for name in _CONTENT if self._hides else ():
                letters = letters.withColumn(name, f.lit(None).cast(ARCHIVE[name].dataType))
            self._place.publish_rows(batch, letters)
        return WithoutBad(good, counts[0] - counts[1], counts[1])


def bad_dates(
    spark: SparkSession,
    place: str | None,
    kafka: Kafka,
    *,
    files: FileSystem,
    checkpoint: str,
    hides: bool,
) -> BadDates | None:
    """Return the bad dates of a job with a place for them, None if it has none.

    Args:
        place: a topic of `kafka`, a directory, or None.
        files: as of `BadDates`, with the arguments behind it.
    """
    letters = open_place(place, kafka, spark)
    if letters is None:
        return None
    return BadDates(letters, files, checkpoint, hides=hides)


def _read(spark: SparkSession, paths: Sequence[str], store: ObjectStore | None) -> DataFrame:
    """Return the records in files of a batch; those in a store need no Hadoop that knows it."""
    schema = StructType([*ARCHIVE.fields, StructField(REASON, StringType())])
    if store is None:
        return spark.read.schema(schema).parquet(*paths)
    from minibroker.pipeline.tables.data_access import open_input  # noqa: PLC0415  PyArrow

    tables = [pq.ParquetFile(open_input(path, store)).read() for path in paths]
    return spark.createDataFrame(pa.concat_tables(tables).select(schema.names), schema)
