"""A job whose sink is killed by tests: it copies a topic, each record into the same partition.

    python -m tests.pipeline.copying ADDRESS FROM TO CHECKPOINT now|follow

`follow` copies in small batches and stays; `now` ends when what is there at the start is copied.
"""

from __future__ import annotations

import sys

from minibroker.pipeline.session import session
from minibroker.pipeline.sink.frames import stream_to_topic
from minibroker.pipeline.source.frames import stream_topics
from tests.pipeline.killing import BATCH_ROWS, MASTER, SPARK_SETTINGS


def main() -> None:
    """Copy until all is copied, or for ever."""
    address, source, target, checkpoint, when = sys.argv[1:]
    spark = session(master=MASTER, app_name="copying", conf=SPARK_SETTINGS)
    kafka = {"kafka.bootstrap.servers": address}
    options = {**kafka, "subscribe": source, "startingOffsets": "earliest"}
    if when == "follow":
        options["maxOffsetsPerTrigger"] = str(BATCH_ROWS)
    rows = stream_topics(spark, options)
    query = stream_to_topic(
        rows.select("key", "value", "partition"),
        kafka,
        topic=target,
        checkpoint=checkpoint,
        available_now=when == "now",
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
