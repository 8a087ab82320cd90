"""A query is started here, since how Spark writes its checkpoint has to be chosen at that moment.

Spark's usual way goes through Hadoop's FileContext, for the sake of HDFS. In a directory of this
machine that asks the program `readlink` about every file, two dozen processes for each batch. The
other way that Spark has needs none, and its renames are as atomic, being the system's own. The
files are the same, so that a checkpoint may change hands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.pipeline.plan import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
FOR_THIS_MACHINE: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def start_query(
    spark: SparkSession, writer: DataStreamWriter, checkpoint: str, directory: str | None = None
) -> StreamingQuery:
    """Start the query of `writer`.

    Args:
        spark: the session of the query; a way that it was told of stays.
        writer: knows everything but the checkpoint.
        checkpoint: directory of the query's progress.
        directory: where Spark's file sink writes, which has a list of its files there.
    """
    writer = writer.option("checkpointLocation", checkpoint)
    is_told = spark.conf.get(SETTING, None) is not None
    if is_told or is_remote(checkpoint) or (directory is not None and is_remote(directory)):
        return writer.start()
    # A query keeps the settings of its start, whatever they are later.
    spark.conf.set(SETTING, FOR_THIS_MACHINE)
    try:
        return writer.start()
    finally:
        spark.conf.unset(SETTING)
