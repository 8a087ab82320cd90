"""`spark.read.format("minibroker")`: from one bound of the options to the other, once.

Planned in a Python process beside the driver; each range that comes out is a task.
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
    """One range of offsets: what a task is told."""

    def __init__(self, one: OffsetRange) -> None:
        super().__init__(tuple(one))

    @property
    def range(self) -> OffsetRange:
        """The range."""
        return OffsetRange(*self.value)


class BatchReader(DataSourceReader):
    """One query over what lies between two bounds."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = options.parse(given, streaming=False)

    def partitions(self) -> list[InputPartition]:
        """Ranges as Spark wants them. Raises PipelineError."""
        return [RangePartition(one) for one in plan(self._options)] or [RangePartition(_NOTHING)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """In the task. Raises PipelineError."""
        return read_range(self._options, partition.range)


_NOTHING = OffsetRange("", 0, 0, 0)
"""Spark wants a partition even for no rows; this one asks nothing of a broker."""


def plan(wanted: SourceOptions) -> list[OffsetRange]:
    """The ranges of a batch read, none of them empty.

    Raises:
        PipelineError: see `TopicOffsets`; with `failOnDataLoss` also when a bound lies outside of
            what a partition has.
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
        for one in partitions:
            if end[one] > latest[one]:
                when_lost(
                    f"option endingOffsets is {end[one]} for {one}, which ends at {latest[one]}"
                )
                end[one] = latest[one]
    return split_ranges(
        ranges_between(start, end, when_lost),
        pieces_min=wanted.min_partitions,
        rows_max=wanted.max_records_per_partition,
    )
