"""Start of a query, with the settings that its checkpoint needs.

Adaptive execution is off: it looks at the sizes of a shuffle and then chooses the tasks anew, so a
batch that is repeated could have other tasks than its first attempt. The sink knows a task by its
number (`sink.marker`).

By default Spark uses Hadoop's FileContext, which HDFS needs. In a local directory FileContext runs
the program `readlink` for every file: two dozen processes a batch. Spark's other file manager runs
none, and its renames are atomic too, because they are the system's. Both write the same files, so a
query can go on with a checkpoint of the other. The choice takes effect when a query starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.pipeline.files.paths import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

ADAPTIVE: Final = "spark.sql.adaptive.enabled"
SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
FOR_THIS_MACHINE: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def timed(
    writer: DataStreamWriter, *, available_now: bool, trigger: str | None
) -> DataStreamWriter:
    """Return `writer` with the time of its batches.

    Args:
        writer: of a query that has not started.
        available_now: end when all that is there at the start is written.
        trigger: else, how often a batch starts, as "10 seconds"; None: at once.
    """
    if available_now:
        return writer.trigger(availableNow=True)
    return writer if trigger is None else writer.trigger(processingTime=trigger)


def start_query(
    spark: SparkSession, writer: DataStreamWriter, checkpoint: str, directory: str | None = None
) -> StreamingQuery:
    """Start the query of `writer`.

    Args:
        spark: the session of the query; a file manager that its settings name is kept.
        writer: has every option but the checkpoint.
        checkpoint: directory of the query's progress.
        directory: where Spark's file sink writes, which has a list of its files there.
    """
    writer = writer.option("checkpointLocation", checkpoint)
    settings = {ADAPTIVE: "false"}
    is_chosen = spark.conf.get(SETTING, None) is not None
    is_elsewhere = is_remote(checkpoint) or (directory is not None and is_remote(directory))
    if not is_chosen and not is_elsewhere:
        settings[SETTING] = FOR_THIS_MACHINE
    # A query keeps the settings of its start, whatever they are later.
    session_settings = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        return writer.start()
    finally:
        for name, old_value in session_settings.items():
            if old_value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old_value)
