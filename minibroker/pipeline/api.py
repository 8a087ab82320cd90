"""The jobs as functions: `from minibroker.pipeline import archive, replay, rollup, inspect`.

Each function takes the arguments of its command and does the same work. Those that copy return an
`Outcome`: rows, batches, seconds and other counts; `inspect` returns an `Inspection`. Each raises a
`PipelineError` for wrong arguments, and for anything that prevents the job. Beside their own
arguments all of them take those of `Where`. The functions that copy also take those of `Common`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from minibroker.pipeline import launch
from minibroker.pipeline.jobs import inspect as inspecting
from minibroker.pipeline.plan import (
    ARCHIVE_FORMATS,
    DEFAULT_BATCH_ROWS,
    DEFAULT_MASTER,
    DEFAULT_TARGET_BYTES,
    FAIL,
    FORMATS,
    ON_RECREATED,
    REPLAY_BATCH_ROWS,
    SOURCES,
    ArchivePlan,
    Engine,
    InspectPlan,
    ReplayPlan,
    RollupPlan,
    absolute,
    bytes_of,
    check_choice,
    checked,
    duration_ms,
    kafka_of,
    speed_of,
)

if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from minibroker.pipeline.outcome import Outcome
    from minibroker.pipeline.plan import Kafka, StreamPlan
    from minibroker.pipeline.progress import Progress
    from minibroker.pipeline.report_facts import Inspection


class Where(TypedDict, total=False):
    """The cluster that holds the topics, and the Spark session that runs the job."""

    bootstrap: str
    """HOST:PORT of a broker, or several with commas between; 127.0.0.1:9092."""
    kafka: Mapping[str, str]
    """Settings of the Kafka client, such as {"security.protocol": "SSL"}."""
    kafka_config: str | os.PathLike[str]
    """A properties file with settings of the Kafka client; those of `kafka` win."""
    source: str
    """How topics are read: "minibroker" or "connector"."""
    spark: SparkSession | None
    """A session to run in; it is not stopped after the job.

    Without it a session is made and stopped.
    """
    master: str
    """Spark's master URL for a session that is made here; the default is local[*]."""
    jars: Sequence[str]
    packages: Sequence[str]
    conf: Mapping[str, str]


class Common(Where, total=False):
    """Arguments of every job that copies."""

    progress: Progress | None
    """Called after each batch with a `Batch`."""
    stop: threading.Event | None
    """An event: once another thread sets it, the job ends after the running batch."""


def archive(
    topics: str | Sequence[str] = (),
    *,
    to: str | os.PathLike[str],
    pattern: str | None = None,
    format: str = ARCHIVE_FORMATS[0],  # noqa: A002  the command's word
    follow: bool = False,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    fail_on_data_loss: bool = True,
    on_recreated: str = FAIL,
    target_file_size: str | None = None,
    every: str | None = None,
    catalog: Mapping[str, str] | None = None,
    table: str | None = None,
    **common: Unpack[Common],
) -> Outcome:
    """Copy topics into files, each record exactly once; the next call goes on from there.

    Args:
        topics: names of topics, or one name.
        to: directory, or URL of one.
        pattern: regular expression instead of `topics`; has to match whole names.
        format: parquet, json, csv, iceberg or delta.
        follow: go on until `stop` is set.
        batch_rows: offsets of a micro-batch, at most.
        fail_on_data_loss: raise when records were removed before they were copied.
        on_recreated: a topic was deleted and made again since the last call: "fail" raises, "read"
            reads it from its start.
        target_file_size: size of a file of Parquet or of a table, such as "128MB".
        every: with `follow`, time between two batches, such as "5m".
        catalog: PyIceberg's properties of a catalogue that has the table.
        table: NAMESPACE.NAME in that catalogue.
        **common: see `Common`.
    """
    plan = ArchivePlan(
        kafka=_kafka(common),
        to=str(to),
        topics=_names(topics),
        pattern=pattern,
        format=check_choice("format", format, ARCHIVE_FORMATS),
        follow=follow,
        batch_rows=batch_rows,
        fail_on_data_loss=fail_on_data_loss,
        on_recreated=check_choice("on_recreated", on_recreated, ON_RECREATED),
        target_bytes=DEFAULT_TARGET_BYTES
        if target_file_size is None
        else bytes_of(target_file_size),
        every_ms=None if every is None else duration_ms(every),
        catalog=catalog or {},
        table=table,
    )
    return _run(plan, common)


