"""Sinks for the rows of the jobs: topics by the exactly-once sink, files by Spark's own.

    frame ──► stream_to_topic   micro-batches    `writers`, each exactly once
          ├─► stream_to_files   micro-batches    Spark's file sink, each exactly once by the list
          │                                      in `_spark_metadata`
          └─► write_files       one batch        files that nobody reads yet

Nothing is computed here; what a frame has to have is written in `columns` and `schemas`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.pipeline.checkpoints import query_identity
from minibroker.pipeline.checkpoints.checkpoint_files import start_query, timed
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.kafka.python_rows import without_null_headers
from minibroker.pipeline.kafka.sink.columns import COLUMNS, check_columns
from minibroker.pipeline.kafka.sink.task_markers import check_not_older

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT: Final = "minibroker"
_CSV: Final = {"header": "true"}


def stream_to_topic(
    frame: DataFrame,
    options: Mapping[str, str],
    *,
    checkpoint: str,
    topic: str,
    available_now: bool = False,
    trigger: str | None = None,
) -> StreamingQuery:
    """Start a query that writes each micro-batch exactly once.

    Args:
        frame: a streaming frame with the columns of `columns`; other columns are left out.
        options: of the sink, see `options`.
        checkpoint: directory of the query's progress; its id names transactions and groups.
        topic: the topic of all rows.
        available_now: end when all that is there at the start is written.
        trigger: else, how often a micro-batch starts, as "10 seconds"; None: at once.

    Raises:
        PipelineError: columns do not fit, or the checkpoint is older than the topic.
    """
    check_columns(frame.schema, topic)
    # No other column travels to the tasks' Python.
    names = [name for name in frame.columns if name in COLUMNS and name != "topic"]
    rows = without_null_headers(frame.select(*names))
    options = {**options, "topic": topic}
    files = files_with(frame.sparkSession, checkpoint)
    if query_identity.is_begun(files, checkpoint):
        query = query_identity.query_of(files, checkpoint)
        check_not_older(options, query, files, checkpoint)
    writer = rows.writeStream.format(FORMAT).options(**options).outputMode("append")
    writer = timed(writer, available_now=available_now, trigger=trigger)
    return start_query(frame.sparkSession, writer, checkpoint)


def stream_to_files(
    frame: DataFrame,
    directory: str,
    *,
    checkpoint: str,
    file_format: str,
    partition_by: Sequence[str],
    available_now: bool = False,
    trigger: str | None = None,
) -> StreamingQuery:
    """Start a query that writes files; readers of `directory` see whole micro-batches, once.

    Args:
        frame: a streaming frame.
        directory: made if it is not there; `topic=…/date=…/part-….parquet` below it.
        checkpoint: directory of the query's progress.
        file_format: parquet, json or csv; csv takes no binary columns and no arrays.
        partition_by: columns that become directories.
        available_now, trigger: as of `stream_to_topic`.
    """
    writer = frame.writeStream.format(file_format).option("path", directory).outputMode("append")
    if file_format == "csv":
        writer = writer.options(**_CSV)
    writer = writer.partitionBy(*partition_by)
    writer = timed(writer, available_now=available_now, trigger=trigger)
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
