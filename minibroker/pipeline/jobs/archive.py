"""`archive`: topics → files, each record exactly once.

A streaming query reads the topics. Each batch is one commit with its own identity (`table_writer`),
into a table of Iceberg or Delta or into a directory of files (`file_archive`). What a killed run
left is seen by nobody, and its batch runs again. The checkpoint is in the directory itself, so the
same call goes on where the last one ended.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from minibroker.pipeline import job_directory, preflight, sinks, sources, topic_identity
from minibroker.pipeline.checkpoint_files import start_query
from minibroker.pipeline.explain import explained
from minibroker.pipeline.file_archive import FileArchive
from minibroker.pipeline.files import files_of
from minibroker.pipeline.outcome import Outcome
from minibroker.pipeline.plan import ArchivePlan
from minibroker.pipeline.running import Watch, run_started
from minibroker.pipeline.table_writer import FileBatchWriter, TableBatchWriter
from minibroker.pipeline.tables import check as check_table
from minibroker.pipeline.tables import open_table
from minibroker.pipeline.topic_identity import Place
from minibroker.pipeline.transforms.archived import to_archive, to_text

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from minibroker.pipeline.files import FileSystem
    from minibroker.pipeline.progress import Note, Progress
    from minibroker.pipeline.table_writer import ArchiveBatchWriter


def check(plan: ArchivePlan, spark: SparkSession | None = None) -> list[str]:
    """Return the topics to archive now.

    Args:
        plan: what was asked for.
        spark: needed for a directory that is a URL; without it such a directory is not checked.

    Raises:
        PipelineError: no broker, a missing topic, or a directory of another job.
    """
    if plan.is_table:
        check_table(plan.format, plan.to)
    there = preflight.ask(plan.kafka)
    topics = preflight.chosen_topics(there, plan.topics, plan.pattern)
    files = files_of(plan.to, spark)
    if files is not None:
        found = job_directory.read_job(files, plan.to)
        job_directory.check_job(plan.to, found, job_of(plan))
        topic_identity.check(plan, Place(files, plan.to, plan.checkpoint), there, topics)
    return topics


def job_of(plan: ArchivePlan) -> Mapping[str, str]:
    """Return the settings that must be the same in every run into one directory."""
    name = {"table": plan.table} if plan.table else {}
    return {"job": "archive", "format": plan.format, **name}


def run(
    spark: SparkSession,
    plan: ArchivePlan,
    *,
    progress: Progress | None = None,
    note: Callable[[Note], None] | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Archive all records that exist now, or with `follow` go on until `stop` is set.

    Raises:
        PipelineError: it cannot be done.
    """
    files = files_of(plan.to, spark)
    topics = check(plan, spark)
    try:
        ids = preflight.topic_ids(plan.kafka, topics)
        options = {**reader_options(plan), "topicIds": json.dumps(ids)}
        rows = to_archive(
            sources.stream_topics(
                spark, sources.in_parallel(spark, options), source=plan.kafka.source
            )
        )
        if files is not None:
            place = Place(files, plan.to, plan.checkpoint)
            job_directory.write_job(files, plan.to, job_of(plan))
            topic_identity.begin(plan, place, ids)
            if plan.pattern is not None:
                progress = topic_identity.noting(plan, place, ids, progress)
        start = _start_of(plan, rows, files)
        return run_started(lambda: Watch(start(), progress), stop)
    except Exception as error:
        raise explained(error) from error


def _start_of(
    plan: ArchivePlan, rows: DataFrame, files: FileSystem | None
) -> Callable[[], StreamingQuery]:
    """Return the function that starts the query."""
    if files is None:
        raise AssertionError("with a session every path has files")
    writer: ArchiveBatchWriter
    if plan.is_table:
        writer = TableBatchWriter(open_table(plan), files, plan)
    else:
        archive = FileArchive(files, plan.to)
        if archive.is_of_spark():
            return partial(_start_of_spark, plan, rows)
        writer = FileBatchWriter(archive, files, plan)

    def start() -> StreamingQuery:
        stream = rows.writeStream.foreachBatch(writer.write)
        if not plan.follow:
            stream = stream.trigger(availableNow=True)
        elif plan.trigger_ms is not None:
            stream = stream.trigger(processingTime=_pause(plan.trigger_ms))
        return start_query(rows.sparkSession, stream, plan.checkpoint)

    return start


def _start_of_spark(plan: ArchivePlan, rows: DataFrame) -> StreamingQuery:
    """Go on with an archive that Spark's file sink has begun, with that sink."""
    return sinks.stream_to_files(
        to_text(rows) if plan.format == "csv" else rows,
        plan.to,
        checkpoint=plan.checkpoint,
        file_format=plan.format,
        available_now=not plan.follow,
        trigger=None if plan.trigger_ms is None else _pause(plan.trigger_ms),
    )


def _pause(trigger_ms: int) -> str:
    return f"{trigger_ms} milliseconds"


def reader_options(plan: ArchivePlan) -> dict[str, str]:
    """Return the options of the source: every record from the first on, with all columns."""
    chosen = {"subscribePattern": plan.pattern} if plan.pattern else {}
    return {
        **plan.kafka.options(),
        **(chosen or {"subscribe": ",".join(plan.topics)}),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(plan.batch_rows),
        "failOnDataLoss": str(plan.fail_on_data_loss).lower(),
    }
