"""The records that a job over topics reads next, for a look at them before it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.pipeline import offsets
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.kafka.source import frames as sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.spark.topic_identity import Place

_KEPT: Final = (
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
)
"""Options of a stream that a batch has, too, beside those of the client."""


def records_ahead(
    spark: SparkSession, kafka: Kafka, options: Mapping[str, str], place: Place
) -> DataFrame:
    """Return the records behind the last committed batch of a query, up to the end of its topics.

    Args:
        spark: of the job.
        kafka: the cluster.
        options: of the query's source, as of the `reader_options` of a job.
        place: of the query.

    Raises PipelineError.
    """
    given = {
        name: value for name, value in options.items() if name in _KEPT or name.startswith("kafka.")
    }
    position = job_directory.committed_progress_of(place.files, place.checkpoint)
    if position:
        assigned: dict[str, list[int]] = {}
        for where in sorted(position):
            assigned.setdefault(where.topic, []).append(where.partition)
        given = {name: value for name, value in given.items() if name not in _KEPT}
        given |= {"assign": json.dumps(assigned), "startingOffsets": offsets.to_json(position)}
    given |= {"includeHeaders": "true", "failOnDataLoss": "false"}
    return sources.read_topics(spark, given, source=kafka.source)
