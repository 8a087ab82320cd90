"""Files of a rollup that every reader sees once, after their batch is committed.

    rows of a batch ─► files of a stage ─► list of the batch ─► moved to their places
                                           (this commits)

`tables.file_archive` has the stages and the lists. A directory that Spark's own file sink has begun
goes on with it: its checkpoint and its lists belong together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.pipeline.checkpoints.checkpoint_files import start_query, timed
from minibroker.pipeline.checkpoints.query_identity import begin_batch
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.table import BatchId, is_repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def start(
    rows: DataFrame,
    directory: str,
    *,
    checkpoint: str,
    file_format: str,
    partition_by: Sequence[str],
    available_now: bool,
    trigger: str | None,
) -> StreamingQuery:
    """Start a query that writes each batch of `rows` once; arguments as of `stream_to_files`.

    Raises:
        PipelineError: the directory cannot be reached.
    """
    spark = rows.sparkSession
    files, progress = files_with(spark, directory), files_with(spark, checkpoint)
    archive = FileArchive(files, directory)
    if archive.is_of_spark():
        return sinks.stream_to_files(
            rows,
            directory,
            checkpoint=checkpoint,
            file_format=file_format,
            partition_by=partition_by,
            available_now=available_now,
            trigger=trigger,
        )

    def write(batch: DataFrame, number: int) -> None:
        query = begin_batch(files, directory, progress, checkpoint, number)
        identity = BatchId(query, number)
        if is_repeated(archive, identity):
            # The state of the windows and the watermark come from the run of the batch.
            batch.write.format("noop").mode("overwrite").save()
            return
        stage = archive.new_stage(identity)
        sinks.write_files(batch, stage, file_format=file_format, partition_by=partition_by)
        archive.commit(identity, stage)

    stream = timed(
        rows.writeStream.foreachBatch(write), available_now=available_now, trigger=trigger
    )
    return start_query(spark, stream, checkpoint)
