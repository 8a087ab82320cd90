"""The records that a rollup cannot use, each with the reason: its dead letters.

The tasks that parse a batch also write its bad records, into files of the batch. Once Spark has
committed the batch, the driver publishes these files under the batch's number, as an archive
publishes its dead letters (`spark.dead_letters`). So the topic is read once, by one query.

    rows ─► tasks ─┬─► good rows ─► windows ─► commit of the batch ─► publish, once for each batch
                   └─► files of the batch and the run ──────────────────┘

A batch that is repeated after a kill writes its files anew, in a directory of the new run. The
next run first publishes the batches that a killed run had committed and not published. A bad
record is never seen before its batch is committed, and after each run all of them are there.

    DIR/_minibroker/bad/BATCH-RUN/…     files of batches that are not published yet
    DIR/_minibroker/run                 the last run: the only one whose files may be published

DIR is that of the dead letters, or of the job's progress where they go to a topic.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as f

from minibroker.cli.kinds import is_path
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.checkpoints.query_identity import query_of
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.files.paths import JOB_DIRECTORY, absolute, is_remote, join
from minibroker.pipeline.kafka.python_rows import without_null_list
from minibroker.pipeline.kafka.sink.writers import BATCH_PROPERTY
from minibroker.pipeline.operations import json_columns as json_values
from minibroker.pipeline.operations.dead_letter_rows import REASON
from minibroker.pipeline.spark import dead_letters
from minibroker.pipeline.tables.data_files import DEAD_LETTER, FileWriter, Layout
from minibroker.pipeline.tables.table import BatchId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.kafka.preflight import ClusterTopics
    from minibroker.pipeline.spark.progress import Batch, Progress
    from minibroker.pipeline.verbs.rollup.plan import RollupPlan

METRIC: Final = "bad_records"

_STAGES: Final = "bad"
_RUN: Final = "run"
_TASK: Final = "task-"
_FILE_BYTES: Final = 128 << 20


def check(plan: RollupPlan, cluster: ClusterTopics, spark: SparkSession | None = None) -> None:
    """Raise PipelineError if the plan's directory cannot have its bad records."""
    place = plan.dead_letters
    if place is None:
        return
    if is_remote(_home(plan, place)):
        raise PipelineError(
            f"dead letters cannot be written to {_home(plan, place)}: give a path of a file system "
            "that all workers share"
        )
    dead_letters.check(place, cluster, spark)


def _home(plan: RollupPlan, place: str) -> str:
    """Return the directory of files that are not published yet."""
    return place if is_path(place) else plan.owner


def counted(rows: DataFrame) -> DataFrame:
    """Return `rows`; the progress of the query then has the number of bad rows."""
    return rows.observe(METRIC, f.count(json_values.BAD).alias(METRIC))


