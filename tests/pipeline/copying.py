"""A job whose sink is killed by tests: it copies a topic, each record into the same partition.

    python -m tests.pipeline.copying ADDRESS FROM TO CHECKPOINT

It copies in small batches and stays.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from minibroker.pipeline.kafka.sink.frames import stream_to_topic
from minibroker.pipeline.kafka.source.frames import stream_topics
from minibroker.pipeline.spark.session import session
from tests.pipeline.killing import BATCH_ROWS, MASTER, SPARK_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def copy(
    spark: SparkSession, address: str, source: str, target: str, checkpoint: str, *, follows: bool
) -> None:
    """Copy what is there at the start, or in small batches for ever. Raises the query's error."""
    kafka = {"kafka.bootstrap.servers": address}
    options = {**kafka, "subscribe": source, "startingOffsets": "earliest"}
    if follows:
        options["maxOffsetsPerTrigger"] = str(BATCH_ROWS)
    rows = stream_topics(spark, options)
    query = stream_to_topic(
        rows.select("key", "value", "partition"),
        kafka,
        topic=target,
        checkpoint=checkpoint,
        available_now=not follows,
    )
    query.awaitTermination()


def main() -> None:
    """Copy for ever."""
    address, source, target, checkpoint = sys.argv[1:]
    spark = session(master=MASTER, app_name="copying", conf=SPARK_SETTINGS)
    copy(spark, address, source, target, checkpoint, follows=True)


if __name__ == "__main__":
    main()
