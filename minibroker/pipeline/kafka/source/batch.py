"""`spark.read.format("minibroker")`: from one bound of the options to the other, once.

It is planned in a Python process beside the driver; each range of the plan is a task.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options, schemas
from minibroker.pipeline.kafka.options import Bound
from minibroker.pipeline.kafka.source.pushed_filters import narrowed, since_ms
from minibroker.pipeline.kafka.source.sizes import RecordSizes
from minibroker.pipeline.kafka.source.topics import TopicOffsets
from minibroker.pipeline.offsets import (
    LATEST,
    OffsetRange,
    group_ranges,
    ranges_between,
    split_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql.datasource import Filter

    from minibroker.pipeline.kafka.options import SourceOptions

logger = logging.getLogger(__name__)

CUT_ROWS_MIN: Final = 10_000
"""Offsets that a range has on each side of a cut, where tasks have several ranges."""
JOINED_BYTES: Final = 64 << 20
"""Bytes of a task in which whole partitions come together, about: of the work of half a second. A
task costs 0.02 s of CPU, most of it in the JVM.
"""


class RangePartition(InputPartition):
    """The ranges of offsets of one task, sorted by topic and partition."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        super().__init__(tuple(map(tuple, ranges)))

    @property
    def ranges(self) -> list[OffsetRange]:
        """Return the ranges."""
        return [OffsetRange(*fields) for fields in self.value]

    @property
    def rows(self) -> pa.RecordBatch:
        """Return the ranges themselves as one batch, of `schemas.RANGE`."""
        rows = [span._asdict() for span in self.ranges]
        return pa.RecordBatch.from_pylist(rows, schema=schemas.to_arrow(schemas.RANGE))


class BatchReader(DataSourceReader):
    """One query over the offsets between two bounds."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._options = options.parse(settings, streaming=False)

    def partitions(self) -> list[InputPartition]:
        """Return the ranges as Spark's partitions. Raises PipelineError."""
        ranges = [span for span in self.ranges() if span.size > 0]
        if 0 < self._options.join_partitions < len(ranges):
            groups = joined(self._options, ranges)
        else:
            groups = tasks_of(self._options, ranges)
        return [RangePartition(group) for group in groups] or [RangePartition([])]

    def ranges(self) -> list[OffsetRange]:
        """Return what is read of each partition. Raises PipelineError."""
        return plan(self._options)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the ranges in the task. Raises PipelineError."""
        # Spark starts a process for each query, to plan it: that one reads no record.
        from minibroker.pipeline.kafka.source.reader import read_ranges  # noqa: PLC0415

        return read_ranges(self._options, partition.ranges)


class FilteredReader(BatchReader):
    """The reader with `pushFilters=true`, which Spark refuses in a session without push-down."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._filters: list[Filter] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Keep the filters for the plan; return all of them, since Spark applies them, too."""
        self._filters = list(filters)
        return filters

    def ranges(self) -> list[OffsetRange]:
        """Do `BatchReader.ranges`, of what the filters let through."""
        ranges = narrowed(super().ranges(), self._filters)
        first_ms = since_ms(self._filters)
        return ranges if first_ms is None else _since(self._options, ranges, first_ms)


def _since(
    source: SourceOptions, ranges: Sequence[OffsetRange], first_ms: int
) -> list[OffsetRange]:
    """Return the ranges from the first record of that time or later on; empty ones are left out.

    The bound is exact: Kafka finds the first such record, whatever the order of the times. A
    cluster that finds none by time, since its records have no times, narrows nothing.
    """
    partitions = [TopicPartition(span.topic, span.partition) for span in ranges]
    if not partitions:
        return []
    try:
        bound = Bound(timestamp_ms=first_ms)
        starts = TopicOffsets(source).at(bound, partitions, side="starting", where_none=LATEST)
    except PipelineError as reason:
        logger.info("a filter on timestamp narrows nothing: %s", reason)
        return list(ranges)
    spans = [
        span._replace(start=max(span.start, starts[place]))
        for span, place in zip(ranges, partitions, strict=True)
    ]
    return [span for span in spans if span.size > 0]


def tasks_of(source: SourceOptions, ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """Return the ranges of each task, none of them empty.

    A batch that is repeated has the same tasks: the result depends on the arguments alone.
    """
    most = source.max_records_per_partition
    if not source.max_partitions:
        pieces = split_ranges(
            ranges,
            pieces_min=source.min_partitions,
            rows_max=most,
            rows_min=source.min_records_per_partition,
        )
        return [[span] for span in pieces]
    waiting = sum(span.size for span in ranges)
    return group_ranges(
        ranges,
        groups_max=max(source.max_partitions, -(-waiting // most) if most else 0),
        group_min=source.min_records_per_partition,
        cut_min=CUT_ROWS_MIN,
    )


def joined(source: SourceOptions, ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """Return the ranges of each task: each range whole, and small ones together.

    There are `joinPartitions` tasks, or a multiple of that where each would have more than
    JOINED_BYTES: then all cores end at about the same time. The sizes are estimates of the moment,
    so this is for a batch that is planned once.
    """
    starts = {TopicPartition(span.topic, span.partition): span.start for span in ranges}
    ends = {TopicPartition(span.topic, span.partition): span.end for span in ranges}
    sizes = RecordSizes(source)
    sizes.measure(starts, ends, waited={})
    total = sum(span.size * sizes.of(span.topic) for span in ranges)
    cores = source.join_partitions
    return group_ranges(
        ranges,
        groups_max=cores * max(1, -(-total // (cores * JOINED_BYTES))),
        cut_min=sys.maxsize,
        record_bytes=sizes.of,
    )


def plan(source: SourceOptions) -> list[OffsetRange]:
    """Return the range of each partition that a batch reads; a range may be empty.

    Raises:
        PipelineError: see `TopicOffsets`; with `failOnDataLoss` also for a bound outside of a
            partition's offsets.
    """
    topics = TopicOffsets(source)
    partitions = topics.partitions()
    if not partitions:
        raise PipelineError(
            f"{source.topics_text} matches no topic on {source.client['bootstrap.servers']}"
        )
    start = topics.at(
        source.start,
        partitions,
        side="starting",
        where_none=LATEST if source.latest_when_no_timestamp else 0,
    )
    end = topics.at(source.end, partitions, side="ending", where_none=LATEST)

    def when_lost(sentence: str) -> None:
        if source.fail_on_data_loss:
            raise PipelineError(f"{sentence}; correct the bounds, or set failOnDataLoss=false")

    if source.end.offsets is not None:
        latest = topics.latest(partitions, last_ends={})
        for partition in partitions:
            if end[partition] > latest[partition]:
                when_lost(
                    f"option endingOffsets is {end[partition]} for {partition}, which ends at"
                    f" {latest[partition]}"
                )
                end[partition] = latest[partition]
    return ranges_between(start, end, when_lost)
