"""The archive of a replay, with the files that tasks have found and the index of its records.

    files ─► one row for each file and partition, with the executors ─► index, in the driver
                                          └─► the writer of a batch looks there for its files

The index has a size that depends on the partitions alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import functions as f

from minibroker.clock import SystemClock
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.paths import is_remote
from minibroker.pipeline.operations.frames import chosen, in_time
from minibroker.pipeline.operations.record_times import latest_ms
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.verbs.replay import rows as replayed
from minibroker.pipeline.verbs.replay.file_contents import Chosen, contents_of
from minibroker.pipeline.verbs.replay.index import (
    STRETCHES_MAX,
    Knot,
    ReplayIndex,
    Stretch,
    knot_ms,
)
from minibroker.pipeline.verbs.replay.writer import ReplayBatchWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.spark.dead_letters import BadDates
    from minibroker.pipeline.verbs.replay.plan import ReplayPlan

_FILES: Final = 1_000
"""Files of an archive that are looked at before a replay."""
UNKNOWN_BYTES: Final = 1_000.0
"""Bytes of a record where no sample says more."""


class FoundFiles(NamedTuple):
    """The files of an archive, as tasks have found them."""

    files: DataFrame
    """Columns of `replayed.files_of`; its rows are with the executors."""
    knots: DataFrame | None
    """Columns of `replayed.knots_of`, some of them several times; None: without a speed."""
    mean_bytes: float
    """Bytes of keys and values of a record, about."""


class IndexedArchive(NamedTuple):
    """An archive whose files were looked at."""

    file_format: str
    renamed: Mapping[str, str]
    """Names of columns, see `tables.archived_files.kept_bytes`."""
    archive_files: FoundFiles
    replay_index: ReplayIndex

    def chosen_rows(self, spark: SparkSession, plan: ReplayPlan) -> DataFrame:
        """Return rows of the archive's files, chosen and not masked: of some files of a large one.

        Raises PipelineError.
        """
        paths = [
            row.path for row in self.archive_files.files.select("path").distinct().take(_FILES)
        ]
        rows = archived_files.rows_of(spark, plan.archive, self.file_format, paths, self.renamed)
        return chosen(rows, plan.operations)

    def writer(
        self, plan: ReplayPlan, name: str, secret: bytes, bad_dates: BadDates | None
    ) -> ReplayBatchWriter:
        """Return the writer of its batches; arguments as of `ReplayBatchWriter`."""
        return ReplayBatchWriter(
            plan,
            self.file_format,
            self.archive_files.files,
            name,
            renamed=self.renamed,
            secret=secret,
            bad_dates=bad_dates,
        )


def indexed(spark: SparkSession, plan: ReplayPlan, files: FileSystem) -> IndexedArchive:
    """Look at the files of the archive. Raises PipelineError."""
    file_format = archived_files.format_of(files, plan.archive)
    renamed = archived_files.kept_bytes(files, plan.archive)
    archive_files = find_files(spark, plan, file_format, renamed)
    return IndexedArchive(file_format, renamed, archive_files, build_index(plan, archive_files))


def find_files(
    spark: SparkSession, plan: ReplayPlan, file_format: str, renamed: Mapping[str, str]
) -> FoundFiles:
    """Return the files with records to replay.

    Files are looked at in parts (`tables.archived_files.FILES_AT_ONCE`), and what is found stays
    with the executors: the driver needs as much memory for 100,000 files as for 10,000. `renamed`
    is as of `tables.archived_files.kept_bytes`.

    Raises PipelineError.
    """

    now_ms = None if plan.dead_letters is None else SystemClock().now_ms()
    now = None if now_ms is None else f.timestamp_millis(f.lit(now_ms))

    def in_range() -> Iterator[DataFrame]:
        for rows in archived_files.rows_in_parts(spark, plan.archive, file_format):
            of_topics = rows.where(rows["topic"].isin(*plan.topics)) if plan.topics else rows
            yield in_time(of_topics, plan.operations, now)

    contents = _contents(spark, plan, file_format, now_ms)
    if contents is None:
        contents = map(replayed.files_of, in_range())
    files = None
    for part in map(_compute, contents):
        files = part if files is None else files.unionByName(part)
    if files is None:
        raise PipelineError(f"the archive {plan.archive} has no records: archive some first")
    knots = None if plan.speed is None else _knots(in_range, files, plan.speed)
    mean_bytes = None
    if (file := files.select("path").first()) is not None:
        rows = archived_files.rows_of(spark, plan.archive, file_format, [file.path], renamed)
        mean_bytes = replayed.mean_bytes(rows).collect()[0].bytes
    return FoundFiles(files, knots, mean_bytes or UNKNOWN_BYTES)


def _contents(
    spark: SparkSession, plan: ReplayPlan, file_format: str, now_ms: int | None
) -> Iterator[DataFrame] | None:
    """Return what tasks find in Parquet files themselves, in parts; None where only Spark reads.

    `now_ms` is given for a job that sets aside records which are dated far ahead of it.
    """
    if file_format in ("json", "csv") or is_remote(plan.archive):
        return None
    parts = archived_files.paths_in_parts(spark, plan.archive, file_format)
    if parts is None:
        return None
    since, until = plan.operations.since, plan.operations.until
    choice = Chosen(
        plan.topics,
        None if since is None else since.ms,
        None if until is None else until.ms,
        None if now_ms is None else latest_ms(now_ms),
    )
    return (contents_of(spark, part, choice) for part in parts if part)


def _compute(rows: DataFrame) -> DataFrame:
    """Return the rows, computed: without the plan behind them, which knows of every file."""
    return rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)


def _knots(
    frames: Callable[[], Iterator[DataFrame]], files: DataFrame, speed: float
) -> DataFrame | None:
    """Return the knots of all frames; None if no record has a time."""
    spans = [replayed.time_span(rows).collect()[0] for rows in frames()]
    timed = [span for span in spans if span.first_ms is not None]
    if not timed:
        return None
    width_ms = knot_ms(
        min(span.first_ms for span in timed),
        max(span.last_ms for span in timed),
        speed,
        files.select("topic", "partition").distinct().count(),
    )
    knots = None
    for rows in frames():
        part = _compute(replayed.knots_of(rows, width_ms))
        knots = part if knots is None else knots.unionByName(part)
    return knots


def build_index(plan: ReplayPlan, archive_files: FoundFiles) -> ReplayIndex:
    """Return an index of the records to replay; its size depends on the partitions alone.

    Raises PipelineError.
    """
    partitions = archive_files.files.select("topic", "partition").distinct().collect()
    topics = sorted({row.topic for row in partitions})
    is_in_time = plan.operations.since is None and plan.operations.until is None
    when = "" if is_in_time else " between --since and --until"
    missing = sorted(set(plan.topics) - set(topics))
    if missing or not topics:
        raise PipelineError(
            f"the archive {plan.archive} has no records of topic {missing[0]!r}{when}: check the "
            "name"
            if missing
            else f"the archive {plan.archive} has no records{when}: archive some first"
        )
    if len(topics) > 1 and not plan.topics:
        raise PipelineError(
            f"the archive {plan.archive} has topics {', '.join(topics)}: say with --topic which "
            f"of them go to {plan.to_topic}"
        )
    each = max(1, STRETCHES_MAX // len(partitions))
    stretches = replayed.stretches_of(archive_files.files, each).collect()
    knots: dict[TopicPartition, list[Knot]] = {}
    rows = (
        [] if archive_files.knots is None else replayed.merged_knots(archive_files.knots).collect()
    )
    for topic, partition, time_ms, offset in sorted(rows):
        knots.setdefault(TopicPartition(topic, partition), []).append(Knot(time_ms, offset))
    return ReplayIndex((Stretch(*row) for row in stretches), None if plan.speed is None else knots)
