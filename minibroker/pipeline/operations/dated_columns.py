"""The bound of `operations.record_times` for Spark's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f

from minibroker.pipeline.operations.record_times import AHEAD_MS, FIRST_MS, REASON, REASON_PARTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class WithoutBad(NamedTuple):
    """The good records of a batch."""

    rows: DataFrame
    record_count: int
    """Records among them."""
    bad: int
    """Records that were set aside."""


def last_date(now: Column) -> Column:
    """Return the last moment that a record may be dated."""
    return f.timestamp_millis(f.unix_millis(now) + f.lit(AHEAD_MS))


def bad_date(time: Column, now: Column) -> Column:
    """Return the reason why a time is none of a record, null for a good one and for null.

    Args:
        now: the moment that it may be a day ahead of.
    """
    is_outside = (time > last_date(now)) | (time < f.timestamp_millis(f.lit(FIRST_MS)))
    head, tail = REASON_PARTS
    number = f.unix_millis(time).cast("string")
    return f.when(is_outside, f.concat(f.lit(head), number, f.lit(tail)))


def judged(records: DataFrame, now_ms: int) -> DataFrame:
    """Return the records with the column `reason`, which is null where the date is good.

    Args:
        records: with the columns `timestamp` and `timestampType`; one without a time is good.
        now_ms: the time of the batch.
    """
    now = f.timestamp_millis(f.lit(now_ms))
    reason = f.when(f.col("timestampType") >= 0, bad_date(f.col("timestamp"), now))
    return records.withColumn(REASON, reason)
