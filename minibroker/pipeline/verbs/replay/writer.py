"""A batch of a replay: from ranges to records in the topic, one transaction for each task.

Spark's streaming sinks write the rows of their source. Here the source returns ranges, and the
records come from the files. So Spark calls the job with each batch (`foreachBatch`), and the job
writes it like a batch job, but under the batch's number in the checkpoint. The transactions of the
tasks carry that number, like those of a stream (`sink.writers`).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, Protocol

from pyspark import TaskContext
from pyspark.sql import Observation
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSourceArrowWriter

from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.pacing import paced, share_of_task
from minibroker.pipeline.kafka.python_rows import without_null_headers
from minibroker.pipeline.kafka.sink import writers as sink
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.operations import frames as operated
from minibroker.pipeline.operations.rows import SET_ASIDE
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.verbs.replay import rows as replayed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from minibroker.pipeline.operations.dated_columns import WithoutBad
    from minibroker.pipeline.verbs.replay.plan import ReplayPlan

FORMAT: Final = "minibroker-replay"

_NAME: Final = "replay.name"
_RUN: Final = "replay.run"
_BATCH: Final = "replay.batch"
_RATE: Final = "replay.rate"


class DatedAhead(Protocol):
    """The place of records that are dated far ahead; see `spark.dead_letters`."""

    def now_ms(self, number: int) -> int:
        """Return the time of a batch. Raises PipelineError."""

    def without(self, rows: DataFrame, batch: BatchId) -> WithoutBad:
        """Publish the bad records of a batch, and return the good ones."""


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
        bad_dates: DatedAhead | None = None,
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
        wanted = spark.createDataFrame([tuple(span) for span in ranges], schemas.RANGE)
        found = replayed.paths_within(self._files, wanted).collect()
        if not found:
            return
        paths = sorted(row.path for row in found)
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would choose the tasks anew
        rows = archived_files.rows_of(spark, self._plan.archive, self._format, paths, self._renamed)
        counted = Observation()
        operations = self._plan.operations
        writers = replayed.writers_of(ranges)
        bad_dates, set_aside = self._bad_dates, 0
        now = None if bad_dates is None else f.timestamp_millis(f.lit(bad_dates.now_ms(number)))
        sorted_rows = replayed.within(operated.chosen(rows, operations, now=now), wanted, writers)
        if bad_dates is not None:
            good = bad_dates.without(sorted_rows, BatchId(self._name, number))
            sorted_rows, set_aside = good.rows, good.bad
        chosen = replayed.to_write(
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
        self.metrics[number] = {**counted.get, **aside_metrics(bad_dates, set_aside)}


def aside_metrics(bad_dates: DatedAhead | None, count: int) -> Mapping[str, int]:
    """Return the metrics about records that were set aside, none for a job that sets none aside."""
    return {} if bad_dates is None else {SET_ASIDE: count}


def write_once(
    rows: DataFrame,
    options: Mapping[str, str],
    *,
    name: str,
    run: str,
    number: int,
    max_rate: int | None = None,
) -> None:
    """Write a finite frame into a topic, under the number of a batch; repeated, it writes nothing.

    Args:
        rows: with the columns of `sink.columns`, in the same tasks each time.
        options: of the sink, see `sink.options`.
        name: of the writer, the same after a restart.
        run: of this process.
        number: of the batch.
        max_rate: bytes of a second in all tasks together; None for no limit.
    """
    cores = rows.sparkSession.sparkContext.defaultParallelism
    rate = share_of_task(max_rate, int(options["tasks"]), cores)
    numbered = {**options, _NAME: name, _RUN: run, _BATCH: str(number), _RATE: str(rate)}
    given = without_null_headers(rows)
    given.write.format(FORMAT).options(**numbered).mode("append").save()


class TaskWriter(DataSourceArrowWriter):
    """The writer of one batch; made in the driver, copied to its tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take `options` from `ReplayBatchWriter`."""
        self._options = parse_options(options)
        self._name = options[_NAME]
        self._run = options[_RUN]
        self._batch = int(options[_BATCH])
        self._bytes_per_s = float(options[_RATE])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> sink.Written:
        """Write the rows of one task, in a worker."""
        context = TaskContext.get()
        position = Position(
            prefix=self._options.prefix,
            query=self._name,
            run=self._run,
            batch=self._batch,
            task=0 if context is None else context.partitionId(),
            tasks=self._options.tasks,
        )
        return sink.write_rows(self._options, position, paced(iterator, self._bytes_per_s))