def replay(
    archive: str | os.PathLike[str],
    *,
    to_topic: str,
    topics: str | Sequence[str] = (),
    speed: str = "max",
    keep_timestamps: bool = False,
    keep_partitions: bool = False,
    batch_rows: int = REPLAY_BATCH_ROWS,
    checkpoint: str | os.PathLike[str] | None = None,
    **common: Unpack[Common],
) -> Outcome:
    """Copy archived records into a topic, each exactly once, a partition's in their order.

    Args:
        archive: directory that `archive` has written.
        to_topic: where to; a topic that is not there is made, with as many partitions as the
            archived one had.
        topics: those of the archive to take; the only one unless given.
        speed: "max", or how fast time goes: "1x", "60x", "0.5x".
        keep_timestamps: records keep theirs.
        keep_partitions: records keep theirs; otherwise the key decides.
        batch_rows: records of a batch, about.
        checkpoint: directory that remembers how far it is; below `archive` unless given.
        **common: see `Common`.
    """
    plan = ReplayPlan(
        kafka=_kafka(common),
        archive=str(archive),
        to_topic=to_topic,
        topics=_names(topics),
        speed=speed_of(speed),
        keep_timestamps=keep_timestamps,
        keep_partitions=keep_partitions,
        batch_rows=batch_rows,
        checkpoint_directory=None if checkpoint is None else str(checkpoint),
    )
    return _run(plan, common)


def rollup(
    topic: str,
    *,
    window: str,
    agg: str | Sequence[str],
    to: str | os.PathLike[str],
    by: str | Sequence[str] = (),
    slide: str | None = None,
    watermark: str = "10m",
    time: str | None = None,
    schema: str | None = None,
    example: str | None = None,
    bad_records: str | os.PathLike[str] | None = None,
    format: str = FORMATS[0],  # noqa: A002  the command's word
    follow: bool = False,
    every: str | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    fail_on_data_loss: bool = True,
    on_recreated: str = FAIL,
    checkpoint: str | os.PathLike[str] | None = None,
    **common: Unpack[Common],
) -> Outcome:
    """Aggregate JSON values over windows of time; each final window is written once.

    Windows that are open at the end are written into a directory as provisional rows, which the
    next call replaces; into a topic, and with `follow`, only final ones are written.

    Args:
        topic: what to read.
        window: how long a window is, such as "1m".
        agg: SQL expressions of aggregates, such as "sum(amount) AS revenue".
        to: a directory (with a / in it), or a topic.
        by: SQL expressions of groups.
        slide: how far apart windows begin; as long as they are unless given.
        watermark: how late a record may come.
        time: SQL expression of the event's time; the record's timestamp unless given.
        schema: fields of a value, as DDL or Spark's JSON; a file with it goes, too.
        example: file with example values, one JSON object on each line.
        bad_records: directory for values that do not fit; without it the first one raises.
        format: of files: parquet, json or csv.
        follow: go on until `stop` is set.
        every: with `follow`, time between two batches, such as "5m".
        batch_rows: offsets of a micro-batch, at most.
        fail_on_data_loss: raise when records were removed before they were read.
        on_recreated: as of `archive`.
        checkpoint: directory for progress and open windows; needed with a topic.
        **common: see `Common`.
    """
    plan = RollupPlan(
        kafka=_kafka(common),
        topic=topic,
        window_ms=duration_ms(window),
        aggregates=_names(agg),
        to=str(to),
        by=_names(by),
        slide_ms=None if slide is None else duration_ms(slide),
        watermark_ms=duration_ms(watermark),
        time=time,
        schema=schema,
        example=example,
        bad_records=None if bad_records is None else str(bad_records),
        format=check_choice("format", format, FORMATS),
        follow=follow,
        batch_rows=batch_rows,
        fail_on_data_loss=fail_on_data_loss,
        on_recreated=check_choice("on_recreated", on_recreated, ON_RECREATED),
        checkpoint_directory=None if checkpoint is None else str(checkpoint),
        every_ms=None if every is None else duration_ms(every),
    )
    return _run(plan, common)


def inspect(
    topics: str | Sequence[str] = (),
    *,
    log_dir: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    **where: Unpack[Where],
) -> Inspection:
    """Look at topics: how much, how large, how spread, in what order, who is behind.

    Args:
        topics: names of topics, or one; with `log_dir` all of it unless given.
        log_dir: a data directory of minibroker or Kafka, instead of a broker.
        report: a page to write.
        **where: see `Where`.
    """
    plan = InspectPlan(
        kafka=_kafka(where),
        topics=_names(topics),
        log_dir=None if log_dir is None else absolute(str(log_dir)),
        report=None if report is None else str(report),
    )
    inspecting.check(plan)
    with launch.started(_engine(where), spark=where.get("spark")) as session:
        return inspecting.run(session, plan)


def _run(plan: StreamPlan, common: Common) -> Outcome:
    return launch.run(
        checked(plan),
        _engine(common),
        spark=common.get("spark"),
        progress=common.get("progress"),
        stop=common.get("stop"),
    )


def _kafka(where: Where) -> Kafka:
    file = where.get("kafka_config")
    return kafka_of(
        where.get("bootstrap"),
        check_choice("source", where.get("source", SOURCES[0]), SOURCES),
        None if file is None else str(file),
        where.get("kafka", {}),
    )


def _engine(where: Where) -> Engine:
    return Engine(
        master=where.get("master", DEFAULT_MASTER),
        jars=where.get("jars", ()),
        packages=where.get("packages", ()),
        conf=where.get("conf", {}),
    )


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
