"""`archive`: topics → files, each record exactly once.

A streaming query reads the topics, or only their offsets, and the tasks that write the files read
the records (`archive.task`). Each batch is one commit with its own identity
(`archive.decoded_writer`), into a table of Iceberg or Delta or into a directory of files
(`tables.file_archive`). No reader sees the files of a killed run, and its batch runs again.
The checkpoint is in the directory itself, so the same call goes on where the last one ended.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql.functions import current_timestamp

from minibroker.cli import quantities
from minibroker.cli.quantities import duration
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.checkpoints.checkpoint_files import start_query, timed
from minibroker.pipeline.cli.dry_run import (
    Lines,
    ahead_text,
    limits_text,
    operations_lines,
    origin_text,
    rate_text,
    topics_text,
)
from minibroker.pipeline.files.file_system import LocalFiles, files_with
from minibroker.pipeline.files.object_stores import check_hadoop, store_of_session
from minibroker.pipeline.files.paths import absolute, is_remote
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.schemas import ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.operations.frames import check_condition, chosen, operated
from minibroker.pipeline.operations.record_times import stations_of
from minibroker.pipeline.operations.rows import source_options
from minibroker.pipeline.options.shared import pause_option, trigger_of
from minibroker.pipeline.spark import dead_letters, source_topics
from minibroker.pipeline.spark.job_operations import (
    FEW,
    CheckedPlaces,
    begin_operations,
    check_operations,
    records_ahead,
)
from minibroker.pipeline.spark.progress import Outcome, Reports
from minibroker.pipeline.spark.running import Watch, run_started
from minibroker.pipeline.spark.source_topics import Place, SkippedOffsets, with_skips
from minibroker.pipeline.tables.archived_rows import to_archive, to_text
from minibroker.pipeline.tables.choice import check as check_table
from minibroker.pipeline.tables.choice import place_of
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.table import TablePlace
from minibroker.pipeline.values.schema_text import schema_text
from minibroker.pipeline.verbs.archive import task as archive_task
from minibroker.pipeline.verbs.archive.decoded import (
    check_columns,
    check_same_columns,
    columns_of_job,
    columns_writer,
)
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.archive.table_writer import FileBatchWriter, compression_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.operations.rows import RowOperations
    from minibroker.pipeline.spark.dead_letters import BadDates
    from minibroker.pipeline.spark.job_operations import RunOperations
    from minibroker.pipeline.spark.progress import Progress
    from minibroker.pipeline.verbs.archive.table_writer import ArchiveBatchWriter


def check(plan: ArchivePlan, spark: SparkSession | None = None) -> list[str]:
    """Return the topics to archive now.

    Args:
        spark: needed for a directory that is a URL; without it such a directory is not checked.

    Raises:
        PipelineError: no broker, a missing topic, or a directory of another job.
    """
    if plan.is_table:
        check_table(plan.format, plan.to)
    if plan.decoded_columns:
        check_columns(plan)
    cluster = preflight.ask(plan.kafka)
    topics = preflight.chosen_topics(cluster, plan.topics, plan.pattern)
    files = None if spark is None and is_remote(plan.to) else _place(plan, spark).files
    if files is not None:
        claim = _claim_of(plan, files)
        job_directory.check_job(plan.to, claim, job_of(plan))
        check_operations(plan.operations, plan.to, claim, in_result=True)
        check_same_columns(plan, claim)
        source_topics.check(plan, Place(files, plan.to, plan.checkpoint), cluster, topics)
    dead_letters.check(plan.dead_letters, cluster, spark, files if plan.takes_store else None)
    return topics


def _claim_of(plan: ArchivePlan, files: FileSystem) -> Mapping[str, str]:
    last = job_directory.last_committed(files, plan.checkpoint)
    return job_directory.claim_of(files, plan.to, last, in_result=True)


def job_of(plan: ArchivePlan) -> Mapping[str, str]:
    """Return the settings that must be the same in every run into one directory."""
    name = {"table": plan.table} if plan.table else {}
    return {"job": "archive", "format": plan.format, **name, **columns_of_job(plan)}


def describe(plan: ArchivePlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    topics = check(plan)
    ending = "and goes on with what comes" if plan.follow else "and ends"
    return [
        ("archive", topics_text(plan.kafka, topics)),
        ("from", origin_text(plan.kafka)),
        ("to", _archived_as(plan)),
        ("copies", f"{ahead_text(plan.kafka, topics, plan.checkpoint, plan.operations)}, {ending}"),
        (
            "batches",
            f"of {limits_text(plan.batch_rows, plan.batch_bytes)}{rate_text(plan.max_rate)}"
            f"{_pace(plan)}",
        ),
        *operations_lines(plan.operations, plan.to),
    ]


def _archived_as(plan: ArchivePlan) -> str:
    if not plan.is_table:
        return f"{plan.to}, {plan.format} files by topic and date"
    catalogue_text = f", {plan.table} in a catalogue" if plan.table else ""
    size = quantities.size(plan.target_bytes)
    return f"{plan.to}, {plan.format} table{catalogue_text}, files of {size}"


def _pace(plan: ArchivePlan) -> str:
    if not plan.follow or plan.trigger_ms is None:
        return ""
    return f", one every {duration(plan.trigger_ms)} once none is full"


def run(spark: SparkSession, plan: ArchivePlan, reports: Reports) -> Outcome:
    """Archive all records that exist now, or with `follow` go on until it is stopped.

    Raises:
        PipelineError: it cannot be done.
    """
    check_hadoop(spark, plan.checkpoint)
    archive_place = _place(plan, spark)
    files = archive_place.files
    topics = check(plan, spark)
    ids = preflight.topic_ids(plan.kafka, topics)
    claim = _claim_of(plan, files)
    run_operations = begin_operations(plan.operations, files, plan.to, claim, in_result=True)
    plan = plan._replace(operations=run_operations.operations)
    fields = None if plan.schema is None else schema_text(plan.schema)
    check_condition(spark, plan.operations, fields)
    options = sources.in_parallel(spark, {**reader_options(plan), "topicIds": json.dumps(ids)})
    place = Place(files, plan.to, plan.checkpoint)
    if not _is_met(spark, plan, run_operations, place, reports.stop):
        return Outcome(was_stopped=reports.stop.is_set())
    first = _first_records(spark, plan, place) if plan.masks_columns and not claim else None
    job_directory.write_job(files, plan.to, {**job_of(plan), **run_operations.identity}, claim)
    source_topics.begin(plan, place, ids)
    skipped, progress = SkippedOffsets(), reports.progress
    if not plan.fail_on_data_loss:
        progress = with_skips(plan.kafka, place, skipped, reports.note, progress)
    if plan.pattern is not None:
        progress = source_topics.with_new_ids(plan, place, ids, progress)

    def records() -> DataFrame:
        source_rows = sources.stream_topics(spark, options)
        operations = run_operations.operations
        if plan.masks_columns:
            operations = operations.without_changes
        operations = _with_schema(operations, fields)
        now = None if plan.dead_letter_place is None else current_timestamp()
        return to_archive(operated(source_rows, operations, run_operations.secret, now=now))

    with ExitStack() as stack:
        start = _start_of(
            spark,
            plan,
            options,
            archive_place,
            records=records,
            topics=topics,
            secret=run_operations.secret,
            first=first,
            stack=stack,
        )
        outcome = run_operations.with_missed(run_started(lambda: start(progress), reports.stop))
        return outcome._replace(skipped_offsets=skipped.offsets)


def _is_met(
    spark: SparkSession,
    plan: ArchivePlan,
    run_operations: RunOperations,
    place: Place,
    stop: threading.Event | None,
) -> bool:
    """Check the masks with the first records; return False if there are none, see `begin`."""
    fields = None if plan.schema is None else schema_text(plan.schema)

    def chosen_ahead() -> DataFrame:
        ahead = records_ahead(spark, reader_options(plan), place)
        return chosen(ahead, _with_schema(plan.operations, fields))

    operations = _of_bytes(plan, run_operations.operations)
    places = CheckedPlaces(operations, run_operations.secret, place.files, place.directory)
    return places.begin(chosen_ahead, plan.batch_rows, stop=stop, waits=plan.follow)


def _first_records(spark: SparkSession, plan: ArchivePlan, place: Place) -> pa.Table:
    """Return `key`, `value` and `headers` of the records to archive first; none if they are many.

    No decision about all of a batch can be made with a part of it.
    """
    ahead = chosen(records_ahead(spark, reader_options(plan), place), plan.operations)
    records = ahead.select("key", "value", "headers").limit(FEW + 1).toArrow()
    return records if records.num_rows <= FEW else records.slice(0, 0)


def _with_schema(operations: RowOperations, fields: str | None) -> RowOperations:
    """Return the operations, whose condition knows the fields of `--schema`."""
    return operations if operations.value_schema else operations._replace(value_schema=fields)


def _of_bytes(plan: ArchivePlan, operations: RowOperations) -> RowOperations:
    """Return the masks and fields of what stays bytes: those of columns have types to check."""
    if not plan.masks_columns:
        return operations
    decoded = plan.decoded_columns
    rules = [rule for rule in operations.rules if rule.path.target not in decoded]
    return operations._replace(rules=tuple(rules), fields=())


def _start_of(
    spark: SparkSession,
    plan: ArchivePlan,
    options: Mapping[str, str],
    place: TablePlace,
    *,
    records: Callable[[], DataFrame],
    topics: Sequence[str],
    secret: bytes,
    first: pa.Table | None,
    stack: ExitStack,
) -> Callable[[Progress | None], Watch]:
    """Return the function that starts the query.

    Args:
        spark: the session of the job.
        records: returns the records to write, as a stream.
        topics: to archive now.
        secret: of the hashes in decoded columns.
        first: as of `columns_writer`.
        stack: ends what the writer holds, once the query is over.
    """
    files = place.files
    archive = None if plan.is_table else FileArchive(files, plan.to)
    if archive is not None and archive.is_of_spark():
        rows = records()
        return lambda progress: Watch(_start_of_spark(plan, rows), progress)
    if archive is not None:
        archive.finish()
    task = None
    if reads_in_tasks(spark, plan):
        task = archive_task.options_of(options, stations_of(plan.operations))
    writer: ArchiveBatchWriter
    if archive is None or plan.decoded_columns or task is not None:
        writer = columns_writer(spark, plan, place, topics, task, secret=secret, first=first)
        stack.callback(writer.close)
    else:
        writer = FileBatchWriter(archive, files, plan, _bad_dates(spark, plan, files))
    is_ranges = task is not None
    batches = sources.stream_ranges(spark, options) if is_ranges else records()

    def start(progress: Progress | None) -> Watch:
        stream = timed(
            batches.writeStream.foreachBatch(writer.write),
            available_now=not plan.follow,
            trigger=trigger_of(plan.trigger_ms),
        )
        query = start_query(spark, stream, plan.checkpoint)
        rows_of = (lambda facts: writer.rows.pop(facts["batchId"], 0)) if is_ranges else None
        metrics_of = lambda facts: writer.metrics.pop(facts["batchId"], {})  # noqa: E731
        return Watch(query, progress, rows_of=rows_of, metrics_of=metrics_of)

    return start


def _place(plan: ArchivePlan, spark: SparkSession | None) -> TablePlace:
    """Return the place of the archive.

    PyArrow writes tables and decoded columns, also into a store, and the small files beside them go
    the same way. Spark's writers make all else.
    """
    if plan.takes_store and spark is not None:
        return place_of(plan.to, store_of_session(plan.to, spark, os.environ, plan.storage))
    files = LocalFiles() if spark is None else files_with(spark, plan.to)
    return TablePlace(absolute(plan.to), files)


def reads_in_tasks(spark: SparkSession, plan: ArchivePlan) -> bool:
    """Return whether the tasks that write the files read the records, too.

    They write with PyArrow: Parquet, on paths of this machine. Operations on rows are Spark's, but
    for a range of time, and for masks of decoded columns.
    """
    operations = plan.operations.without_changes if plan.masks_columns else plan.operations
    if not operations.is_time_alone:
        return False
    is_parquet_here = plan.format == "parquet" and not is_remote(plan.to)
    return (
        plan.is_table
        or bool(plan.decoded_columns)
        or (is_parquet_here and compression_of(spark) is not None)
    )


def _bad_dates(spark: SparkSession, plan: ArchivePlan, files: FileSystem) -> BadDates | None:
    """Return what takes records with a bad date out of Spark's rows, which are masked already."""
    return dead_letters.bad_dates(
        spark,
        plan.dead_letters,
        plan.kafka,
        files=files,
        checkpoint=plan.checkpoint,
        hides=False,
    )


def _start_of_spark(plan: ArchivePlan, rows: DataFrame) -> StreamingQuery:
    """Go on with an archive that Spark's file sink has begun, with that sink."""
    return sinks.stream_to_files(
        to_text(rows) if plan.format == "csv" else rows,
        plan.to,
        checkpoint=plan.checkpoint,
        file_format=plan.format,
        partition_by=ARCHIVE_PARTITION_COLUMNS,
        available_now=not plan.follow,
        trigger=trigger_of(plan.trigger_ms),
    )


def reader_options(plan: ArchivePlan) -> dict[str, str]:
    """Return the options of the source: every record from the first on, with all columns."""
    chosen = {"subscribePattern": plan.pattern} if plan.pattern else {}
    return {
        **plan.kafka.options(),
        **(chosen or {"subscribe": ",".join(plan.topics)}),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        **sources.limits(plan.batch_rows, plan.batch_bytes, plan.max_rate),
        **pause_option(plan.trigger_ms),
        "failOnDataLoss": str(plan.fail_on_data_loss).lower(),
        **source_options(plan.operations),
    }
