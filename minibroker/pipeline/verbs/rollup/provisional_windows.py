"""Windows that are still open at the end of a rollup, as files beside those of final windows.

A rollup that does not follow leaves these files, and the next run removes them before its first
batch. So no reader ever sees a window twice, and after each run every record is in a window.

    closing checkpoint ─► one batch ─► DIR/_minibroker/provisional   rows, not to be seen yet
                                       DIR/_minibroker/provisional.list   names, before any is moved
                                       DIR/date=…/provisional-…      what readers of DIR see

A directory that Spark's file sink has begun has lists in `_spark_metadata`, one a batch, and Spark
reads it by them. The files are added to the newest list, which belongs to the last committed batch,
and are removed from it before the next batch. After a kill the next run removes the files that are
there, in the order of `remove`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import Observation
from pyspark.sql import functions as f

from minibroker.pipeline.checkpoints.checkpoint_files import start_query
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.spark.running import Watch, run_started
from minibroker.pipeline.verbs.rollup import closing_checkpoint, windows
from minibroker.pipeline.verbs.rollup.plan import RollupPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from minibroker.pipeline.files.file_system import FileSystem

PREFIX: Final = "provisional-"
"""Prefix of the files' names."""
_ROWS: Final = "provisional"
_LIST: Final = "provisional.list"
_LISTS_OF_SPARK: Final = "_spark_metadata"
_LIST_OF_A_BATCH: Final = re.compile(r"(\d+)(\.compact)?")
_BLOCK_BYTES: Final = 32 << 20


def remove(spark: SparkSession, plan: RollupPlan) -> None:
    """Remove the files of an earlier run, also those of a run that was killed."""
    files = files_with(spark, plan.to)
    name_list = join(plan.to, JOB_DIRECTORY, _LIST)
    names = files.read(name_list)
    if names is not None:
        _list_for_spark(files, plan.to, ())
        for name in names.splitlines():
            files.remove(join(plan.to, name))
        files.remove(name_list)
    files.remove(join(plan.to, JOB_DIRECTORY, _ROWS))
    closing_checkpoint.remove(files_with(spark, plan.checkpoint), plan.checkpoint)


def write(spark: SparkSession, plan: RollupPlan, result: DataFrame) -> int:
    """Write the windows that are open by the checkpoint; return the number of rows.

    Args:
        plan: of the rollup, which is not running.
        result: the windows of its query, as `windows.rolled_up` makes them.

    Raises:
        PipelineError: it cannot be done.
    """
    files = files_with(spark, plan.to)
    checkpoints = files_with(spark, plan.checkpoint)
    copy = closing_checkpoint.make(checkpoints, plan.checkpoint)
    if copy is None:
        return 0
    rows = join(plan.to, JOB_DIRECTORY, _ROWS)
    count = _write_rows(spark, plan, result, copy, rows)
    names = {
        join(rows, date, name): f"{date}/{PREFIX}{name}"
        for date in files.names(rows)
        if date.startswith(f"{windows.DATE}=")
        for name in files.names(join(rows, date))
        if not name.startswith((".", "_"))
    }
    if names:
        files.write(join(plan.to, JOB_DIRECTORY, _LIST), "\n".join(names.values()) + "\n")
        for path, name in names.items():
            files.rename(path, join(plan.to, name))
        _list_for_spark(files, plan.to, list(names.values()))
    files.remove(rows)
    closing_checkpoint.remove(checkpoints, plan.checkpoint)
    return count


def _write_rows(
    spark: SparkSession, plan: RollupPlan, result: DataFrame, checkpoint: str, directory: str
) -> int:
    """Run the one batch of the copied checkpoint and return the number of its rows."""
    counts: list[int] = []

    def write_batch(batch: DataFrame, number: int) -> None:
        counted = Observation()
        sinks.write_files(
            batch.observe(counted, f.count(f.lit(1)).alias("rows")),
            directory,
            file_format=plan.format,
            partition_by=(windows.DATE,),
        )
        counts[:] = [counted.get["rows"]]

    def start() -> StreamingQuery:
        stream = windows.to_rows(result).writeStream.foreachBatch(write_batch)
        return start_query(spark, stream.trigger(once=True), checkpoint)

    run_started(lambda: Watch(start(), None), None)
    return sum(counts)


def _list_for_spark(files: FileSystem, directory: str, names: Sequence[str]) -> None:
    """Make Spark's newest list name exactly these provisional files, in one step."""
    lists = join(directory, _LISTS_OF_SPARK)
    numbers = {
        int(match[1]): name
        for name in files.names(lists)
        if (match := _LIST_OF_A_BATCH.fullmatch(name))
    }
    if not numbers:
        return
    newest = join(lists, numbers[max(numbers)])
    lines = (files.read(newest) or "").splitlines()
    others = [line for line in lines if not _is_provisional(line)]
    added = [_line_of(files, join(directory, name)) for name in names]
    if others + added != lines:
        files.write(newest, "\n".join(others + added))


def _is_provisional(line: str) -> bool:
    """Return whether a line of the list names a provisional file; the first line is a version."""
    if not line.startswith("{"):
        return False
    path: str = json.loads(line)["path"]
    return path.rpartition("/")[2].startswith(PREFIX)


def _line_of(files: FileSystem, path: str) -> str:
    """Return the line that Spark's file sink writes for a file (`SinkFileStatus`)."""
    facts = files.facts(path)
    return json.dumps(
        {
            "path": facts.uri,
            "size": facts.size,
            "isDir": False,
            "modificationTime": facts.modified_ms,
            "blockReplication": 1,
            "blockSize": _BLOCK_BYTES,
            "action": "add",
        }
    )
