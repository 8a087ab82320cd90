"""`replay`: an archive's files → topic, each record exactly once, in order within a partition.

The streaming source (`replays.source`) returns ranges of offsets of the archived topics. Spark
writes the ranges of a batch into the checkpoint before the batch runs. This job reads these ranges
from the files and writes them with the exactly-once sink, whose transactions carry the number of
the batch. After a kill the next run gets the same ranges under the same number again, and the sink
skips the parts that it has written.

    index of the files ─► ranges due ─► checkpoint ─► rows of the ranges, sorted ─► transactions
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark import StorageLevel

from minibroker.pipeline import offsets, preflight
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import explained
from minibroker.pipeline.files import files_of, files_with
from minibroker.pipeline.offsets import TopicPartition
from minibroker.pipeline.operations.settled import begin_operations, check_operations
from minibroker.pipeline.outcome import Outcome
from minibroker.pipeline.plan import is_remote, join
from minibroker.pipeline.progress import Note
from minibroker.pipeline.quantities import counted
from minibroker.pipeline.replays import writer as replay_writer
from minibroker.pipeline.replays.file_contents import Chosen, contents_of
from minibroker.pipeline.replays.index import STRETCHES_MAX, Knot, ReplayIndex, Stretch, knot_ms
from minibroker.pipeline.replays.source import ReplaySource
from minibroker.pipeline.replays.target import ReplayTarget, archived_partitions, create
from minibroker.pipeline.running import Watch, run_started
from minibroker.pipeline.source.frames import RATED_BATCH_S
from minibroker.pipeline.state import job_directory
from minibroker.pipeline.state.checkpoint_files import start_query, timed
from minibroker.pipeline.state.topic_identity import read_ids, recreated, write_ids
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.transforms import replayed
from minibroker.pipeline.transforms.operated import check_condition, in_time
from minibroker.pipeline.verbs.replay import ReplayPlan

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from minibroker.pipeline.files import FileSystem
    from minibroker.pipeline.progress import Progress

_PACED_TRIGGER = "1 second"
UNKNOWN_BYTES: Final = 1_000.0
"""Bytes of a record where no sample says more."""


def check(plan: ReplayPlan, spark: SparkSession | None = None) -> ReplayTarget:
    """Return the topic to write to, as it is or as it will be made.

    Raises:
        PipelineError: no broker, no archive; the checkpoint of another replay, or of records of
            another topic of that name.
    """
    there = preflight.ask(plan.kafka).partitions.get(plan.to_topic)
    files, checkpoints = files_of(plan.archive, spark), files_of(plan.checkpoint, spark)
    if files is not None:
        archived_files.format_of(files, plan.archive)
        archived_files.kept_bytes(files, plan.archive)
    if checkpoints is not None:
        _check_checkpoint(plan, checkpoints, is_there=there is not None)
        found = job_directory.read_job(checkpoints, plan.checkpoint)
        check_operations(plan.operations, plan.checkpoint, found, in_result=False)
    if files is not None and checkpoints is not None:
        _check_same_topics(plan, files, checkpoints)
    if there is not None:
        return ReplayTarget(there, is_there=True)
    known = 0 if files is None else archived_partitions(files, plan.archive, plan.topics)
    return ReplayTarget(known, is_there=False)


def job_of(plan: ReplayPlan) -> Mapping[str, str]:
    """Return the settings that must be the same in every run with one checkpoint."""
    return {
        "job": "replay",
        "topic": plan.to_topic,
        "topic id": preflight.topic_id(plan.kafka, plan.to_topic),
    }


def run(
    spark: SparkSession,
    plan: ReplayPlan,
    *,
    progress: Progress | None = None,
    note: Callable[[Note], None] | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Replay the records that are in the archive and not in the checkpoint, until `stop` is set.

    Raises:
        PipelineError: it cannot be done.
    """
    files, checkpoints = files_with(spark, plan.archive), files_with(spark, plan.checkpoint)
    target = check(plan, spark)
    settled = begin_operations(
        plan.operations,
        checkpoints,
        plan.checkpoint,
        job_directory.read_job(checkpoints, plan.checkpoint),
        in_result=False,
    )
    plan = plan._replace(operations=settled.operations)
    check_condition(spark, plan.operations)
    directory = Path(tempfile.mkdtemp(prefix="minibroker-replay-"))
    try:
        file_format = archived_files.format_of(files, plan.archive)
        renamed = archived_files.kept_bytes(files, plan.archive)
        found = find_files(spark, plan, file_format, renamed)
        index = build_index(plan, found)
        if target.is_there:
            _check_fits(plan, index, target.partitions)
        if _is_complete(plan, checkpoints, index):
            return Outcome()
        if not target.is_there:
            made = _make_target(plan, files, index)
            if note is not None:
                note(made)
        job_directory.write_job(
            checkpoints,
            plan.checkpoint,
            {**job_of(plan), **settled.identity, "name": f"replay-{uuid.uuid4()}"},
        )
        write_ids(checkpoints, plan.checkpoint, read_ids(files, plan.archive))
        name = job_directory.read_job(checkpoints, plan.checkpoint)["name"]
        index_file = directory / "index.json"
        index_file.write_text(index.to_json(), encoding="utf-8")
        writer = replay_writer.ReplayBatchWriter(
            plan, file_format, found.files, name, renamed=renamed, secret=settled.secret
        )
        rows = batch_rows(plan, found.mean_bytes)
        return settled.told(
            run_started(
                lambda: Watch(
                    _start(spark, plan, index_file, writer, rows),
                    progress,
                    rows_of=lambda found: 0,
                    metrics_of=lambda found: writer.metrics.pop(found["batchId"], {}),
                    is_done=None if plan.speed is None else lambda found: _is_at_end(found, index),
                ),
                stop,
            )
        )
    except Exception as error:
        raise explained(error) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class FoundFiles(NamedTuple):
    """The files of an archive, as tasks have found them."""

    files: DataFrame
    """Columns of `replayed.files_of`; its rows are with the executors."""
    knots: DataFrame | None
    """Columns of `replayed.knots_of`, some of them several times; None: without a speed."""
    mean_bytes: float
    """Bytes of keys and values of a record, about."""


