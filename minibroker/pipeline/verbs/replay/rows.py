"""Functions on an archive's rows: statistics before a replay, and the rows that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from minibroker.pipeline.operations.dated_columns import bad_date

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SAMPLE_ROWS: Final = 1_000
"""Rows that stand for all where a mean is enough."""

_FILE: Final = "_metadata.file_path"


def files_of(rows: DataFrame) -> DataFrame:
    """Return one row for each file and partition: path, topic, partition, first, last, records."""
    return rows.groupBy(f.col(_FILE).alias("path"), "topic", "partition").agg(
        f.min("offset").alias("first"),
        f.max("offset").alias("last"),
        f.count(f.lit(1)).alias("records"),
    )


def merged_knots(knots: DataFrame) -> DataFrame:
    """Return the knots of `knots_of` of several frames as those of all their rows together."""
    return knots.groupBy("topic", "partition", "time_ms").agg(f.min("offset").alias("offset"))


def stretches_of(files: DataFrame, each: int) -> DataFrame:
    """Return one row for each stretch of a partition: topic, partition, first, last, records.

    A stretch has the files that begin in it.

    Args:
        files: of `files_of`.
        each: stretches of a partition, at most, however many files it has.
    """
    begins = files.groupBy("topic", "partition").agg(
        f.min("first").alias("begin"), f.max("last").alias("end")
    )
    width = f.ceil((f.col("end") - f.col("begin") + 1) / each)
    return (
        files.join(begins, ["topic", "partition"])
        .groupBy("topic", "partition", f.floor((f.col("first") - f.col("begin")) / width))
        .agg(
            f.min("first").alias("first"),
            f.max("last").alias("last"),
            f.sum("records").alias("records"),
        )
        .select("topic", "partition", "first", "last", "records")
    )


def paths_within(files: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return the paths of the files of `files_of` that may have records of `ranges`, each once."""
    is_near = (f.col("first") < f.col("end")) & (f.col("last") >= f.col("start"))
    near = files.join(f.broadcast(ranges), ["topic", "partition"]).where(is_near)
    return near.select("path").distinct()


def mean_bytes(rows: DataFrame) -> DataFrame:
    """Return one row: `bytes`, the mean of keys and values of some rows, null without any."""
    size = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))
    return rows.limit(SAMPLE_ROWS).agg(f.avg(size).alias("bytes"))


def time_span(rows: DataFrame) -> DataFrame:
    """Return one row: first_ms, last_ms; null if no record has a time."""
    time_ms = f.unix_millis("timestamp")
    return _timed(rows).select(f.min(time_ms).alias("first_ms"), f.max(time_ms).alias("last_ms"))


def knots_of(rows: DataFrame, width_ms: int) -> DataFrame:
    """Return one row for each partition and piece of time: topic, partition, time_ms, offset.

    Records without a time, or with a bad one (`record_times`), are due with those before them and
    make no row: one of the year 58879 would be due in thousands of years.
    """
    time_ms = f.floor(f.unix_millis("timestamp") / width_ms) * width_ms
    return (
        _timed(rows)
        .groupBy("topic", "partition", time_ms.cast("bigint").alias("time_ms"))
        .agg(f.min("offset").alias("offset"))
    )


def _timed(rows: DataFrame) -> DataFrame:
    has_time = f.col("timestampType") >= 0
    return rows.where(has_time & bad_date(f.col("timestamp"), f.current_timestamp()).isNull())
