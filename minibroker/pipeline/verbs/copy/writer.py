"""A batch of a copy, in the driver: ranges of offsets in, records in the target's topics.

    ranges (checkpoint) ─► targets are there ─► tasks copy ─► offset map ─► Spark's commit

After a kill Spark gives the same ranges under the same number. Tasks that are done find their
markers, write nothing, and say again where their records are.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from minibroker.pipeline.kafka.pacing import share_of_task
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.verbs.copy.task import (
    FORMAT,
    CopyBatch,
    CopySource,
    groups_of,
    whole_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from minibroker.pipeline.verbs.copy.offset_map import OffsetMapFiles
    from minibroker.pipeline.verbs.copy.plan import CopyPlan
    from minibroker.pipeline.verbs.copy.targets import CopyTargets


class CopyBatchWriter:
    """The function that Spark calls with each batch of ranges."""

    def __init__(
        self,
        plan: CopyPlan,
        source: Mapping[str, str],
        targets: CopyTargets,
        places: OffsetMapFiles,
        name: str,
    ) -> None:
        """Args:
        plan: of the job.
        source: options of the source.
        targets: the topics to write to.
        places: where the offsets of the target are kept.
        name: of this copy, the same after a restart: the sink's markers are under it.
        """
        self._plan = plan
        self._source = {
            **plan.kafka.options(),
            "subscribe": "given by ranges",
            "includeHeaders": "true",
            "failOnDataLoss": source["failOnDataLoss"],
            "topicIds": source["topicIds"],
        }
        self._sink = plan.target.writer_options()
        self._targets = targets
        self._places = places
        self._name = name
        self._run = str(uuid.uuid4())
        self.rows: dict[int, int] = {}
        """Number of a batch → its records, until the caller removes the entry."""

    def write(self, batch: DataFrame, number: int) -> None:
        """Copy the ranges in `batch`. Raises PipelineError, in the text of Spark's exception."""
        ranges = whole_ranges(OffsetRange(*row) for row in batch.collect())
        if not ranges:
            return
        names = {span.topic: self._plan.target_of(span.topic) for span in ranges}
        self._targets.ensure(names)
        spark, groups = batch.sparkSession, groups_of(ranges)
        cores = spark.sparkContext.defaultParallelism
        whole = CopyBatch(
            source=self._source,
            sink=self._sink,
            names=names,
            keeps_partitions=self._plan.keeps_partitions,
            query=self._name,
            run=self._run,
            number=number,
            groups=groups,
            bytes_per_s=share_of_task(self._plan.max_rate, len(groups), cores),
        )
        spark.dataSource.register(CopySource)
        copied = spark.read.format(FORMAT).option("batch", json.dumps(whole)).load().collect()
        if self._plan.keeps_partitions:
            self._places.add(number, [tuple(row) for row in copied])
        self.rows[number] = sum(row["rows"] for row in copied)
