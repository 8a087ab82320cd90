"""The two sides of `compare` in Spark: what there is to read, digests of it, rows of it.

A topic is read range by range in tasks that keep the records (`source`); two topics are
read partition by partition beside each other. The ends of the ranges are fixed once: records that
come meanwhile do not count. An archive is read by Spark's own
readers, and so is a topic with operations on its records (`operations.rows`), at the same offsets.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.kafka import options, preflight
from minibroker.pipeline.kafka.python_rows import without_null_headers
from minibroker.pipeline.kafka.source import batch as source_batch
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.kafka.source.frames import read_fixed
from minibroker.pipeline.operations.frames import operated
from minibroker.pipeline.operations.rows import METRIC, source_options
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.tables.archived_rows import from_text
from minibroker.pipeline.verbs.compare import ranges as compare_ranges
from minibroker.pipeline.verbs.compare import source as compare_source
from minibroker.pipeline.verbs.compare.ranges import TaskRanges
from minibroker.pipeline.verbs.compare.source import ROW, CompareSource, Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.offsets import OffsetRange
    from minibroker.pipeline.operations.rows import RowOperations
    from minibroker.pipeline.verbs.compare.digests import RunDigest
    from minibroker.pipeline.verbs.compare.rules import CompareRules
    from minibroker.pipeline.verbs.compare.side import Side
    from minibroker.pipeline.verbs.compare.source import Buckets

_COLUMNS: Final = ("key", "value", "headers", "timestamp", "partition", "offset")


class OpenSide(NamedTuple):
    """A side whose records are known by their place."""

    number: int
    """0: A, 1: B."""
    partitions: int
    """How many the topic has; 0 for an archive, which knows only those with records."""
    client: Mapping[str, str]
    """Options of the source; empty for an archive."""
    ranges: Sequence[OffsetRange] = ()
    """The range of each partition, which may be empty."""
    archived: DataFrame | None = None
    """Records of the topic in an archive, or those of `operations.rows` in any side."""


class Rows(NamedTuple):
    """The records of each side that are compared, and what of them."""

    rules: CompareRules
    operations: RowOperations
    secret: bytes
    """The secret of the hashes of masks: the same for both sides."""


def open_side(
    spark: SparkSession, side: Side, number: int, choice: Rows, other_topic: str | None
) -> OpenSide:
    """Return a side with its ranges or its records.

    Args:
        number: 0 for A, 1 for B.
        choice: what counts: headers that do not are not read, unless an operation needs them.
        other_topic: the topic of the other side, which an archive of several is searched for.

    Raises:
        PipelineError: no broker, topic or archive; several topics in the archive.
    """
    if side.archive is not None:
        archive_rows = _archived(spark, side, other_topic)
        return OpenSide(number, 0, {}, archived=_operated(archive_rows, number, choice))
    topic = side.topic
    if topic is None:
        raise AssertionError("a side is a topic or an archive")
    reader_options = side.kafka.options() | {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": str(choice.rules.headers or choice.operations.is_used).lower(),
        **source_options(choice.operations),
    }
    reader_options = sources.in_parallel(spark, reader_options)
    source = options.parse(reader_options, streaming=False)
    ranges = source_batch.plan(source)
    cluster = preflight.ask(side.kafka)
    preflight.check_topic_exists(cluster, topic)
    partitions = cluster.partitions[topic]
    if not choice.operations.is_used:
        return OpenSide(number, partitions, reader_options, ranges)
    source_rows = read_fixed(spark, reader_options, ranges)
    return OpenSide(number, partitions, {}, archived=_operated(source_rows, number, choice))


def _operated(rows: DataFrame, number: int, choice: Rows) -> DataFrame:
    """Return the records of a side that are compared; the sides meet in one query."""
    return operated(rows, choice.operations, choice.secret, f"{METRIC} of side {number}")


def _archived(spark: SparkSession, side: Side, other_topic: str | None) -> DataFrame:
    directory = str(side.archive)
    files = files_with(spark, directory)
    file_format = archived_files.format_of(files, directory)
    rows = archived_files.all_rows(spark, directory, file_format)
    if file_format == "csv":
        rows = from_text(rows)
    topics = [row.topic for row in rows.select("topic").distinct().sort("topic").collect()]
    topic = side.topic or (other_topic if other_topic in topics else None)
    if topic is None and len(topics) > 1:
        raise PipelineError(
            f"the archive {directory} has topics {', '.join(topics)}: name one as "
            f"{directory}#{topics[0]}"
        )
    if topic is not None and topic not in topics:
        raise PipelineError(
            f"the archive {directory} has no records of topic {topic!r}; it has "
            f"{', '.join(topics) or 'none'}"
        )
    return rows if topic is None else rows.where(f.col("topic") == topic)


def digests(spark: SparkSession, sides: Sequence[OpenSide], task: Task) -> list[RunDigest]:
    """Return the digests of all records of the sides; topics are read in one job, in parallel."""
    spark.dataSource.register(CompareSource)
    runs = []
    topics = [side for side in sides if side.archived is None]
    tasks = _tasks_of(sides)
    if tasks:
        rows = _reader(spark, topics, task, compare_source.DIGESTS, tasks).load().collect()
        runs += [compare_source.run_of(row) for row in rows]
    for side in sides:
        if side.archived is not None:
            runs += _digests_of_archive(side.archived, side.number, task)
    return runs


def _digests_of_archive(rows: DataFrame, number: int, task: Task) -> list[RunDigest]:
    chosen = without_null_headers(rows.select("topic", *_COLUMNS))
    with tempfile.TemporaryDirectory(prefix="minibroker-compare-") as directory:
        result = Path(directory, "digests.json")
        writer = chosen.write.format(compare_source.FORMAT).options(
            work=compare_source.DIGESTS,
            task=task.to_json(),
            side=str(number),
            result=str(result),
        )
        writer.mode("append").save()
        return compare_source.digests_in(result)


def rows(spark: SparkSession, sides: Sequence[OpenSide], task: Task, buckets: Buckets) -> DataFrame:
    """Return the `ROW`s of both sides in these buckets."""
    frames: list[DataFrame] = []
    everywhere = compare_source.EVERYWHERE in buckets
    chosen = [
        side._replace(
            ranges=[span for span in side.ranges if everywhere or span.partition in buckets]
        )
        for side in sides
    ]
    tasks = [
        alone
        for both in _tasks_of(chosen)
        for alone in (TaskRanges(both.a, ()), TaskRanges((), both.b))
        if alone.size
    ]
    if tasks:
        topics = [side for side in sides if side.archived is None]
        reader = _reader(spark, topics, task, compare_source.ROWS, tasks)
        frames.append(reader.option("wanted", json.dumps(buckets)).load())
    for side in sides:
        if side.archived is not None:
            of_archive = side.archived
            if not everywhere:
                of_archive = of_archive.where(f.col("partition").isin(*buckets))
            frames.append(_rows_of_archive(of_archive, side.number, task, buckets))
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionByName(frame)
    return together


def _rows_of_archive(archived: DataFrame, side: int, task: Task, buckets: Buckets) -> DataFrame:
    def hashed(records: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_struct_array(records)
        return compare_source.marked_rows(batch, side, task, buckets)

    udf: Any = f.arrow_udf(hashed, ROW)  # type: ignore[call-overload]
    input_rows = without_null_headers(archived)
    row_or_null: DataFrame = input_rows.select(udf(f.struct(*_COLUMNS)).alias("row"))
    return row_or_null.where(f.col("row").isNotNull()).select("row.*")


def _tasks_of(sides: Sequence[OpenSide]) -> list[TaskRanges]:
    """Return the ranges of A and of B for each task: large ones first, so that no core waits."""
    of_topic = next((side for side in sides if side.ranges), None)
    if of_topic is None:
        return []
    source = options.parse(of_topic.client, streaming=False)
    return compare_ranges.paired(
        sides[0].ranges, sides[1].ranges, lambda ranges: source_batch.tasks_of(source, ranges)
    )


def _reader(
    spark: SparkSession,
    topics: Sequence[OpenSide],
    task: Task,
    work: str,
    tasks: Sequence[TaskRanges],
) -> Any:
    """Return the reader of the ranges of topics."""
    return spark.read.format(compare_source.FORMAT).options(
        work=work,
        task=task.to_json(),
        tasks=json.dumps(tasks),
        clients=json.dumps({str(side.number): dict(side.client) for side in topics}),
    )
