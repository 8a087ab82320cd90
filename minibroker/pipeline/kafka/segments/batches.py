"""Data source `minibroker-batches`: a row for every batch in a broker's files, none for records.

Only the files have this: sizes before and after compression, producers with their sequences,
transactions and markers, and places where a file is torn. `inspect` uses it; so can a person:

    spark.read.format("minibroker-batches").load("/var/lib/kafka").where("isAborted")

Options: those of `minibroker-log` but `includeHeaders` and `isolation.level` (everything is shown),
and `unfold` (default `false`): unfold compressed batches to fill `recordBytes`, and to count what
wrappers of formats 0 and 1 hold.

| column            | note                                                                     |
|-------------------|--------------------------------------------------------------------------|
| segment, position | name of the file, and the byte where the batch begins                     |
| sizeBytes         | of the batch as it is stored                                             |
| recordBytes       | of its records, unfolded; null: compressed and `unfold` is not set         |
| records           | how many are in it now; compaction may have taken some                    |
| isAborted         | data of a transaction that was aborted                                   |
| producerId, …     | -1: none; null in formats 0 and 1                                         |
| lastSequence      | of the batch as it was sent                                              |
| defect            | null, or why the rest of the file is no batch; then only topic, partition, |
|                   | segment, position and sizeBytes are set besides                           |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import HEADER_BYTES
from minibroker.kafka.records.compression import CODEC_NAMES, NONE, decompress
from minibroker.kafka.records.message_set import OVERHEAD_BYTES, decode_message
from minibroker.kafka.records.stored_batch import StoredBatch
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.schemas import NO_TIMESTAMP_TYPE
from minibroker.pipeline.kafka.segments.file import SegmentFile
from minibroker.pipeline.kafka.segments.layout import plan_tasks
from minibroker.pipeline.kafka.segments.parts import SegmentPart, parts_of
from minibroker.pipeline.kafka.segments.record_columns import UNFOLDED_BYTES_MAX
from minibroker.pipeline.kafka.segments.records import SegmentOptions, read_boolean
from minibroker.pipeline.kafka.segments.transactions import AbortedBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.kafka.records.batch import BatchHeader

NAME: Final = "minibroker-batches"
ROWS_AT_ONCE: Final = 5_000

BATCH: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("segment", StringType()),
        StructField("position", LongType()),
        StructField("sizeBytes", LongType()),
        StructField("recordBytes", LongType()),
        StructField("baseOffset", LongType()),
        StructField("lastOffset", LongType()),
        StructField("records", IntegerType()),
        StructField("magic", IntegerType()),
        StructField("codec", StringType()),
        StructField("timestampType", IntegerType()),
        StructField("maxTimestamp", TimestampType()),
        StructField("isTransactional", BooleanType()),
        StructField("isControl", BooleanType()),
        StructField("isAborted", BooleanType()),
        StructField("leaderEpoch", IntegerType()),
        StructField("producerId", LongType()),
        StructField("producerEpoch", IntegerType()),
        StructField("baseSequence", IntegerType()),
        StructField("lastSequence", IntegerType()),
        StructField("defect", StringType()),
    ]
)


class BatchSource(DataSource):
    """`spark.read.format("minibroker-batches")`; options in the module's description."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return BATCH

    def reader(self, schema: StructType) -> SegmentBatchReader:
        """Raises PipelineError."""
        unfold = read_boolean(self.options, "unfold", default=False)
        return SegmentBatchReader(SegmentOptions.parse(self.options), unfold=unfold)


