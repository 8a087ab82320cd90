"""Statistics of records for `inspect`: counts, sizes, keys, rates, order. The results are small.

    records ─► facts ─┬► by_partition      one row each
                      ├► by_topic
                      ├► over_time         one row for each slice of time
                      ├► by_size           one for each power of two
                      ├► frequent_keys     the most frequent ones of a topic
                      └► out_of_order      one for each partition

`facts` has few columns, so that it can be kept while the others read it: the source is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

KEY_BYTES_SHOWN: Final = 64
SIZE_QUANTILES: Final = (0.5, 0.99)
_ACCURACY: Final = 1_000
_DISTINCT_ERROR: Final = 0.02


def facts(records: DataFrame) -> DataFrame:
    """Return the columns to count of each record, without its content but the start of its key."""
    return records.select(
        "topic",
        "partition",
        "offset",
        f.unix_millis("timestamp").alias("ms"),
        f.length("key").alias("keyBytes"),
        f.length("value").alias("valueBytes"),
        (f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0)))
        .cast("long")
        .alias("bytes"),
        f.when(f.col("key").isNotNull(), f.xxhash64("key")).alias("keyHash"),
        f.substring("key", 1, KEY_BYTES_SHOWN).alias("keyStart"),
    )


def by_partition(facts: DataFrame) -> DataFrame:
    """Return counts, sums and first and last offsets of every partition."""
    return (
        facts.groupBy("topic", "partition")
        .agg(
            f.count("*").alias("records"),
            f.sum("bytes").alias("bytes"),
            f.min("offset").alias("firstOffset"),
            f.max("offset").alias("lastOffset"),
            f.min("ms").alias("firstMs"),
            f.max("ms").alias("lastMs"),
            f.count_if(f.col("keyBytes").isNull()).alias("withoutKey"),
            f.count_if(f.col("valueBytes").isNull()).alias("tombstones"),
            _distinct_keys().alias("keys"),
        )
        .orderBy("topic", "partition")
    )


def by_topic(facts: DataFrame) -> DataFrame:
    """Return statistics that cannot be summed over partitions: median and large sizes, keys."""
    quantiles = f.percentile_approx("bytes", list(SIZE_QUANTILES), _ACCURACY)
    return (
        facts.groupBy("topic")
        .agg(
            quantiles.alias("quantiles"),
            f.min("bytes").alias("smallest"),
            f.max("bytes").alias("largest"),
            _distinct_keys().alias("keys"),
        )
        .orderBy("topic")
    )


def _distinct_keys() -> Column:
    """Return an estimate of different keys, never more than there are records with a key."""
    estimate = f.approx_count_distinct("keyHash", _DISTINCT_ERROR)
    return f.least(estimate, f.count("keyBytes"))


def over_time(facts: DataFrame, slices_ms: Mapping[str, int]) -> DataFrame:
    """Return records and bytes of every slice of time that has any; v0 records have no time.

    `slices_ms`: topic → how long its slices are.
    """
    pairs = [f.lit(part) for pair in slices_ms.items() for part in pair]
    slice_ms = f.create_map(*pairs)[f.col("topic")]
    start = f.floor(f.col("ms") / slice_ms) * slice_ms
    return (
        facts.where(f.col("ms") >= 0)
        .groupBy("topic", start.alias("startMs"))
        .agg(f.count("*").alias("records"), f.sum("bytes").alias("bytes"))
        .orderBy("topic", "startMs")
    )


def by_size(facts: DataFrame) -> DataFrame:
    """Return the number of records of 0 bytes, 1, 2 to 3, 4 to 7 …: `power` is -1, 0, 1, 2 …"""
    power = f.when(f.col("bytes") == 0, f.lit(-1)).otherwise(f.floor(f.log2("bytes")))
    return (
        facts.groupBy("topic", power.cast("int").alias("power"))
        .agg(f.count("*").alias("records"))
        .orderBy("topic", "power")
    )


def frequent_keys(facts: DataFrame, most: int) -> DataFrame:
    """Return the `most` most frequent keys of each topic; records without a key are left out."""
    counted = (
        facts.where(f.col("keyHash").isNotNull())
        .groupBy("topic", "keyHash")
        .agg(
            f.count("*").alias("records"),
            f.min("keyStart").alias("keyStart"),
            f.max("keyBytes").alias("keyBytes"),
            f.min("partition").alias("firstPartition"),
            f.max("partition").alias("lastPartition"),
        )
    )
    order = Window.partitionBy("topic").orderBy(f.desc("records"), "keyHash")
    return (
        counted.withColumn("place", f.row_number().over(order))
        .where(f.col("place") <= most)
        .orderBy("topic", "place")
    )


def out_of_order(facts: DataFrame) -> DataFrame:
    """Return records with an earlier timestamp than one before them, and the difference."""
    before = (
        Window.partitionBy("topic", "partition")
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    behind = f.max("ms").over(before) - f.col("ms")
    return (
        facts.select("topic", "partition", "offset", "ms")
        .withColumn("behindMs", behind)
        .where(f.col("behindMs") > 0)
        .groupBy("topic", "partition")
        .agg(f.count("*").alias("records"), f.max("behindMs").alias("mostBehindMs"))
        .orderBy("topic", "partition")
    )
