"""Functions on an archive's rows: statistics before a replay, and the rows that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from minibroker.pipeline.offsets import OffsetRange

WRITERS_MAX: Final = 16
"""Tasks of a batch, each with a transaction of its own."""

_FILE: Final = "_metadata.file_path"


def files_of(rows: DataFrame) -> DataFrame:
    """Return one row for each file and partition: path, topic, partition, first, last, records."""
    return rows.groupBy(f.col(_FILE).alias("path"), "topic", "partition").agg(
        f.min("offset").alias("first"),
        f.max("offset").alias("last"),
        f.count(f.lit(1)).alias("records"),
    )


def time_span(rows: DataFrame) -> DataFrame:
    """Return one row: first_ms, last_ms; null if no record has a time."""
    time_ms = f.unix_millis("timestamp")
    timed = rows.where(f.col("timestampType") >= 0)
    return timed.select(f.min(time_ms).alias("first_ms"), f.max(time_ms).alias("last_ms"))


def knots_of(rows: DataFrame, width_ms: int) -> DataFrame:
    """Return one row for each partition and piece of time: topic, partition, time_ms, offset.

    Records without a time are due with those before them and make no row.
    """
    time_ms = f.floor(f.unix_millis("timestamp") / width_ms) * width_ms
    return (
        rows.where(f.col("timestampType") >= 0)
        .groupBy("topic", "partition", time_ms.cast("bigint").alias("time_ms"))
        .agg(f.min("offset").alias("offset"))
    )


def within(rows: DataFrame, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Return the rows of `ranges`, each partition in order in one task.

    The choice of the task depends only on `ranges`: a batch that is written again after a kill
    comes in the same parts, and the sink skips those that it has written.
    """
    wanted = [
        (f.col("topic") == span.topic)
        & (f.col("partition") == span.partition)
        & f.col("offset").between(span.start, span.end - 1)
        for span in ranges
    ]
    writers = writers_of(ranges)
    writer = f.pmod(f.hash("topic") + f.col("partition"), f.lit(writers))
    return (
        rows.where(_any_of(wanted))
        .repartitionById(writers, writer.cast("int"))
        .sortWithinPartitions("topic", "partition", "offset")
    )


def writers_of(ranges: Sequence[OffsetRange]) -> int:
    """Return the number of tasks that `within` makes."""
    return max(1, min(len(ranges), WRITERS_MAX))


def to_write(rows: DataFrame, *, keep_timestamps: bool, keep_partitions: bool) -> DataFrame:
    """Return the sink's columns; a record without a timestamp gets the time of the replay."""
    columns = [f.col("key"), f.col("value"), f.col("headers")]
    if keep_partitions:
        columns.append(f.col("partition"))
    if keep_timestamps:
        columns.append(f.when(f.col("timestampType") >= 0, f.col("timestamp")).alias("timestamp"))
    return rows.select(*columns)


def _any_of(conditions: Sequence[Column]) -> Column:
    found = f.lit(False)
    for condition in conditions:
        found = found | condition
    return found