class SegmentBatchReader(DataSourceReader):
    """Like `records.SegmentReader`: plans in the driver, reads in the tasks."""

    def __init__(self, options: SegmentOptions, *, unfold: bool) -> None:
        self._options = options
        self._unfold = unfold

    def partitions(self) -> list[InputPartition]:
        """Return one partition of Spark's for each task. Raises PipelineError."""
        return [InputPartition(task) for task in plan_tasks(self._options.find_partitions())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches of rows. Raises PipelineError."""
        for part in parts_of(partition.value or (), tell_aborted=True, leave_out_open=False):
            yield from read_batches(part, unfold=self._unfold)


def read_batches(part: SegmentPart, *, unfold: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part of a segment from the log start offset on, and its defect.

    Raises PipelineError for a file that cannot be read, or a batch that does not unfold.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  slow to import

    schema = to_arrow_schema(BATCH, timezone="UTC")
    rows: list[dict[str, Any]] = []
    try:
        for row in _rows(part, unfold=unfold):
            rows.append(row)
            if len(rows) == ROWS_AT_ONCE:
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows = []
    except CorruptionError as error:
        raise PipelineError(
            f"{part.task.path}: {error}; dump-log shows what stands there"
        ) from error
    except OSError as error:
        raise PipelineError(f"{part.task.path} cannot be read: {error.strerror}") from error
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema)


def _rows(part: SegmentPart, *, unfold: bool) -> Iterator[dict[str, Any]]:
    task = part.task
    place = {
        "topic": task.topic,
        "partition": task.partition,
        "segment": task.path.rpartition("/")[2],
    }
    aborted = AbortedBatches(part.aborted)
    file = SegmentFile(task.path, begin=part.begin, end=part.end)
    for batch in file.batches():
        header = batch.header
        if header.last_offset < task.start_offset:
            continue
        row = {**place, **_header_row(batch)}
        if header.magic == 2:
            row["isAborted"] = not header.is_control and aborted.has(header)
            row["recordBytes"] = _record_bytes(batch, unfold=unfold)
        else:
            row |= _legacy_row(batch, unfold=unfold)
        yield row
    if file.defect is not None:
        yield {
            **place,
            "position": file.defect.position,
            "sizeBytes": part.lost_bytes(file.defect),
            "defect": file.defect.reason,
        }


def _header_row(batch: StoredBatch) -> dict[str, Any]:
    header = batch.header
    is_v2 = header.magic == 2
    return {
        "position": batch.position,
        "sizeBytes": header.size_bytes,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "records": header.count,
        "magic": header.magic,
        "codec": CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else None,
        "timestampType": int(header.is_append_time) if header.magic else NO_TIMESTAMP_TYPE,
        "maxTimestamp": _microseconds(header),
        "isTransactional": is_v2 and header.is_transactional,
        "isControl": is_v2 and header.is_control,
        "isAborted": False,
        "leaderEpoch": header.leader_epoch if is_v2 else None,
        "producerId": header.producer_id if is_v2 else None,
        "producerEpoch": header.producer_epoch if is_v2 else None,
        "baseSequence": header.base_sequence if is_v2 else None,
        "lastSequence": header.last_sequence if is_v2 else None,
    }


def _microseconds(header: BatchHeader) -> int | None:
    """Return microseconds for Arrow's timestamps, None for a time that they cannot hold."""
    timestamp = header.max_timestamp * 1000
    return timestamp if -(2**63) <= timestamp < 2**63 else None


def _record_bytes(batch: StoredBatch, *, unfold: bool) -> int | None:
    if batch.header.codec == NONE:
        return batch.header.size_bytes - HEADER_BYTES
    if not unfold:
        return None
    content = batch.content[HEADER_BYTES:]
    return len(decompress(batch.header.codec, content, UNFOLDED_BYTES_MAX))


def _legacy_row(batch: StoredBatch, *, unfold: bool) -> dict[str, Any]:
    """Return the fields of the messages inside a message of format 0 or 1."""
    header = batch.header
    overhead = OVERHEAD_BYTES[header.magic]
    if header.codec == NONE:
        return {"recordBytes": header.size_bytes - overhead}
    if not unfold:
        return {}
    inside = decode_message(batch.content, header=header, size_bytes_max=UNFOLDED_BYTES_MAX)
    return {
        "records": len(inside),
        "baseOffset": inside[0].offset,
        "recordBytes": sum(len(record.key or b"") + len(record.value or b"") for record in inside),
    }
