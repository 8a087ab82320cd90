"""A batch of a replay: from ranges to records in the topic, one transaction for each task.

Spark's streaming sinks write the rows of their source. Here the source returns ranges, and the
records come from the files. So Spark calls the job with each batch (`foreachBatch`), and the job
writes it like a batch job, but under the batch's number in the checkpoint. The transactions of the
tasks carry that number, like those of a stream (`spark.numbered_batch`).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.operations import frames as operated
from minibroker.pipeline.operations.rows import SET_ASIDE
from minibroker.pipeline.spark.numbered_batch import to_write, within, write_once, writers_of
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.verbs.replay import rows as replayed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from minibroker.pipeline.spark.dead_letters import BadDates
    from minibroker.pipeline.verbs.replay.plan import ReplayPlan


class ReplayBatchWriter:
    """The function that Spark calls with each batch of ranges, in the driver."""

    def __init__(
        self,
        plan: ReplayPlan,
        file_format: str,
        files: DataFrame,
        name: str,
        *,
        renamed: Mapping[str, str],
        secret: bytes = b"",
        bad_dates: BadDates | None = None,
    ) -> None:
        """Args:
        plan: what the job is to do.
        file_format: of the archive's files.
        files: of `replayed.files_of`, of the whole archive.
        name: of this replay, the same after a restart: the sink's markers are under it.
        secret: of the hashes of masks.
        renamed: as of `tables.archived_files.kept_bytes`.
        bad_dates: of `dead_letters.bad_dates`; None: records are written, whatever their date.
        """
        self._bad_dates = bad_dates
        self._renamed = renamed
        self._plan = plan
        self._format = file_format
        self._files = files
        self._name = name
        self._run = str(uuid.uuid4())
        self._secret = secret
        self.metrics: dict[int, Mapping[str, int]] = {}
        """Number of a batch → its metrics of `operations.rows`, until the caller removes them."""

    def write(self, batch: DataFrame, number: int) -> None:
        """Write the ranges in `batch`. Raises PipelineError, in the text of Spark's exception."""
        ranges = [OffsetRange(*row) for row in batch.collect()]
        spark = batch.sparkSession
        range_rows = spark.createDataFrame([tuple(span) for span in ranges], schemas.RANGE)
        path_rows = replayed.paths_within(self._files, range_rows).collect()
        if not path_rows:
            return
        paths = sorted(row.path for row in path_rows)
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would choose the tasks anew
        rows = archived_files.rows_of(spark, self._plan.archive, self._format, paths, self._renamed)
        counted = Observation()
        operations = self._plan.operations
        writers = writers_of(ranges)
        bad_dates, set_aside = self._bad_dates, 0
        now = None if bad_dates is None else f.timestamp_millis(f.lit(bad_dates.now_ms(number)))
        sorted_rows = within(operated.chosen(rows, operations, now=now), range_rows, writers)
        if bad_dates is not None:
            good = bad_dates.without(sorted_rows, BatchId(self._name, number))
            sorted_rows, set_aside = good.rows, good.bad
        chosen = to_write(
            operated.changed(sorted_rows, operations, self._secret, counted),
            keep_timestamps=self._plan.keep_timestamps,
            keep_partitions=self._plan.keep_partitions,
        )
        options = {
            **self._plan.kafka.writer_options(),
            "topic": self._plan.to_topic,
            "tasks": str(writers),
        }
        write_once(
            chosen,
            options,
            name=self._name,
            run=self._run,
            number=number,
            max_rate=self._plan.max_rate,
        )
        aside = {} if bad_dates is None else {SET_ASIDE: set_aside}
        self.metrics[number] = {**counted.get, **aside}
