"""Ranges of offsets of topics as a frame that is the same each time that it is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.source import frames as sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.offsets import OffsetRange

_BOUNDS: Final = (
    "subscribe",
    "subscribePattern",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingTimestamp",
)


def read_fixed(
    spark: SparkSession, options: Mapping[str, str], ranges: Sequence[OffsetRange]
) -> DataFrame:
    """Return the records of ranges, with headers if `options` includes them.

    Args:
        spark: of the job.
        options: options of the source; bounds and names of topics do not count.
        ranges: several of one partition are read from the first to the last.

    Raises PipelineError.
    """
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for topic, partition, start, end in ranges:
        place = TopicPartition(topic, partition)
        starts[place] = min(start, starts.get(place, start))
        ends[place] = max(end, ends.get(place, end))
    if not starts:
        return spark.createDataFrame([], schemas.RECORD_WITH_HEADERS)
    assigned: dict[str, list[int]] = {}
    for place in sorted(starts):
        assigned.setdefault(place.topic, []).append(place.partition)
    fixed = {name: value for name, value in options.items() if name not in _BOUNDS} | {
        "assign": json.dumps(assigned),
        "startingOffsets": offsets.to_json(starts),
        "endingOffsets": offsets.to_json(ends),
    }
    return sources.read_topics(spark, fixed)
