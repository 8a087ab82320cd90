"""Sinks for the rows of the jobs: topics by the exactly-once sink, files by Spark's own.

    frame ──► write_topic       one batch        `writers`, a task is a transaction
          ├─► stream_to_topic   micro-batches    `writers`, each exactly once
          ├─► stream_to_files   micro-batches    Spark's file sink, each exactly once by the list
          │                                      in `_spark_metadata`
          └─► write_files       one batch        files that nobody reads yet

Nothing is computed here; what a frame has to have is written in `columns` and `schemas`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.pipeline.checkpoints import query_identity
from minibroker.pipeline.checkpoints.checkpoint_files import start_query, timed
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.kafka.python_rows import without_null_headers
from minibroker.pipeline.kafka.schemas import ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.kafka.sink.begun_batches import check_not_older
from minibroker.pipeline.kafka.sink.columns import COLUMNS, check_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMAT: Final = "minibroker"
FILE_FORMATS: Final = ("parquet", "json", "csv")
_CSV: Final = {"header": "true"}


def write_topic(frame: DataFrame, options: Mapping[str, str], *, topic: str | None = None) -> None:
    """Write a finite frame; return when all is committed.

    Args:
        frame: has the columns of `columns`; other columns are left out.
        options: of the sink, see `options`.
        topic: the topic of all rows; None: each row has it in the column `topic`.

    Raises:
        PipelineError: columns do not fit.
        pyspark.errors.PySparkException: a task failed; its text has the sentence.
    """
    chosen = _for_topic(frame, topic or options.get("topic"))
    writer = chosen.write.format(FORMAT).options(**_with_topic(options, topic))
    writer.mode("append").save()


def stream_to_topic(
    frame: DataFrame,
    options: Mapping[str, str],
    *,
    checkpoint: str,
    topic: str | None = None,
    tasks: int = 0,
    query_name: str | None = None,
    output_mode: str = "append",
    available_now: bool = False,
    trigger: str | None = None,
) -> StreamingQuery:
    """Start a query that writes each micro-batch exactly once.

    Args:
        frame: a streaming frame with the columns of `columns`; other columns are left out.
        options: of the sink, see `options`.
        checkpoint: directory of the query's progress; its id names transactions and groups.
        topic: the topic of all rows; None: each row has it in the column `topic`.
        tasks: how many tasks each micro-batch has, where the caller knows, for instance after
            `repartition(4, "key")`; 0: not known. A changed number is then refused before
            anything is written.
        query_name: in Spark's progress.
        output_mode: append, or update for aggregates.
        available_now: end when all that is there at the start is written.
        trigger: else, how often a micro-batch starts, as "10 seconds"; None: at once.

    Raises:
        PipelineError: columns do not fit, or the checkpoint is older than the topic.
    """
    chosen = _for_topic(frame, topic or options.get("topic"))
    files = files_with(frame.sparkSession, checkpoint)
    if query_identity.is_begun(files, checkpoint):
        query = query_identity.query_of(files, checkpoint)
        check_not_older(_with_topic(options, topic), query, files, checkpoint)
    writer = chosen.writeStream.format(FORMAT).options(**_with_topic(options, topic))
    if tasks:
        writer = writer.option("tasks", str(tasks))
    writer = timed(
        _with_name(writer.outputMode(output_mode), query_name),
        available_now=available_now,
        trigger=trigger,
    )
    return start_query(frame.sparkSession, writer, checkpoint)


def stream_to_files(
    frame: DataFrame,
    directory: str,
    *,
    checkpoint: str,
    file_format: str = FILE_FORMATS[0],
    partition_by: Sequence[str] = ARCHIVE_PARTITION_COLUMNS,
    query_name: str | None = None,
    available_now: bool = False,
    trigger: str | None = None,
) -> StreamingQuery:
    """Start a query that writes files; readers of `directory` see whole micro-batches, once.

    Args:
        frame: a streaming frame with the columns `partition_by`.
        directory: made if it is not there; `topic=…/date=…/part-….parquet` below it.
        checkpoint: directory of the query's progress.
        file_format: parquet, json or csv; csv takes no binary columns and no arrays.
        partition_by: columns that become directories.
        query_name, available_now, trigger: as of `stream_to_topic`.

    Raises:
        PipelineError: another format, or a column to partition by is missing.
    """
    if file_format not in FILE_FORMATS:
        raise PipelineError(
            f"{file_format!r} is no format of files here: choose {', '.join(FILE_FORMATS)}"
        )
    for name in partition_by:
        if name not in frame.columns:
            raise PipelineError(
                f"files are to be partitioned by {name!r}, which the frame does not have; it has "
                f"{', '.join(frame.columns)}"
            )
    writer = frame.writeStream.format(file_format).option("path", directory).outputMode("append")
    if file_format == "csv":
        writer = writer.options(**_CSV)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer = timed(_with_name(writer, query_name), available_now=available_now, trigger=trigger)
    return start_query(frame.sparkSession, writer, checkpoint, directory)


def write_files(
    frame: DataFrame, directory: str, *, file_format: str, partition_by: Sequence[str]
) -> None:
    """Write a finite frame into `directory`, and replace its content; arguments as
    `stream_to_files`.
    """
    options = _CSV if file_format == "csv" else {}
    writer = frame.write.format(file_format).options(**options).partitionBy(*partition_by)
    writer.mode("overwrite").save(directory)


def _for_topic(frame: DataFrame, topic: str | None) -> DataFrame:
    """Return only the columns that the sink reads: no others travel to the tasks' Python."""
    check_columns(frame.schema, topic)
    dropped = {"topic"} if topic is not None else set()
    names = [name for name in frame.columns if name in COLUMNS and name not in dropped]
    return without_null_headers(frame.select(*names))


def _with_topic(options: Mapping[str, str], topic: str | None) -> dict[str, str]:
    return {**options, "topic": topic} if topic is not None else dict(options)


def _with_name(writer: DataStreamWriter, query_name: str | None) -> DataStreamWriter:
    return writer if query_name is None else writer.queryName(query_name)
