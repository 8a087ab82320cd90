"""Dead letters: records that a job cannot decode, in a topic or in a directory.

The tasks that decode a batch also write its dead letters, into files of the batch. The driver
publishes them under the number of the batch: into a topic by the exactly-once sink, into a
directory by a list of its own. An archive does so before the batch is committed, a rollup behind
that (`rollups.bad_records`). A batch that is repeated publishes the same files again, which changes
nothing. So the topic is read once, and each dead letter is there once.

    DIR/topic=…/date=…/part-….json     one line for each record, with the reason
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql.types import StringType, StructField, StructType

from minibroker.pipeline import preflight
from minibroker.pipeline.files import files_of, files_with
from minibroker.pipeline.replays import writer as replay_writer
from minibroker.pipeline.replays.source import ReplaySource
from minibroker.pipeline.schemas import ARCHIVE, ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.sink import frames as sinks
from minibroker.pipeline.state import job_directory
from minibroker.pipeline.state.query_identity import check_owner
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.transforms.dead_letters import REASON, to_records, to_rows
from minibroker.pipeline.verbs.kinds import is_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files import FileSystem
    from minibroker.pipeline.plan import Kafka
    from minibroker.pipeline.preflight import ClusterTopics
    from minibroker.pipeline.tables.table import BatchId

JOB: Final[Mapping[str, str]] = {"job": "dead letters"}


class DeadLetters(Protocol):
    """The place of the dead letters of one archive; used by the driver alone."""

    def publish(self, spark: SparkSession, batch: BatchId, paths: Sequence[str]) -> None:
        """Publish the records in files of `decoded_sink.DEAD_LETTER`, once for each batch."""


class DeadLetterTopic:
    """Dead letters in a topic."""

    def __init__(self, options: Mapping[str, str], topic: str) -> None:
        """Take the options of the sink, see `sink.options`."""
        self._options = {**options, "topic": topic, "tasks": "1"}
        self._run = str(uuid.uuid4())

    def publish(self, spark: SparkSession, batch: BatchId, paths: Sequence[str]) -> None:
        if not paths:
            return
        spark.dataSource.register(ReplaySource)
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would choose the tasks anew
        replay_writer.write_once(
            to_records(_read(spark, paths)),
            self._options,
            name=f"dead-letters-{batch.query}",
            run=self._run,
            number=batch.number,
        )


class DeadLetterDirectory:
    """Dead letters in a directory of JSON lines."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._archive = FileArchive(files, directory)
        self._directory = directory

    def publish(self, spark: SparkSession, batch: BatchId, paths: Sequence[str]) -> None:
        if not paths:
            return
        check_owner(self._files, self._directory, batch.query)
        if self._archive.has(batch):
            return
        stage = self._archive.new_stage(batch)
        sinks.write_files(
            to_rows(_read(spark, paths)),
            stage,
            file_format="json",
            partition_by=ARCHIVE_PARTITION_COLUMNS,
        )
        self._archive.commit(batch, stage)


def check(place: str | None, there: ClusterTopics, spark: SparkSession | None = None) -> None:
    """Raise PipelineError if the place of the dead letters is not there, or another job's.

    Args:
        place: a topic or a directory; None: dead letters fail the job.
        there: topics of the cluster.
        spark: needed for a directory that is a URL.
    """
    if place is None:
        return
    if not is_path(place):
        preflight.check_topic_exists(there, place)
        return
    files = files_of(place, spark)
    if files is not None:
        job_directory.check_job(place, job_directory.read_job(files, place), JOB)


def open_place(place: str | None, kafka: Kafka, spark: SparkSession) -> DeadLetters | None:
    """Return the place of the dead letters, None if they fail the job.

    Args:
        place: a topic of `kafka`, or a directory.
        kafka: of the job.
        spark: of the job.
    """
    if place is None:
        return None
    if not is_path(place):
        return DeadLetterTopic(kafka.writer_options(), place)
    files = files_with(spark, place)
    job_directory.write_job(files, place, JOB)
    return DeadLetterDirectory(files, place)


def _read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    schema = StructType([*ARCHIVE.fields, StructField(REASON, StringType())])
    return spark.read.schema(schema).parquet(*paths)
