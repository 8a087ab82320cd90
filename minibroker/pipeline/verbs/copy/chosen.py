"""A batch of a copy with operations on its records (`operations.rows`): Spark's rows, not a task's.

The ranges of a batch are read as a frame, chosen and changed, and written like a batch of a replay:
the same ranges give the same rows in the same tasks, so a repeated batch is written once. Records
are left out, so no offset is translated.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.source.frames import read_fixed
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.operations import frames as operated
from minibroker.pipeline.operations.rows import SET_ASIDE
from minibroker.pipeline.spark.numbered_batch import to_write, within, write_once, writers_of
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.verbs.copy.task import whole_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from minibroker.pipeline.spark.dead_letters import BadDates
    from minibroker.pipeline.verbs.copy.plan import CopyPlan
    from minibroker.pipeline.verbs.copy.targets import CopyTargets


class ChosenBatchWriter:
    """The function that Spark calls with each batch of ranges."""

    def __init__(
        self,
        plan: CopyPlan,
        targets: CopyTargets,
        name: str,
        *,
        secret: bytes,
        bad_dates: BadDates | None,
    ) -> None:
        """Args:
        plan: of the job, with the operations of its first run.
        targets: the topics to write to.
        name: of this copy, the same after a restart: the sink's markers are under it.
        secret: of the hashes of masks.
        bad_dates: of `dead_letters.bad_dates`; None: records are copied, whatever their date.
        """
        self._bad_dates = bad_dates
        self._plan = plan
        self._sink = plan.target.writer_options()
        self._targets = targets
        self._name = name
        self._secret = secret
        self._run = str(uuid.uuid4())
        self.metrics: dict[int, Mapping[str, int]] = {}
        """Number of a batch → its metrics of `operations.rows`, until the caller removes them."""

    def write(self, batch: DataFrame, number: int) -> None:
        """Copy the ranges in `batch`. Raises PipelineError, in the text of Spark's exception."""
        plan = self._plan
        ranges = whole_ranges(OffsetRange(*row) for row in batch.collect())
        if not ranges:
            return
        names = {span.topic: plan.target_of(span.topic) for span in ranges}
        self._targets.ensure(names)
        spark = batch.sparkSession
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would choose the tasks anew
        reader_options = {
            **plan.kafka.options(),
            "includeHeaders": "true",
            "failOnDataLoss": str(plan.fail_on_data_loss).lower(),
        }
        source_rows = read_fixed(spark, reader_options, ranges)
        counted = Observation()
        range_rows = spark.createDataFrame([tuple(span) for span in ranges], schemas.RANGE)
        writers = writers_of(ranges)
        bad_dates, set_aside = self._bad_dates, 0
        now = None if bad_dates is None else f.timestamp_millis(f.lit(bad_dates.now_ms(number)))
        chosen = operated.chosen(source_rows, plan.operations, now=now)
        records = within(chosen, range_rows, writers)
        if bad_dates is not None:
            good = bad_dates.without(records, BatchId(self._name, number))
            records, set_aside = good.rows, good.bad
        rows = operated.changed(records, plan.operations, self._secret, counted)
        records_to_write = to_write(
            rows, keep_timestamps=True, keep_partitions=plan.keeps_partitions, renamed=names
        )
        options = {**self._sink, "tasks": str(writers)}
        write_once(
            records_to_write,
            options,
            name=self._name,
            run=self._run,
            number=number,
            max_rate=plan.max_rate,
        )
        aside = {} if bad_dates is None else {SET_ASIDE: set_aside}
        self.metrics[number] = {**counted.get, **aside}