def find_files(
    spark: SparkSession, plan: ReplayPlan, file_format: str, renamed: Mapping[str, str]
) -> FoundFiles:
    """Return the files with records to replay.

    Files are looked at in parts (`tables.archived_files.FILES_AT_ONCE`), and what is found stays
    with the executors: the driver needs as much memory for 100,000 files as for 10,000. `renamed`
    is as of `tables.archived_files.kept_bytes`.

    Raises PipelineError.
    """

    def chosen() -> Iterator[DataFrame]:
        for rows in archived_files.rows_in_parts(spark, plan.archive, file_format):
            of_topics = rows.where(rows["topic"].isin(*plan.topics)) if plan.topics else rows
            yield in_time(of_topics, plan.operations)

    contents = _contents(spark, plan, file_format)
    if contents is None:
        contents = map(replayed.files_of, chosen())
    files = None
    for part in map(_kept, contents):
        files = part if files is None else files.unionByName(part)
    if files is None:
        raise PipelineError(f"the archive {plan.archive} has no records: archive some first")
    knots = None if plan.speed is None else _knots(chosen, files, plan.speed)
    mean_bytes = None
    if (file := files.select("path").first()) is not None:
        rows = archived_files.rows_of(spark, plan.archive, file_format, [file.path], renamed)
        mean_bytes = replayed.mean_bytes(rows).collect()[0].bytes
    return FoundFiles(files, knots, mean_bytes or UNKNOWN_BYTES)


def _contents(
    spark: SparkSession, plan: ReplayPlan, file_format: str
) -> Iterator[DataFrame] | None:
    """Return what tasks find in Parquet files themselves, in parts; None where only Spark reads."""
    if file_format in ("json", "csv") or is_remote(plan.archive):
        return None
    parts = archived_files.paths_in_parts(spark, plan.archive, file_format)
    if parts is None:
        return None
    since, until = plan.operations.since, plan.operations.until
    wanted = Chosen(
        plan.topics, None if since is None else since.ms, None if until is None else until.ms
    )
    return (contents_of(spark, part, wanted) for part in parts if part)


def _kept(found: DataFrame) -> DataFrame:
    """Return the rows, computed: without the plan behind them, which knows of every file."""
    return found.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)


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
        part = _kept(replayed.knots_of(rows, width_ms))
        knots = part if knots is None else knots.unionByName(part)
    return knots


def build_index(plan: ReplayPlan, found: FoundFiles) -> ReplayIndex:
    """Return an index of the records to replay; its size depends on the partitions alone.

    Raises PipelineError.
    """
    partitions = found.files.select("topic", "partition").distinct().collect()
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
    stretches = replayed.stretches_of(found.files, each).collect()
    knots: dict[TopicPartition, list[Knot]] = {}
    rows = [] if found.knots is None else replayed.merged_knots(found.knots).collect()
    for topic, partition, time_ms, offset in sorted(rows):
        knots.setdefault(TopicPartition(topic, partition), []).append(Knot(time_ms, offset))
    return ReplayIndex((Stretch(*row) for row in stretches), None if plan.speed is None else knots)


