"""Topics as DataFrames.

The jobs read with these functions. They check the options and ask whether the topics exist, in the
driver and before Spark plans anything: so a mistake is one sentence and not a failed task.

    options ──► read_topics, stream_topics ──► DataFrame of `schemas.RECORD`
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options as source_options
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.source.topics import TopicOffsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

TASK_ROWS_MIN: Final = 100_000
"""Offsets of a task, at least: a smaller one costs more than it brings, a consumer and a file."""

TASK_ROWS_MAX: Final = 5_000_000
RATED_BATCH_S: Final = 60
"""Seconds of a batch at a limited rate, at most."""

PUSH_DOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Spark's setting, without which it refuses a source that takes filters."""
_FORMAT: Final = "minibroker"
_BOUNDS: Final = (
    "subscribe",
    "subscribePattern",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingTimestamp",
)


def in_parallel(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options, with a task for each core: of large ranges a part, of small ones many.

    A task has TASK_ROWS_MAX offsets at most, so that a failed one does not begin far back.
    """
    cores = str(spark.sparkContext.defaultParallelism)
    return {
        "minPartitions": cores,
        "maxPartitions": cores,
        "minRecordsPerPartition": str(TASK_ROWS_MIN),
        "maxRecordsPerPartition": str(TASK_ROWS_MAX),
        **options,
    }


def limits(batch_rows: int, batch_bytes: int, max_rate: int | None) -> dict[str, str]:
    """Return the options of a stream for its batches and its speed.

    Args:
        batch_rows: offsets of a batch, at most.
        batch_bytes: bytes of a batch, at most, about.
        max_rate: bytes of a second, at most; None: no limit. A batch lasts a minute at most then:
            what a killed run had done of its batch is done again.
    """
    if max_rate is not None:
        batch_bytes = min(batch_bytes, max_rate * RATED_BATCH_S)
    return {
        "maxOffsetsPerTrigger": str(batch_rows),
        "maxBytesPerTrigger": str(batch_bytes),
        **({} if max_rate is None else {"maxBytesPerSecond": str(max_rate)}),
    }


def read_topics(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the records between two bounds of topics, as a frame that ends.

    A partition is in one task, and small ones share a task while there are enough for all cores,
    unless an option says how many tasks there are.

    Args:
        spark: of `session`.
        options: see `minibroker.pipeline.kafka.options`.

    Raises:
        PipelineError: wrong options, no such topic, no broker.
    """
    source = source_options.parse(options, streaming=False)
    if not _existing(source):
        raise PipelineError(
            f"{source.topics_text} matches no topic on {source.client['bootstrap.servers']}: "
            "correct the pattern, or create a topic"
        )
    options = {
        "pushFilters": str(spark.conf.get(PUSH_DOWN, "false")),
        **_joining(spark, options),
        **options,
    }
    return _in_order(spark.read.format(_FORMAT).options(**options).load(), source)


def read_fixed(
    spark: SparkSession, options: Mapping[str, str], ranges: Sequence[OffsetRange]
) -> DataFrame:
    """Return the records of ranges, a frame that is the same each time that it is read.

    Args:
        spark: of the job.
        options: options of the source, also whether the records have headers; bounds and names of
            topics do not count.
        ranges: several of one partition are read from the first to the last.

    Raises PipelineError.
    """
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for topic, partition, start, end in ranges:
        place = TopicPartition(topic, partition)
        starts[place] = min(start, starts.get(place, start))
        ends[place] = max(end, ends.get(place, end))
    if not starts:
        return spark.createDataFrame([], schemas.RECORD_WITH_HEADERS)
    assigned: dict[str, list[int]] = {}
    for place in sorted(starts):
        assigned.setdefault(place.topic, []).append(place.partition)
    fixed = {name: value for name, value in options.items() if name not in _BOUNDS} | {
        "assign": json.dumps(assigned),
        "startingOffsets": offsets.to_json(starts),
        "endingOffsets": offsets.to_json(ends),
    }
    return read_topics(spark, fixed)


def stream_topics(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the records in topics, present and future, as a stream; see `read_topics`.

    A pattern may match nothing yet.
    """
    source = source_options.parse(options, streaming=True)
    _existing(source)
    return _in_order(spark.readStream.format(_FORMAT).options(**options).load(), source)


def stream_ranges(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the offsets of topics, present and future, as a stream of `schemas.RANGE`.

    A batch has the same offsets as one of `stream_topics`, of our source, in one task for each core
    unless `maxPartitions` says otherwise. The task that gets the rows reads
    them (`archive.task`). Raises PipelineError.
    """
    settings = {**in_parallel(spark, options), "emit": "ranges"}
    _existing(source_options.parse(settings, streaming=True))
    return spark.readStream.format(_FORMAT).options(**settings).load()


def _joining(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return the option by which small partitions share tasks, unless others are given."""
    if {name.lower() for name in options} & {name.lower() for name in source_options.TASK_OPTIONS}:
        return {}
    return {"joinPartitions": str(spark.sparkContext.defaultParallelism)}


def _existing(source: SourceOptions) -> bool:
    """Return whether there is anything to read. Raises PipelineError for a missing name."""
    return bool(TopicOffsets(source).partitions())


def _in_order(frame: DataFrame, source: SourceOptions) -> DataFrame:
    return frame.select(*schemas.record_schema(include_headers=source.include_headers).names)
