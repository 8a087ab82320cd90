"""A batch of ranges that is written into a topic under its number, whoever writes it again.

    rows ──within──► sorted, a partition in one task ──to_write──► the sink's columns
                                                         └──write_once──► the topic

The same ranges give the same rows in the same tasks. The transactions of the tasks carry the number
of the batch, like those of a stream (`sink.writers`), so a batch that is repeated writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter
from pyspark.sql.types import StructType

from minibroker.pipeline.kafka.pacing import paced, share_of_task
from minibroker.pipeline.kafka.python_rows import without_null_headers
from minibroker.pipeline.kafka.sink import writers as sink
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from minibroker.pipeline.offsets import OffsetRange

FORMAT: Final = "minibroker-batch"

_NAME: Final = "batch.name"
_RUN: Final = "batch.run"
_BATCH: Final = "batch.number"
_RATE: Final = "batch.rate"

WRITERS_MAX: Final = 16
"""Tasks of a batch, each with a transaction of its own."""


def within(rows: DataFrame, ranges: DataFrame, writers: int) -> DataFrame:
    """Return the rows of `ranges`, each partition in order in one task.

    The choice of the task depends only on `writers`: a batch that is written again after a kill
    comes in the same parts, and the sink skips those that it has written.

    Args:
        rows: with the columns of a record.
        ranges: columns of `schemas.RANGE`, each partition once; they travel to every task.
        writers: of `writers_of`.
    """
    is_within = (f.col("offset") >= f.col("start")) & (f.col("offset") < f.col("end"))
    writer = f.pmod(f.hash("topic").cast("bigint") + f.col("partition"), f.lit(writers))
    return (
        rows.join(f.broadcast(ranges), ["topic", "partition"])
        .where(is_within)
        .drop("start", "end")
        .repartitionById(writers, writer.cast("int"))
        .sortWithinPartitions("topic", "partition", "offset")
    )


def writers_of(ranges: Sequence[OffsetRange]) -> int:
    """Return the number of tasks that `within` makes."""
    return max(1, min(len(ranges), WRITERS_MAX))


def to_write(
    rows: DataFrame,
    *,
    keep_timestamps: bool,
    keep_partitions: bool,
    renamed: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the sink's columns; a record without a timestamp gets the time of the replay.

    Args:
        rows: of an archive, or of topics.
        keep_timestamps: whether the others keep theirs.
        keep_partitions: whether records keep their partitions.
        renamed: topic → the topic to write to; None: the sink has one topic for all.
    """
    columns = [f.col("key"), f.col("value"), f.col("headers")]
    if renamed is not None:
        names = [f.when(f.col("topic") == old, f.lit(new)) for old, new in renamed.items()]
        columns.append(f.coalesce(*names).alias("topic"))
    if keep_partitions:
        columns.append(f.col("partition"))
    if keep_timestamps:
        columns.append(f.when(f.col("timestampType") >= 0, f.col("timestamp")).alias("timestamp"))
    return rows.select(*columns)


def write_once(
    rows: DataFrame,
    options: Mapping[str, str],
    *,
    name: str,
    run: str,
    number: int,
    max_rate: int | None = None,
) -> None:
    """Write a finite frame into a topic, under the number of a batch; repeated, it writes nothing.

    Args:
        rows: with the columns of `sink.columns`, in the same tasks each time.
        options: of the sink, see `sink.options`.
        name: of the writer, the same after a restart.
        run: of this process.
        max_rate: bytes of a second in all tasks together; None for no limit.
    """
    spark = rows.sparkSession
    cores = spark.sparkContext.defaultParallelism
    rate = share_of_task(max_rate, int(options["tasks"]), cores)
    numbered = {**options, _NAME: name, _RUN: run, _BATCH: str(number), _RATE: str(rate)}
    batch_rows = without_null_headers(rows)
    spark.dataSource.register(NumberedBatch)
    batch_rows.write.format(FORMAT).options(**numbered).mode("append").save()


class TaskWriter(DataSourceArrowWriter):
    """The writer of one batch; made in the driver, copied to its tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options of `write_once`."""
        self._options = parse_options(options)
        self._name = options[_NAME]
        self._run = options[_RUN]
        self._batch = int(options[_BATCH])
        self._bytes_per_s = float(options[_RATE])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> sink.WriteOutcome:
        """Write the rows of one task, in a worker."""
        context = TaskContext.get()
        position = Position(
            prefix=self._options.prefix,
            query=self._name,
            run=self._run,
            batch=self._batch,
            task=0 if context is None else context.partitionId(),
            tasks=self._options.tasks,
        )
        return sink.write_rows(self._options, position, paced(iterator, self._bytes_per_s))


class NumberedBatch(DataSource):
    """`frame.write.format("minibroker-batch")`; only `write_once` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> TaskWriter:
        return TaskWriter(self.options)