def batch_rows(plan: ReplayPlan, mean_bytes: float) -> int:
    """Return how many records a batch has, at most: within its limits of records and of bytes.

    At a limited rate a batch lasts about RATED_BATCH_S: brokers abort transactions that last long.
    """
    size = plan.batch_bytes
    if plan.max_rate is not None:
        size = min(size, plan.max_rate * RATED_BATCH_S)
    return max(1, min(plan.batch_rows, int(size / max(1.0, mean_bytes))))


def _start(
    spark: SparkSession,
    plan: ReplayPlan,
    index_file: Path,
    writer: replay_writer.ReplayBatchWriter,
    rows: int,
) -> StreamingQuery:
    spark.dataSource.register(ReplaySource)
    ranges = (
        spark.readStream.format(replay_writer.FORMAT)
        .option("index", str(index_file))
        .option("rows", str(rows))
        .option("speed", "" if plan.speed is None else str(plan.speed))
        .load()
    )
    stream = timed(
        ranges.writeStream.foreachBatch(writer.write),
        available_now=plan.speed is None,
        trigger=_PACED_TRIGGER,
    )
    return start_query(spark, stream, join(plan.checkpoint, "checkpoint"))


def _check_checkpoint(plan: ReplayPlan, checkpoints: FileSystem, *, is_there: bool) -> None:
    found = job_directory.read_job(checkpoints, plan.checkpoint)
    if not is_there:
        if found:
            raise PipelineError(
                f"{plan.checkpoint} belongs to a replay into a topic {plan.to_topic!r} that is "
                "gone: give another directory with --checkpoint to replay into a new one"
            )
        return
    job_directory.check_job(plan.checkpoint, found, job_of(plan))


def _check_same_topics(plan: ReplayPlan, files: FileSystem, checkpoints: FileSystem) -> None:
    """Raise PipelineError if a topic of the archive was made anew since the replay began."""
    anew = recreated(read_ids(checkpoints, plan.checkpoint), read_ids(files, plan.archive))
    if chosen := [topic for topic in anew if not plan.topics or topic in plan.topics]:
        raise PipelineError(
            f"topic {chosen[0]!r} was made anew since the replay of {plan.checkpoint} began, and "
            f"{plan.archive} has records of both: those of the new one would be left out up to the "
            "offset that is reached; give another directory with --checkpoint to replay all"
        )


def _make_target(plan: ReplayPlan, files: FileSystem, index: ReplayIndex) -> Note:
    """Make the topic and return a note about it. Raises PipelineError."""
    topics = {where.topic for where in index.partitions}
    partitions = max(archived_partitions(files, plan.archive, topics), _needed_partitions(index))
    create(plan.kafka, plan.to_topic, partitions)
    by_time = "; its retention counts by the records' timestamps" if plan.keep_timestamps else ""
    return Note(
        f"topic {plan.to_topic} is made, with {counted(partitions, 'partition')}{by_time}",
        {"created_topic": plan.to_topic, "partitions": partitions},
    )


def _needed_partitions(index: ReplayIndex) -> int:
    return max(where.partition for where in index.partitions) + 1


def _check_fits(plan: ReplayPlan, index: ReplayIndex, partitions: int) -> None:
    if not plan.keep_partitions:
        return
    needed = _needed_partitions(index)
    if needed > partitions:
        raise PipelineError(
            f"topic {plan.to_topic!r} has {counted(partitions, 'partition')} and the archive "
            f"{needed}: add partitions, or leave out --keep-partitions"
        )


def _is_complete(plan: ReplayPlan, checkpoints: FileSystem, index: ReplayIndex) -> bool:
    """Return whether the last batch that was begun is done and no record follows it."""
    checkpoint = join(plan.checkpoint, "checkpoint")
    reached = job_directory.progress_of(checkpoints, checkpoint)
    if reached is None or not job_directory.is_committed(checkpoints, checkpoint):
        return False
    return all(reached.get(where, -1) >= end for where, end in index.ends().items())


def _is_at_end(progress: Mapping[str, Any], index: ReplayIndex) -> bool:
    """Return whether a batch was the last one; a replay at a speed does not end by itself."""
    (source,) = progress["sources"]
    found, where = source["endOffset"], "the replay's progress"
    parse = offsets.from_json if isinstance(found, str) else offsets.from_plain
    reached = parse(found, where=where)
    return all(reached.get(partition, -1) >= end for partition, end in index.ends().items())
