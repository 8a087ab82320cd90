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
from minibroker.pipeline.kafka.source.fixed_ranges import read_fixed
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
    from minibroker.pipeline.verbs.compare.source import Wanted

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


def opened(
    spark: SparkSession, side: Side, number: int, wanted: Rows, other_topic: str | None
) -> OpenSide:
    """Return a side with its ranges or its records.

    Args:
        number: 0 for A, 1 for B.
        wanted: what counts: headers that do not are not read, unless an operation needs them.
        other_topic: the topic of the other side, which an archive of several is searched for.

    Raises:
        PipelineError: no broker, topic or archive; several topics in the archive.
    """
    if side.archive is not None:
        found = _archived(spark, side, other_topic)
        return OpenSide(number, 0, {}, archived=_operated(found, number, wanted))
    topic = side.topic
    if topic is None:
        raise AssertionError("a side is a topic or an archive")
    given = side.kafka.options() | {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": str(wanted.rules.headers or wanted.operations.is_used).lower(),
        **source_options(wanted.operations),
    }
    given = sources.in_parallel(spark, given)
    parsed = options.parse(given, streaming=False)
    planned = source_batch.plan(parsed)
    there = preflight.ask(side.kafka)
    preflight.check_topic_exists(there, topic)
    partitions = there.partitions[topic]
    if not wanted.operations.is_used:
        return OpenSide(number, partitions, given, planned)
    read = read_fixed(spark, given, planned)
    return OpenSide(number, partitions, {}, archived=_operated(read, number, wanted))


def _operated(rows: DataFrame, number: int, wanted: Rows) -> DataFrame:
    """Return the records of a side that are compared; the sides meet in one query."""
    return operated(rows, wanted.operations, wanted.secret, f"{METRIC} of side {number}")


def _archived(spark: SparkSession, side: Side, other_topic: str | None) -> DataFrame:
    directory = str(side.archive)
    files = files_with(spark, directory)
    file_format = archived_files.format_of(files, directory)
    rows = archived_files.all_rows(spark, directory, file_format)
    if file_format == "csv":
        rows = from_text(rows)
    topics = [row.topic for row in rows.select("topic").distinct().sort("topic").collect()]
    wanted = side.topic or (other_topic if other_topic in topics else None)
    if wanted is None and len(topics) > 1:
        raise PipelineError(
            f"the archive {directory} has topics {', '.join(topics)}: name one as "
            f"{directory}#{topics[0]}"
        )
    if wanted is not None and wanted not in topics:
        raise PipelineError(
            f"the archive {directory} has no records of topic {wanted!r}; it has "
            f"{', '.join(topics) or 'none'}"
        )
    return rows if wanted is None else rows.where(f.col("topic") == wanted)


def digests(spark: SparkSession, sides: Sequence[OpenSide], task: Task) -> list[RunDigest]:
    """Return the digests of all records of the sides; topics are read in one job, in parallel."""
    spark.dataSource.register(CompareSource)
    found = []
    topics = [side for side in sides if side.archived is None]
    tasks = _tasks_of(sides)
    if tasks:
        rows = _reader(spark, topics, task, compare_source.DIGESTS, tasks).load().collect()
        found += [compare_source.run_of(row) for row in rows]
    for side in sides:
        if side.archived is not None:
            found += _digests_of_archive(side.archived, side.number, task)
    return found


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


def rows(spark: SparkSession, sides: Sequence[OpenSide], task: Task, wanted: Wanted) -> DataFrame:
    """Return the `ROW`s of both sides in the buckets `wanted`."""
    frames: list[DataFrame] = []
    everywhere = compare_source.EVERYWHERE in wanted
    chosen = [
        side._replace(
            ranges=[span for span in side.ranges if everywhere or span.partition in wanted]
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
        frames.append(reader.option("wanted", json.dumps(wanted)).load())
    for side in sides:
        if side.archived is not None:
            of_archive = side.archived
            if not everywhere:
                of_archive = of_archive.where(f.col("partition").isin(*wanted))
            frames.append(_rows_of_archive(of_archive, side.number, task, wanted))
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionByName(frame)
    return together


def _rows_of_archive(archived: DataFrame, side: int, task: Task, wanted: Wanted) -> DataFrame:
    def hashed(records: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_struct_array(records)
        return compare_source.marked_rows(batch, side, task, wanted)

    udf: Any = f.arrow_udf(hashed, ROW)  # type: ignore[call-overload]
    given = without_null_headers(archived)
    marked: DataFrame = given.select(udf(f.struct(*_COLUMNS)).alias("row"))
    return marked.where(f.col("row").isNotNull()).select("row.*")


def _tasks_of(sides: Sequence[OpenSide]) -> list[TaskRanges]:
    """Return the ranges of A and of B for each task: large ones first, so that no core waits."""
    of_topic = next((side for side in sides if side.ranges), None)
    if of_topic is None:
        return []
    parsed = options.parse(of_topic.client, streaming=False)
    return compare_ranges.paired(
        sides[0].ranges, sides[1].ranges, lambda ranges: source_batch.tasks_of(parsed, ranges)
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
