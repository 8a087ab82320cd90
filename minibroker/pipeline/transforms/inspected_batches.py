"""Statistics of batches for `inspect`, which only a broker's files have.

Pure; the results are small.

Input: `segments.batches.BATCH`. Sequences that retention or compaction removed look the same as
sequences that never existed: both are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEQUENCES: Final = 1 << 31
"""Number of sequences; 0 follows the last one."""


def by_codec(batches: DataFrame) -> DataFrame:
    """Return stored and uncompressed bytes of each topic, codec and format, without markers."""
    return (
        batches.where(f.col("defect").isNull() & ~f.col("isControl"))
        .groupBy("topic", "codec", "magic")
        .agg(
            f.count("*").alias("batches"),
            f.sum("records").alias("records"),
            f.sum("sizeBytes").alias("sizeBytes"),
            f.sum("recordBytes").alias("recordBytes"),
            f.count_if("isAborted").alias("abortedBatches"),
            f.sum(f.when(f.col("isAborted"), f.col("records")).otherwise(0)).alias(
                "abortedRecords"
            ),
        )
        .orderBy("topic", f.desc("sizeBytes"))
    )


def by_producer(batches: DataFrame) -> DataFrame:
    """Return the repeated and missing sequences of each producer id in each partition.

    Within an epoch every batch begins where the last one ended. The first existing batch of an
    epoch is taken as correct.
    """
    sent = batches.where(
        f.col("defect").isNull() & ~f.col("isControl") & (f.col("baseSequence") >= 0)
    )
    within = Window.partitionBy("topic", "partition", "producerId", "producerEpoch").orderBy(
        "baseOffset"
    )
    last = f.lag("lastSequence").over(within)
    ahead = f.pmod(
        f.col("baseSequence").cast("long") - (f.col("last").cast("long") + 1), f.lit(_SEQUENCES)
    )
    is_missing = f.col("ahead").between(1, _SEQUENCES // 2)
    is_repeated = f.col("ahead") > _SEQUENCES // 2
    return (
        sent.withColumn("last", last)
        .withColumn("ahead", ahead)
        .groupBy("topic", "partition", "producerId")
        .agg(
            f.count("*").alias("batches"),
            f.sum("records").alias("records"),
            f.count_distinct("producerEpoch").alias("epochs"),
            f.count_if("isTransactional").alias("transactionalBatches"),
            f.count_if("isAborted").alias("abortedBatches"),
            f.sum(f.when(is_missing, f.col("ahead")).otherwise(0)).alias("missing"),
            f.sum(
                f.when(
                    is_repeated, f.least(f.lit(_SEQUENCES) - f.col("ahead"), f.col("records"))
                ).otherwise(0)
            ).alias("repeated"),
            f.count_if(is_missing).alias("gaps"),
        )
        .orderBy("topic", "partition", "producerId")
    )


def defects(batches: DataFrame) -> DataFrame:
    """Return the places where files are torn."""
    return (
        batches.where(f.col("defect").isNotNull())
        .select("topic", "partition", "segment", "position", "sizeBytes", "defect")
        .orderBy("topic", "partition", "segment")
    )