class BadRecords:
    """The bad records of one run of a rollup; used by the driver alone."""

    def __init__(self, spark: SparkSession, plan: RollupPlan, place: str) -> None:
        """Take the place of the records, and publish what an earlier run left.

        Raises PipelineError: the files cannot be published.
        """
        self._spark = spark
        self._plan = plan
        directory = _home(plan, place)
        self._place = dead_letters.open_place(place, plan.kafka, spark)
        self._files = files_with(spark, directory)
        self._checkpoints = files_with(spark, plan.checkpoint)
        self._stages = absolute(join(directory, JOB_DIRECTORY, _STAGES))
        path = join(directory, JOB_DIRECTORY, _RUN)
        self._run = self._files.read(path) or ""
        committed = job_directory.last_committed(self._checkpoints, plan.checkpoint)
        if committed is not None:
            self._publish(committed)
        self._files.remove(self._stages)
        self._run = str(uuid.uuid4())
        self._files.write(path, self._run)

    def set_aside(self, rows: DataFrame) -> DataFrame:
        """Return the good rows; the tasks write the bad ones into files of their batch."""
        date = f.to_date(f"{json_values.RECORD}.timestamp")
        names = [name for name in DEAD_LETTER.names if name not in ("date", REASON)]
        is_bad = f.col(json_values.BAD).isNotNull()
        of_record: Any = rows.schema[json_values.RECORD].dataType
        columns = [
            without_null_list(
                f.when(is_bad, f.col(f"{json_values.RECORD}.{name}")), of_record[name].dataType
            ).alias(name)
            for name in names
        ]
        record = f.struct(*columns, date.alias("date"), f.col(json_values.BAD).alias(REASON))
        arrow_udf: Any = f.arrow_udf  # its hints know no iterators of structs
        # Spark may not move it: each row has to pass it once.
        are_good = arrow_udf(_function(self._stages, self._run), "boolean").asNondeterministic()
        return rows.where(are_good(record)).drop(json_values.BAD)

    def with_publishing(self, progress: Progress | None) -> Progress:
        """Return a `Progress` that also publishes the bad records of the batch."""

        def note(batch: Batch) -> None:
            self._publish(batch.number)
            if progress is not None:
                progress(batch)

        return note

    def _publish(self, last: int) -> None:
        """Publish the files of this run's batches up to `last`, which are committed."""
        for name in sorted(self._files.names(self._stages)):
            number, _, run = name.partition("-")
            if run != self._run or int(number) > last or self._place is None:
                continue
            stage = join(self._stages, name)
            query = query_of(self._checkpoints, self._plan.checkpoint)
            paths = sorted(str(path) for path in Path(stage).glob(f"{_TASK}*/*/*/*.parquet"))
            self._place.publish(self._spark, BatchId(query, int(number)), paths)
            self._files.remove(stage)


def _function(stages: str, run: str) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Return the function for the tasks: records in, whether each has no reason out.

    Of a good record nothing is there.
    """

    def are_good(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        writer = BadRecordWriter(stages, run)
        try:
            for records in batches:
                is_good = pc.is_null(pc.struct_field(records, REASON))
                bad = records.filter(pc.invert(is_good))
                if len(bad):
                    writer.add(_without_empty_headers(pa.RecordBatch.from_struct_array(bad)))
                yield is_good
            writer.close()
        except BaseException:
            writer.abandon()
            raise

    return are_good


def _without_empty_headers(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records with null in place of an empty list of headers, as the source has it."""
    headers = records["headers"]
    has_some = pc.greater(pc.list_value_length(headers), 0)
    column = pc.if_else(has_some, headers, pa.scalar(None, headers.type))
    return records.set_column(records.schema.get_field_index("headers"), "headers", column)


class BadRecordWriter:
    """Writes the bad records of one task; the first attempt that ends counts."""

    def __init__(self, stages: str, run: str) -> None:
        self._stages = Path(stages)
        self._run = run
        self._writer: FileWriter | None = None
        self._attempt = self._stages / f"attempt-{uuid.uuid4()}"

    def add(self, records: pa.RecordBatch) -> None:
        """Write records with the columns of `DEAD_LETTER`."""
        if self._writer is None:
            layout = Layout(str(self._attempt), "", DEAD_LETTER, _FILE_BYTES, "bad")
            self._writer = FileWriter(layout)
        self._writer.add(records)

    def close(self) -> None:
        """Move the files to the place of their task, in one step."""
        if self._writer is None:
            return
        self._writer.close()
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(BATCH_PROPERTY)
        if context is None or batch is None:
            raise AssertionError("bad records are written by the tasks of a streaming query")
        place = self._stages / f"{int(batch):09d}-{self._run}" / f"{_TASK}{context.partitionId()}"
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._attempt.rename(place)
        except OSError:
            if not place.is_dir():
                raise
            shutil.rmtree(self._attempt)  # another attempt of this task wrote the same records

    def abandon(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            self._writer.abandon()
            shutil.rmtree(self._attempt, ignore_errors=True)
