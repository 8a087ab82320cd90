"""The tasks of `copy` as a data source: `minibroker-copy`. Records stay in their tasks.

A task reads its ranges of the source one after the other and writes them in one transaction of the
exactly-once sink (`sink.writers`), under the number of the batch. A row for each range says
where its records are now. The division of the ranges among the tasks follows from the ranges alone,
and these are in the checkpoint: so a batch that is repeated has the same tasks, on any number of
cores.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka import options as source_options
from minibroker.pipeline.kafka.pacing import paced
from minibroker.pipeline.kafka.sink import writers as sink
from minibroker.pipeline.kafka.sink.delivered_places import RANGES_MAX, Delivered, DeliveredPlaces
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.source.reader import read_ranges
from minibroker.pipeline.offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FORMAT: Final = "minibroker-copy"
WRITERS_MAX: Final = 16
"""Tasks of a batch, unless its ranges are too many for their markers."""

COPIED: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
        StructField("rows", LongType()),
        StructField("first", LongType()),
        StructField("last", LongType()),
    ]
)
"""A range of the source, and where it is in the target: -1 if nobody knows or it has no records."""
_ARROW: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in ("start", "end", "rows", "first", "last")),
    ]
)


class CopyBatch(NamedTuple):
    """One batch, as its tasks need it; JSON in the option `batch`."""

    source: Mapping[str, str]
    """Options of the source."""
    sink: Mapping[str, str]
    """Options of the sink."""
    names: Mapping[str, str]
    """Topic of the source → topic of the target."""
    keeps_partitions: bool
    query: str
    run: str
    number: int
    groups: Sequence[Sequence[Sequence[Any]]]
    """The ranges of each task."""
    bytes_per_s: float = 0.0
    """Bytes that a task writes in a second, at most; 0 for no limit."""


class CopySource(DataSource):
    """`spark.read.format("minibroker-copy")`; only `writer` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return COPIED

    def reader(self, schema: StructType) -> CopyReader:
        return CopyReader(CopyBatch(*json.loads(self.options["batch"])))


class CopyRanges(InputPartition):
    """The ranges of one task."""

    def __init__(self, task: int, ranges: Sequence[Sequence[Any]]) -> None:
        super().__init__((task, ranges))


class CopyReader(DataSourceReader):
    """Copies; its rows are what was copied."""

    def __init__(self, batch: CopyBatch) -> None:
        self._batch = batch

    def partitions(self) -> list[InputPartition]:
        return [CopyRanges(task, ranges) for task, ranges in enumerate(self._batch.groups)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Copy the ranges of a task. Raises PipelineError."""
        task, spans = partition.value
        ranges = [OffsetRange(*span) for span in spans]
        yield _rows(ranges, copy_ranges(self._batch, task, ranges))


def copy_ranges(batch: CopyBatch, task: int, ranges: Sequence[OffsetRange]) -> list[Delivered]:
    """Copy ranges in one transaction, and return where each of them is.

    Without partitions of their own, all records count for the first range, and are nowhere.
    """
    places = None
    if batch.keeps_partitions:
        places = DeliveredPlaces(
            [TopicPartition(batch.names[span.topic], span.partition) for span in ranges]
        )
    position = Position(
        prefix="minibroker-sink",
        query=batch.query,
        run=batch.run,
        batch=batch.number,
        task=task,
        tasks=0,
    )
    outcome = sink.write_rows(parse_options(batch.sink), position, _records(batch, ranges), places)
    if places is not None:
        return places.places
    return [Delivered(outcome.rows), *(Delivered() for _ in ranges[1:])]


def _records(batch: CopyBatch, ranges: Iterable[OffsetRange]) -> Iterator[pa.RecordBatch]:
    """Yield the records with the names of their new topics."""
    options = source_options.parse(batch.source, streaming=False)
    names = {old: pa.scalar(new, pa.string()) for old, new in batch.names.items()}
    for records in paced(read_ranges(options, ranges), batch.bytes_per_s):
        topics = pa.repeat(names[records["topic"][0].as_py()], records.num_rows)
        at = records.schema.get_field_index("topic")
        renamed = records.set_column(at, "topic", topics)
        yield renamed if batch.keeps_partitions else renamed.drop_columns(["partition"])


def _rows(ranges: Sequence[OffsetRange], places: Sequence[Delivered]) -> pa.RecordBatch:
    rows = [(*span, *place) for span, place in zip(ranges, places, strict=True)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def whole_ranges(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Return one range for each partition: a source may have cut it for its tasks."""
    by_place: dict[TopicPartition, OffsetRange] = {}
    for span in ranges:
        place = TopicPartition(span.topic, span.partition)
        earlier = by_place.get(place, span)
        by_place[place] = span._replace(
            start=min(earlier.start, span.start), end=max(earlier.end, span.end)
        )
    return [by_place[place] for place in sorted(by_place) if by_place[place].size > 0]


def groups_of(ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """Return the ranges of each task: large ones first, each to the task with the least."""
    count = max(1, min(len(ranges), WRITERS_MAX), -(-len(ranges) // RANGES_MAX))
    groups: list[list[OffsetRange]] = [[] for _ in range(count)]
    loads = [(0, task) for task in range(count)]
    for span in sorted(ranges, key=lambda span: (-span.size, span.topic, span.partition)):
        load, task = heapq.heappop(loads)
        groups[task].append(span)
        if len(groups[task]) < RANGES_MAX:
            heapq.heappush(loads, (load + span.size, task))
    return [group for group in groups if group]
