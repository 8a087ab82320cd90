"""`spark.read.format("minibroker")`: from one bound of the options to the other, once.

It is planned in a Python process beside the driver; each range of the plan is a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from minibroker.pipeline import options
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.offsets import LATEST, OffsetRange, ranges_between, split_ranges
from minibroker.pipeline.reader import read_range
from minibroker.pipeline.source_topics import TopicOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from minibroker.pipeline.options import SourceOptions


class RangePartition(InputPartition):
    """The range of offsets of one task."""

    def __init__(self, span: OffsetRange) -> None:
        super().__init__(tuple(span))

    @property
    def range(self) -> OffsetRange:
        """Return the range."""
        return OffsetRange(*self.value)


class BatchReader(DataSourceReader):
    """One query over the offsets between two bounds."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = options.parse(given, streaming=False)

    def partitions(self) -> list[InputPartition]:
        """Return the ranges as Spark's partitions. Raises PipelineError."""
        return [RangePartition(span) for span in plan(self._options)] or [RangePartition(_NOTHING)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the range in the task. Raises PipelineError."""
        return read_range(self._options, partition.range)


_NOTHING = OffsetRange("", 0, 0, 0)
"""Partition for a result without rows, which Spark requires; it sends no request to a broker."""


def plan(wanted: SourceOptions) -> list[OffsetRange]:
    """Return the ranges of a batch read, none of them empty.

    Raises:
        PipelineError: see `TopicOffsets`; with `failOnDataLoss` also for a bound outside of a
            partition's offsets.
    """
    topics = TopicOffsets(wanted)
    partitions = topics.partitions()
    if not partitions:
        raise PipelineError(
            f"{wanted.what} matches no topic on {wanted.client['bootstrap.servers']}"
        )
    start = topics.at(
        wanted.start,
        partitions,
        side="starting",
        where_none=LATEST if wanted.latest_when_no_timestamp else 0,
    )
    end = topics.at(wanted.end, partitions, side="ending", where_none=LATEST)

    def when_lost(sentence: str) -> None:
        if wanted.fail_on_data_loss:
            raise PipelineError(f"{sentence}; correct the bounds, or set failOnDataLoss=false")

    if wanted.end.offsets is not None:
        latest = topics.latest(partitions, known={})
        for partition in partitions:
            if end[partition] > latest[partition]:
                when_lost(
                    f"option endingOffsets is {end[partition]} for {partition}, which ends at"
                    f" {latest[partition]}"
                )
                end[partition] = latest[partition]
    return split_ranges(
        ranges_between(start, end, when_lost),
        pieces_min=wanted.min_partitions,
        rows_max=wanted.max_records_per_partition,
        rows_min=wanted.min_records_per_partition,
    )
