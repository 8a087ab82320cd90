"""`replay`: an archive's files → topic, each record exactly once, in order within a partition.

The streaming source (`replay.source`) returns ranges of offsets of the archived topics. Spark
writes the ranges of a batch into the checkpoint before the batch runs. This job reads these ranges
from the files and writes them with the exactly-once sink, whose transactions carry the number of
the batch. After a kill the next run gets the same ranges under the same number again, and the sink
skips the parts that it has written.

    index of the files ─► ranges due ─► checkpoint ─► rows of the ranges, sorted ─► transactions
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minibroker.cli.quantities import counted
from minibroker.pipeline import offsets
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.checkpoints.checkpoint_files import start_query, timed
from minibroker.pipeline.cli.dry_run import (
    SEEN_LATER,
    Lines,
    format_text,
    limits_text,
    operations_lines,
    rate_text,
)
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_of, files_with
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.sink.task_markers import check_not_older
from minibroker.pipeline.kafka.source.frames import RATED_BATCH_S
from minibroker.pipeline.operations.frames import check_condition
from minibroker.pipeline.spark import dead_letters
from minibroker.pipeline.spark.job_operations import (
    CheckedPlaces,
    begin_operations,
    check_operations,
)
from minibroker.pipeline.spark.progress import Note, Outcome, Reports
from minibroker.pipeline.spark.running import Watch, run_started
from minibroker.pipeline.spark.source_topics import read_ids, recreated, write_ids
from minibroker.pipeline.spark.target_topics import (
    KEPT_FOR_EVER,
    ReplayTarget,
    archived_partitions,
    create,
    expiry_note,
)
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.verbs.replay.indexed_archive import indexed
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.replay.source import FORMAT, ReplaySource
from minibroker.pipeline.verbs.replay.writer import ReplayBatchWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.spark.progress import Progress
    from minibroker.pipeline.verbs.replay.index import ReplayIndex
    from minibroker.pipeline.verbs.replay.indexed_archive import IndexedArchive

_PACED_TRIGGER = "1 second"


def check(plan: ReplayPlan, spark: SparkSession | None = None) -> ReplayTarget:
    """Return the topic to write to, as it is or as it will be made.

    Raises:
        PipelineError: no broker, no archive; the checkpoint of another replay, or of records of
            another topic of that name.
    """
    cluster = preflight.ask(plan.kafka)
    partitions = cluster.partitions.get(plan.to_topic)
    dead_letters.check(plan.dead_letters, cluster, spark)
    files, checkpoints = files_of(plan.archive, spark), files_of(plan.checkpoint, spark)
    if files is not None:
        archived_files.format_of(files, plan.archive)
        archived_files.kept_bytes(files, plan.archive)
    if checkpoints is not None:
        _check_checkpoint(plan, checkpoints, is_there=partitions is not None)
        claim = _claim_of(plan, checkpoints)
        check_operations(plan.operations, plan.checkpoint, claim, in_result=False)
    if files is not None and checkpoints is not None:
        _check_same_topics(plan, files, checkpoints)
    if partitions is not None:
        return ReplayTarget(partitions, is_there=True)
    count = 0 if files is None else archived_partitions(files, plan.archive, plan.topics)
    return ReplayTarget(count, is_there=False)


def _claim_of(plan: ReplayPlan, checkpoints: FileSystem) -> Mapping[str, str]:
    last = job_directory.last_begun(checkpoints, join(plan.checkpoint, "checkpoint"))
    return job_directory.claim_of(checkpoints, plan.checkpoint, last, in_result=False)


def job_of(plan: ReplayPlan) -> Mapping[str, str]:
    """Return the settings that must be the same in every run with one checkpoint."""
    return {
        "job": "replay",
        "topic": plan.to_topic,
        "topic id": preflight.topic_id(plan.kafka, plan.to_topic),
    }


def describe(plan: ReplayPlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    target = check(plan)
    files = files_of(plan.archive, None)
    speed = "as fast as it goes" if plan.speed is None else f"at {plan.speed:g} times the pace"
    time = "their timestamps" if plan.keep_timestamps else "the time of the replay"
    place = "in their partitions" if plan.keep_partitions else "in the partitions of their keys"
    checkpoints = files_of(plan.checkpoint, None)
    if checkpoints is None:
        progress = SEEN_LATER
    elif job_directory.progress_of(checkpoints, join(plan.checkpoint, "checkpoint")) is None:
        progress = "new"
    else:
        progress = "goes on from there"
    return [
        ("replay", f"{plan.archive}, {format_text(archived_files.format_of(files, plan.archive))}")
        if files is not None
        else ("replay", plan.archive),
        ("topics", ", ".join(plan.topics) or "the one that is there"),
        ("to", f"topic {plan.to_topic} ({_target(target)}) at {plan.kafka.bootstrap}"),
        ("writes", f"{speed}, with {time}, {place}"),
        ("progress", f"{plan.checkpoint}: {progress}"),
        (
            "batches",
            f"of {limits_text(plan.batch_rows, plan.batch_bytes)}{rate_text(plan.max_rate)}",
        ),
        *operations_lines(plan.operations, plan.checkpoint),
    ]


def _target(target: ReplayTarget) -> str:
    if target.is_there:
        return counted(target.partitions, "partition")
    if target.partitions:
        return f"which is made, with {counted(target.partitions, 'partition')}"
    return f"which is made; how many partitions it gets {SEEN_LATER}"


def run(spark: SparkSession, plan: ReplayPlan, reports: Reports) -> Outcome:
    """Replay the records that are in the archive and not in the checkpoint, until it is stopped.

    Raises:
        PipelineError: it cannot be done.
    """
    files, checkpoints = files_with(spark, plan.archive), files_with(spark, plan.checkpoint)
    target = check(plan, spark)
    run_operations = begin_operations(
        plan.operations,
        checkpoints,
        plan.checkpoint,
        _claim_of(plan, checkpoints),
        in_result=False,
    )
    plan = plan._replace(operations=run_operations.operations)
    check_condition(spark, plan.operations)
    archive = indexed(spark, plan, files)
    if target.is_there:
        _check_fits(plan, archive.replay_index, target.partitions)
    if _is_complete(plan, checkpoints, archive.replay_index):
        return Outcome()
    places = CheckedPlaces(plan.operations, run_operations.secret, checkpoints, plan.checkpoint)
    rows = lambda: archive.chosen_rows(spark, plan)  # noqa: E731
    if not places.begin(rows, plan.batch_rows, stop=reports.stop, waits=False):
        return Outcome()
    if not target.is_there:
        reports.note(_make_target(plan, files, archive.replay_index))
    elif plan.keep_timestamps and (expiry := _expiry_note(plan)) is not None:
        reports.note(expiry)
    name = _begin(plan, files, checkpoints, run_operations.identity)
    check_not_older(
        plan.kafka.writer_options(), name, checkpoints, join(plan.checkpoint, "checkpoint")
    )
    bad_dates = dead_letters.bad_dates(
        spark,
        plan.dead_letters,
        plan.kafka,
        files=checkpoints,
        checkpoint=join(plan.checkpoint, "checkpoint"),
        hides=plan.operations.changes,
    )
    writer = archive.writer(plan, name, run_operations.secret, bad_dates)
    with tempfile.TemporaryDirectory(prefix="minibroker-replay-") as directory:
        index_file = Path(directory, "index.json")
        index_file.write_text(archive.replay_index.to_json(), encoding="utf-8")
        outcome = run_started(
            lambda: _start(spark, plan, archive, index_file, writer, progress=reports.progress),
            reports.stop,
        )
    return run_operations.with_missed(outcome)


def _begin(
    plan: ReplayPlan, files: FileSystem, checkpoints: FileSystem, identity: Mapping[str, str]
) -> str:
    """Write beside the checkpoint what it belongs to, and return the name of the replay.

    The name is the same after a restart. `identity` is that of the operations.
    """
    identity_of_job = {**job_of(plan), **identity, "name": f"replay-{uuid.uuid4()}"}
    claim = _claim_of(plan, checkpoints)
    job_directory.write_job(checkpoints, plan.checkpoint, identity_of_job, claim)
    write_ids(checkpoints, plan.checkpoint, read_ids(files, plan.archive))
    return job_directory.read_job(checkpoints, plan.checkpoint)["name"]


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
    archive: IndexedArchive,
    index_file: Path,
    writer: ReplayBatchWriter,
    *,
    progress: Progress | None,
) -> Watch:
    index = archive.replay_index
    spark.dataSource.register(ReplaySource)
    ranges = (
        spark.readStream.format(FORMAT)
        .option("index", str(index_file))
        .option("rows", str(batch_rows(plan, archive.archive_files.mean_bytes)))
        .option("speed", "" if plan.speed is None else str(plan.speed))
        .load()
    )
    stream = timed(
        ranges.writeStream.foreachBatch(writer.write),
        available_now=plan.speed is None,
        trigger=_PACED_TRIGGER,
    )
    return Watch(
        start_query(spark, stream, join(plan.checkpoint, "checkpoint")),
        progress,
        rows_of=lambda facts: 0,
        metrics_of=lambda facts: writer.metrics.pop(facts["batchId"], {}),
        is_done=None if plan.speed is None else lambda facts: _is_at_end(facts, index),
    )


def _check_checkpoint(plan: ReplayPlan, checkpoints: FileSystem, *, is_there: bool) -> None:
    claim = _claim_of(plan, checkpoints)
    if not is_there:
        if claim:
            raise PipelineError(
                f"{plan.checkpoint} belongs to a replay into a topic {plan.to_topic!r} that is "
                "gone: give another directory with --checkpoint to replay into a new one"
            )
        return
    job_directory.check_job(plan.checkpoint, claim, job_of(plan))


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
    topics = {place.topic for place in index.partitions}
    partitions = max(archived_partitions(files, plan.archive, topics), _needed_partitions(index))
    config = KEPT_FOR_EVER if plan.keep_timestamps else {}
    create(plan.kafka, plan.to_topic, partitions, config, any_time=plan.keep_timestamps)
    age_text = ", and keeps records of any age (retention.ms=-1)" if plan.keep_timestamps else ""
    return Note(
        f"topic {plan.to_topic} is made, with {counted(partitions, 'partition')}{age_text}",
        {"created_topic": plan.to_topic, "partitions": partitions, **config},
    )


def _expiry_note(plan: ReplayPlan) -> Note | None:
    """Return a note if the topic, which exists, deletes old records. Raises PipelineError."""
    entries = preflight.topic_settings(plan.kafka, plan.to_topic)
    return expiry_note(plan.to_topic, {entry.name: entry.value for entry in entries})


def _needed_partitions(index: ReplayIndex) -> int:
    return max(place.partition for place in index.partitions) + 1


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
    progress = job_directory.progress_of(checkpoints, checkpoint)
    if progress is None or not job_directory.is_committed(checkpoints, checkpoint):
        return False
    return all(progress.get(place, -1) >= end for place, end in index.ends().items())


def _is_at_end(progress: Mapping[str, Any], index: ReplayIndex) -> bool:
    """Return whether a batch was the last one; a replay at a speed does not end by itself."""
    (source,) = progress["sources"]
    position, origin = source["endOffset"], "the replay's progress"
    parse = offsets.from_json if isinstance(position, str) else offsets.from_plain
    positions = parse(position, origin=origin)
    return all(positions.get(partition, -1) >= end for partition, end in index.ends().items())
