"""`rollup`: a topic of JSON values → aggregates over windows of time, in files or a topic.

A window is final once the watermark has passed its end: later records of it are too late, and it is
written once. Open windows stay in the checkpoint for the next run. A run into files that does not
follow also writes the open windows, as provisional rows. The next run removes these before it
begins (`rollup.provisional_windows`). The tasks of the same query write the bad records
(`rollup.bad_records`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import TimestampType

from minibroker.cli.quantities import duration
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.cli.dry_run import (
    Lines,
    ahead_text,
    operations_lines,
    origin_text,
    topics_text,
)
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import analysed_quietly, analysis_sentence
from minibroker.pipeline.files.file_system import files_of, files_with
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.operations import json_columns as json_values
from minibroker.pipeline.operations.frames import chosen, operated
from minibroker.pipeline.operations.rows import source_options
from minibroker.pipeline.operations.value_schema import check as check_schema
from minibroker.pipeline.operations.value_schema import schema_of
from minibroker.pipeline.options.shared import pause_option
from minibroker.pipeline.spark import source_topics
from minibroker.pipeline.spark.job_operations import (
    CheckedPlaces,
    begin_operations,
    check_operations,
    records_ahead,
)
from minibroker.pipeline.spark.progress import Outcome, Reports
from minibroker.pipeline.spark.running import Watch, run_started
from minibroker.pipeline.spark.source_topics import Place, SkippedOffsets, with_skips
from minibroker.pipeline.verbs.rollup import (
    bad_records,
    committed_files,
    provisional_windows,
    windows,
)
from minibroker.pipeline.verbs.rollup.plan import RollupPlan

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.types import StructType

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.operations.rows import RowOperations
    from minibroker.pipeline.spark.job_operations import RunOperations


_NEWER: Final = ("schema", "watermark", "isolation")
"""Names in the identity that earlier versions did not write."""


def check(plan: RollupPlan, spark: SparkSession | None = None) -> None:
    """Check the brokers and the directories; with a session also the schema of the first run.

    Raises:
        PipelineError: no broker, a missing topic, no schema, or a directory or checkpoint of
            another job.
    """
    check_schema(plan.schema, plan.example)
    cluster = preflight.ask(plan.kafka)
    preflight.check_topic_exists(cluster, plan.topic)
    if plan.to_topic is not None:
        preflight.check_target_exists(cluster, plan.to_topic)
    owner = plan.owner
    files = files_of(owner, spark)
    if files is not None:
        claim = _claim_of(plan, files)
        schema = None if spark is None else schema_of(spark, plan.schema, plan.example)
        job_directory.check_job(owner, claim, job_of(plan, schema), newer=_NEWER)
        in_result = plan.to_topic is None
        check_operations(plan.operations, owner, claim, in_result=in_result)
        place = Place(files, owner, plan.checkpoint)
        source_topics.check(plan, place, cluster, [plan.topic])
    bad_records.check(plan, cluster, spark)


def _claim_of(plan: RollupPlan, files: FileSystem) -> Mapping[str, str]:
    last = job_directory.last_begun(files, plan.checkpoint)
    in_result = plan.to_topic is None
    return job_directory.claim_of(files, plan.owner, last, in_result=in_result)


def job_of(plan: RollupPlan, schema: StructType | None = None) -> Mapping[str, str]:
    """Return the settings that decide the windows: they stay the same with one checkpoint.

    Args:
        schema: of the values; None before there is a session to read it.
    """
    schema_part = {} if schema is None else {"schema": schema.simpleString()}
    return {
        "job": "rollup",
        "topic": plan.topic,
        "to": f"topic {plan.to_topic}" if plan.to_topic else f"{plan.format} files",
        "window": f"{plan.window_ms} ms every {plan.slide_ms or plan.window_ms} ms",
        "time": plan.time or "record.timestamp",
        "by": "; ".join(plan.by),
        "aggregates": "; ".join(plan.aggregates),
        "watermark": f"{plan.watermark_ms} ms",
        "isolation": plan.kafka.options()["kafka.isolation.level"],
        **schema_part,
    }


def describe(plan: RollupPlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    check(plan)
    slide = f", one every {duration(plan.slide_ms)}" if plan.slide_ms else ""
    return [
        ("rollup", topics_text(plan.kafka, [plan.topic])),
        ("from", origin_text(plan.kafka)),
        ("windows", f"of {duration(plan.window_ms)}{slide}, by {plan.time or 'record.timestamp'}"),
        ("by", ", ".join(plan.by) or "nothing: one row a window"),
        ("computes", ", ".join(plan.aggregates)),
        ("late", f"records more than {duration(plan.watermark_ms)} behind the latest are left out"),
        ("values", plan.schema or f"as in {plan.example}"),
        ("bad", f"to {plan.dead_letters}" if plan.dead_letters else "the first one ends the job"),
        ("to", f"topic {plan.to_topic}" if plan.to_topic else f"{plan.to}, {plan.format} files"),
        ("open", _open_windows(plan)),
        ("progress", plan.checkpoint),
        ("reads", ahead_text(plan.kafka, [plan.topic], plan.checkpoint, plan.operations)),
        *operations_lines(plan.operations, plan.to if plan.to_topic is None else plan.checkpoint),
    ]


def _open_windows(plan: RollupPlan) -> str:
    if plan.to_topic is None and not plan.follow:
        return "windows are written as provisional rows, which the next run replaces"
    return f"windows are not written before a record {duration(plan.watermark_ms)} later came"


def run(spark: SparkSession, plan: RollupPlan, reports: Reports) -> Outcome:
    """Aggregate all records that exist now, or with `follow` go on until it is stopped.

    Raises:
        PipelineError: it cannot be done.
    """
    check(plan, spark)
    owner = plan.owner
    files = files_with(spark, owner)
    ids = preflight.topic_ids(plan.kafka, [plan.topic])
    schema = schema_of(spark, plan.schema, plan.example)
    claim = _claim_of(plan, files)
    run_operations = begin_operations(
        plan.operations, files, owner, claim, in_result=plan.to_topic is None
    )
    plan = plan._replace(operations=run_operations.operations)
    place = Place(files, owner, plan.checkpoint)
    if not _is_met(spark, plan, run_operations, schema, place=place, stop=reports.stop):
        return Outcome(was_stopped=reports.stop.is_set())
    rows = _rows(spark, plan, ids, schema, run_operations.secret)
    result = _windows(plan, _good(plan, rows))
    job_directory.write_job(
        files, owner, {**job_of(plan, schema), **run_operations.identity}, claim
    )
    source_topics.begin(plan, place, ids)
    skipped, progress = SkippedOffsets(), reports.progress
    if not plan.fail_on_data_loss:
        progress = with_skips(plan.kafka, place, skipped, reports.note, progress)
    used = result
    if plan.dead_letters is not None:
        aside = bad_records.BadRecords(spark, plan, plan.dead_letters)
        used = _windows(plan, aside.set_aside(bad_records.counted(rows)))
        progress = aside.with_publishing(progress)

    def start() -> Watch:
        return Watch(_start(plan, used), progress)

    if plan.to_topic is None:
        provisional_windows.remove(spark, plan)
    outcome = run_operations.with_missed(run_started(start, reports.stop))
    outcome = outcome._replace(skipped_offsets=skipped.offsets)
    if plan.to_topic is not None:
        return outcome
    if plan.follow or (outcome.batches and not outcome.open_windows):
        return outcome
    count = provisional_windows.write(spark, plan, result)
    return outcome._replace(provisional_windows=count)


def reader_options(plan: RollupPlan) -> dict[str, str]:
    """Return the options of the source: the topic from its first record on."""
    return {
        **plan.kafka.options(),
        "subscribe": plan.topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(plan.batch_rows),
        **pause_option(plan.every_ms),
        "failOnDataLoss": str(plan.fail_on_data_loss).lower(),
        **source_options(plan.operations),
    }


def _is_met(
    spark: SparkSession,
    plan: RollupPlan,
    run_operations: RunOperations,
    schema: StructType,
    *,
    place: Place,
    stop: threading.Event | None,
) -> bool:
    """Check the masks with the first records; return False if there are none, see `begin`."""

    def chosen_ahead() -> DataFrame:
        ahead = records_ahead(spark, reader_options(plan), place)
        return chosen(ahead, _with_schema(plan.operations, schema))

    places = CheckedPlaces(plan.operations, run_operations.secret, place.files, place.directory)
    return places.begin(chosen_ahead, plan.batch_rows, stop=stop, waits=plan.follow)


def _with_schema(operations: RowOperations, schema: StructType) -> RowOperations:
    """Return the operations, whose condition knows the fields of the values."""
    if operations.value_schema is not None:
        return operations
    return operations._replace(value_schema=schema.json())


def _rows(
    spark: SparkSession,
    plan: RollupPlan,
    ids: Mapping[str, str],
    schema: StructType,
    secret: bytes,
) -> DataFrame:
    """Return the rows of the topic as the rollup reads them: chosen, masked, parsed."""
    options = {**reader_options(plan), "topicIds": json.dumps(ids)}
    source_rows = sources.stream_topics(spark, sources.in_parallel(spark, options))
    operations = _with_schema(plan.operations, schema)
    # By another time than the record's, a record of a bad date may be a good one.
    now = f.current_timestamp() if plan.time is None else None
    records = operated(source_rows, operations, secret, now=now)
    if plan.time is None:
        return json_values.parse(records, schema)
    try:
        with analysed_quietly():
            rows = json_values.parse(records, schema, f.expr(plan.time))
    except PySparkException as error:
        raise _no_expression("--time", plan.time, error) from error
    kind = rows.schema[json_values.TIME].dataType
    if not isinstance(kind, TimestampType):
        raise PipelineError(
            f"--time {plan.time} is a {kind.simpleString()} and has to be a timestamp: for "
            "instance timestamp_millis(at), timestamp_seconds(at) or to_timestamp(at)"
        )
    return rows


def _good(plan: RollupPlan, rows: DataFrame) -> DataFrame:
    """Return the good rows; the first bad value fails the task if there is no place for it."""
    used = json_values.good if plan.dead_letters is not None else json_values.good_or_fail
    return used(bad_records.counted(rows))


def _windows(plan: RollupPlan, good: DataFrame) -> DataFrame:
    """Return the windows of good rows. Raises PipelineError for an expression that is none."""
    names = ["window", *windows.WINDOW_COLUMNS, windows.DATE]
    for flag, expressions in (("--by", plan.by), ("--agg", plan.aggregates)):
        for expression in expressions:
            try:
                column = f.expr(expression)
                with analysed_quietly():
                    alone = good.select(column) if flag == "--by" else good.groupBy().agg(column)
            except PySparkException as error:
                raise _no_expression(flag, expression, error) from error
            if alone.columns[0] in names:
                raise PipelineError(
                    f"two columns of the result are named {alone.columns[0]!r}: give one another "
                    f"name, as {flag} '{expression.split(' AS ')[0]} AS name'"
                )
            names += alone.columns
    return windows.rolled_up(
        good,
        window_ms=plan.window_ms,
        slide_ms=plan.slide_ms,
        watermark_ms=plan.watermark_ms,
        by=plan.by,
        aggregates=plan.aggregates,
    )


def _start(plan: RollupPlan, result: DataFrame) -> StreamingQuery:
    if plan.to_topic is not None:
        return sinks.stream_to_topic(
            windows.to_records(result, len(plan.by)),
            plan.kafka.writer_options(),
            checkpoint=plan.checkpoint,
            topic=plan.to_topic,
            available_now=not plan.follow,
            trigger=plan.trigger,
        )
    return committed_files.start(
        windows.to_rows(result),
        plan.to,
        checkpoint=plan.checkpoint,
        file_format=plan.format,
        partition_by=(windows.DATE,),
        available_now=not plan.follow,
        trigger=plan.trigger,
    )


def _no_expression(flag: str, expression: str, error: PySparkException) -> PipelineError:
    return PipelineError(f"{flag} {expression}: {analysis_sentence(error)}")
