"""The tasks of `inspect` as a data source: `minibroker-tally`. Records stay in their tasks.

    read    partitions of topics ─► one row for each task: its tally
            batches of a broker's files, with `minibroker-batch-tally` ─► the same
    write   records with the columns `FACTS` ─► a tally for each task, in the file `result`

A topic is read by the tasks themselves. Where Spark has to see the records, for a condition or a
mask, in files, or from its own connector, they are written into this source. It commits nothing:
Spark calls `commit` once, beside the driver. It is no `mapInArrow`, because that needs pandas.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, StructField, StructType

from minibroker.pipeline.kafka import options as source_options
from minibroker.pipeline.kafka.segments.batches import read_batches
from minibroker.pipeline.kafka.segments.layout import plan_tasks
from minibroker.pipeline.kafka.segments.parts import parts_of
from minibroker.pipeline.kafka.segments.records import SegmentOptions
from minibroker.pipeline.kafka.source import batch as source_batch
from minibroker.pipeline.kafka.source.reader import read_ranges
from minibroker.pipeline.offsets import OffsetRange, group_ranges
from minibroker.pipeline.verbs.inspect.batch_tallies import BatchTally
from minibroker.pipeline.verbs.inspect.tallies import FACTS, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

FORMAT: Final = "minibroker-tally"
BATCH_FORMAT: Final = "minibroker-batch-tally"
TALLY_ROW: Final = StructType([StructField("tally", BinaryType())])
"""The row of a task."""


class TallySource(DataSource):
    """`spark.read.format("minibroker-tally")`; only the functions below use it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return TALLY_ROW

    def reader(self, schema: StructType) -> PartitionsReader:
        return PartitionsReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> TallyWriter:
        return TallyWriter(self.options)


class PartitionsReader(DataSourceReader):
    """Reads whole partitions; options: tasks, client."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._tasks: list[list[list[Any]]] = json.loads(options["tasks"])
        self._client: dict[str, str] = json.loads(options["client"])

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(ranges) for ranges in self._tasks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Count the records of the ranges, in the task. Raises PipelineError."""
        options = source_options.parse(self._client, streaming=False)
        tally = Tally()
        for records in read_ranges(options, [OffsetRange(*span) for span in partition.value]):
            tally.add(_facts_of(records))
        tally.settle()
        yield _packed(tally)


def _facts_of(records: pa.RecordBatch) -> pa.RecordBatch:
    milliseconds = records["timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False)
    columns = [
        *(records[name] for name in ("topic", "partition", "offset")),
        milliseconds.cast(pa.int64()),
        records["key"],
        pc.binary_length(records["value"]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(FACTS))


@dataclass
class TaskTally(WriterCommitMessage):
    """The tally of one task."""

    tally: Tally


class TallyWriter(DataSourceArrowWriter):
    """Counts rows with the columns FACTS; option: result."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._result = options["result"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskTally:
        tally = Tally()
        for batch in iterator:
            tally.add(batch)
        tally.settle()
        return TaskTally(tally)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write the tally of all tasks for the driver, on its machine."""
        total = Tally()
        for message in messages:
            if isinstance(message, TaskTally):
                total.merge(message.tally)
        total.settle()
        Path(self._result).write_bytes(pickle.dumps(total))


class BatchTallySource(DataSource):
    """`spark.read.format("minibroker-batch-tally")`; only `of_files` uses it."""

    @classmethod
    def name(cls) -> str:
        return BATCH_FORMAT

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
        yield _packed(tally)


def of_topics(spark: SparkSession, settings: Mapping[str, str]) -> Tally:
    """Return the tally of topics, read by the tasks with our source.

    Args:
        settings: options of the source.

    Raises PipelineError.
    """
    spark.dataSource.register(TallySource)
    options = source_options.parse(settings, streaming=False)
    tasks = group_ranges(
        source_batch.plan(options),
        groups_max=spark.sparkContext.defaultParallelism,
        cut_min=sys.maxsize,
    )
    total = Tally()
    if not tasks:
        return total
    reader = spark.read.format(FORMAT).options(
        tasks=json.dumps(tasks), client=json.dumps(dict(settings))
    )
    for tally in _unpacked(reader.load()):
        total.merge(tally)
    return total


def _packed(tally: object) -> pa.RecordBatch:
    """Return the row of a task with its tally."""
    return pa.record_batch([pa.array([pickle.dumps(tally)], pa.binary())], names=TALLY_ROW.names)


def _unpacked(rows: DataFrame) -> Iterator[Any]:
    """Yield the tallies in the rows of the tasks of this job."""
    for row in rows.collect():
        yield pickle.loads(row.tally)


def of_records(records: DataFrame) -> Tally:
    """Return the tally of a frame of `schemas.RECORD`, each partition in order in one task."""
    records.sparkSession.dataSource.register(TallySource)
    facts = records.select(
        *("topic", "partition", "offset"),
        f.unix_millis("timestamp").alias("ms"),
        "key",
        f.length("value").alias("valueBytes"),
    )
    with tempfile.TemporaryDirectory(prefix="minibroker-inspect-") as directory:
        result = Path(directory, "tally")
        facts.write.format(FORMAT).option("result", str(result)).mode("append").save()
        tally: Tally = pickle.loads(result.read_bytes())  # of `TallyWriter.commit`
        return tally


def of_files(spark: SparkSession, options: Mapping[str, str]) -> BatchTally:
    """Return the tally of the batches in a broker's files.

    Args:
        options: options as of `segments.records.SegmentOptions`.

    Raises PipelineError.
    """
    spark.dataSource.register(BatchTallySource)
    total = BatchTally()
    for tally in _unpacked(spark.read.format(BATCH_FORMAT).options(**options).load()):
        total.merge(tally)
    return total
