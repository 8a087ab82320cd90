"""The batches of a broker's files, counted in the tasks: the data source `minibroker-batch-tally`.

files ─► tasks: segments.batches, batch_tallies ─► one row for each task ─► the driver's sum
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from minibroker.pipeline.kafka.segments.batches import read_batches
from minibroker.pipeline.kafka.segments.layout import plan_tasks
from minibroker.pipeline.kafka.segments.parts import parts_of
from minibroker.pipeline.kafka.segments.records import SegmentOptions
from minibroker.pipeline.verbs.inspect.batch_tallies import BatchTally
from minibroker.pipeline.verbs.inspect.source import TALLY_ROW, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "minibroker-batch-tally"


class BatchTallySource(DataSource):
    """`spark.read.format("minibroker-batch-tally")`; only `of_files` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return TALLY_ROW

    def reader(self, schema: StructType) -> BatchTallyReader:
        return BatchTallyReader(SegmentOptions.parse(self.options))


class BatchTallyReader(DataSourceReader):
    """Plans in the driver, counts in the tasks."""

    def __init__(self, options: SegmentOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return one partition of Spark's for each task. Raises PipelineError."""
        tasks = plan_tasks(self._options.find_partitions(), whole=True)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Count the batches of whole partitions. Raises PipelineError."""
        tally = BatchTally()
        for part in parts_of(partition.value or (), tell_aborted=True, leave_out_open=False):
            for batches in read_batches(part, unfold=True):
                tally.add(batches)
        yield packed(tally)


def of_files(spark: SparkSession, options: Mapping[str, str]) -> BatchTally:
    """Return the tally of the batches in a broker's files.

    Args:
        options: options as of `segments.records.SegmentOptions`.

    Raises PipelineError.
    """
    spark.dataSource.register(BatchTallySource)
    total = BatchTally()
    for tally in unpacked(spark.read.format(FORMAT).options(**options).load()):
        total.merge(tally)
    return total
