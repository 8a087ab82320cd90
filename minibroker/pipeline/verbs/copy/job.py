"""`copy`: topics → topics of this or another cluster, each record exactly once.

The source is a stream of ranges of offsets, so that Spark's checkpoint has a range before it is
copied. Each batch is copied by tasks that read and write (`copy.writer`). Consumer groups follow
behind the records (`copy.groups`).

    ranges ─► checkpoint ─► tasks: read, write in a transaction ─► offset map ─► groups
"""

from __future__ import annotations

import json
import re
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from minibroker.cli import quantities
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.checkpoints.checkpoint_files import start_query, timed
from minibroker.pipeline.cli.dry_run import (
    Lines,
    ahead_text,
    cluster_text,
    operations_lines,
    origin_text,
    rate_text,
    topics_text,
)
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_of, files_with
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.sink.task_markers import check_not_older
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.kafka.source.frames import RATED_BATCH_S
from minibroker.pipeline.operations.frames import check_condition, chosen
from minibroker.pipeline.operations.rows import source_options
from minibroker.pipeline.options.shared import pause_option, trigger_of
from minibroker.pipeline.spark import dead_letters, source_topics
from minibroker.pipeline.spark.job_operations import (
    CheckedPlaces,
    begin_operations,
    check_operations,
    records_ahead,
)
from minibroker.pipeline.spark.progress import Note, Outcome, Reports
from minibroker.pipeline.spark.repeating import repeated
from minibroker.pipeline.spark.running import Watch, run_started
from minibroker.pipeline.spark.source_topics import Place, SkippedOffsets, with_skips
from minibroker.pipeline.verbs.copy.chosen import ChosenBatchWriter
from minibroker.pipeline.verbs.copy.groups import let_follow
from minibroker.pipeline.verbs.copy.offset_map import OffsetMapFiles
from minibroker.pipeline.verbs.copy.targets import CopyTargets, too_few
from minibroker.pipeline.verbs.copy.writer import CopyBatchWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.kafka.preflight import ClusterTopics
    from minibroker.pipeline.spark.dead_letters import BadDates
    from minibroker.pipeline.spark.progress import Progress
    from minibroker.pipeline.verbs.copy.offset_map import TranslatedOffsets
    from minibroker.pipeline.verbs.copy.plan import CopyPlan

GROUPS_EVERY_S: Final = 60.0
"""Time between two looks at the groups (MirrorMaker 2's `sync.group.offsets.interval.seconds`)."""
_OF_TARGETS: Final = "targets"
"""Directory of the ids of the target's topics, beside those of the source's."""


def check(plan: CopyPlan, spark: SparkSession | None = None) -> list[str]:
    """Return the topics to copy now.

    Args:
        spark: needed for a checkpoint that is a URL; without it such a directory is not checked.

    Raises:
        PipelineError: no broker, a missing topic, a copy onto itself, the checkpoint of another
            job, a target with fewer partitions.
    """
    source_cluster, target_cluster = preflight.ask(plan.kafka), preflight.ask(plan.target)
    topics = preflight.chosen_topics(source_cluster, plan.topics, plan.pattern)
    _check_names(plan, source_cluster, target_cluster, topics)
    if plan.keeps_partitions:
        for topic in topics:
            target, count = plan.target_of(topic), source_cluster.partitions[topic]
            if target_cluster.partitions.get(target, count) < count:
                raise PipelineError(
                    too_few(topic, count, target, target_cluster.partitions[target])
                )
    files = files_of(plan.checkpoint_directory, spark)
    if files is not None:
        claim = _claim_of(plan, files)
        job_directory.check_job(
            plan.checkpoint_directory, claim, job_of(plan, source_cluster, target_cluster)
        )
        check_operations(plan.operations, plan.checkpoint_directory, claim, in_result=False)
        source_topics.check(plan, _place(plan, files), source_cluster, topics)
        _check_targets(plan, files, target_cluster, topics)
    dead_letters.check(plan.dead_letters, target_cluster, spark)
    return topics


def _check_names(
    plan: CopyPlan,
    source_cluster: ClusterTopics,
    target_cluster: ClusterTopics,
    topics: Sequence[str],
) -> None:
    """Raise PipelineError for a copy that would read what it writes."""
    if source_cluster.cluster_id != target_cluster.cluster_id:
        return
    for topic in topics:
        target = plan.target_of(topic)
        if target in topics:
            raise PipelineError(
                f"topic {topic!r} would be copied into {target!r}, which is read, in the same "
                "cluster: give --to-topic or --prefix, or another cluster with --to-bootstrap"
            )
        if plan.pattern is not None and re.fullmatch(plan.pattern, target):
            raise PipelineError(
                f"the copy {target!r} matches --pattern {plan.pattern} in the same cluster, so "
                "copies would be copied again: change the pattern or the prefix"
            )


def _check_targets(
    plan: CopyPlan, files: FileSystem, cluster: ClusterTopics, topics: Iterable[str]
) -> None:
    ids = source_topics.read_ids(files, join(plan.checkpoint_directory, _OF_TARGETS))
    targets = [plan.target_of(topic) for topic in topics]
    missing = sorted(
        target for target in targets if target in ids and target not in cluster.partitions
    )
    now = preflight.topic_ids(plan.target, [name for name in targets if name in cluster.partitions])
    if anew := [*missing, *source_topics.recreated(ids, now)]:
        raise PipelineError(
            f"{plan.checkpoint_directory} belongs to a copy into a topic {anew[0]!r} that is gone: "
            "give another directory with --checkpoint to copy into a new one"
        )


def _claim_of(plan: CopyPlan, files: FileSystem) -> Mapping[str, str]:
    last = job_directory.last_begun(files, plan.checkpoint)
    return job_directory.claim_of(files, plan.checkpoint_directory, last, in_result=False)


def job_of(
    plan: CopyPlan, source_cluster: ClusterTopics, target_cluster: ClusterTopics
) -> Mapping[str, str]:
    """Return the settings that must be the same in every run with one checkpoint."""
    return {
        "job": "copy",
        "source": source_cluster.cluster_id,
        "target": target_cluster.cluster_id,
        "copies": plan.target_of("TOPIC"),
        "partitions": "kept" if plan.keeps_partitions else "by key",
    }


def _place(plan: CopyPlan, files: FileSystem) -> Place:
    return Place(files, plan.checkpoint_directory, plan.checkpoint)


def describe(plan: CopyPlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    topics = check(plan)
    partitions = preflight.ask(plan.target).partitions
    targets = [
        f"{name} ({quantities.counted(partitions[name], 'partition')})"
        if name in partitions
        else f"{name} (which is made)"
        for name in map(plan.target_of, topics)
    ]
    groups = [*plan.groups, *([f"all of {plan.groups_pattern}"] if plan.groups_pattern else [])]
    ending = "and goes on with what comes" if plan.follow else "and ends"
    return [
        ("copy", topics_text(plan.kafka, topics)),
        ("from", origin_text(plan.kafka)),
        ("to", f"{', '.join(targets)} at {cluster_text(plan.target)}"),
        ("places", "in the partitions of their keys" if plan.by_key else "in their partitions"),
        ("groups", ", ".join(groups) or "none"),
        ("copies", f"{ahead_text(plan.kafka, topics, plan.checkpoint, plan.operations)}, {ending}"),
        ("batches", f"of {plan.batch_rows:,} records at most{rate_text(plan.max_rate)}"),
        *operations_lines(plan.operations, plan.checkpoint_directory),
    ]


def run(spark: SparkSession, plan: CopyPlan, reports: Reports) -> Outcome:
    """Copy all records that exist now, or with `follow` go on until it is stopped.

    Raises:
        PipelineError: it cannot be done.
    """
    files = files_with(spark, plan.checkpoint_directory)
    topics = check(plan, spark)
    ids, target = preflight.topic_ids(plan.kafka, topics), plan.target
    directory, place = plan.checkpoint_directory, _place(plan, files)
    claim = _claim_of(plan, files)
    run_operations = begin_operations(plan.operations, files, directory, claim, in_result=False)
    plan = plan._replace(operations=run_operations.operations)
    check_condition(spark, plan.operations)

    def chosen_ahead() -> DataFrame:
        ahead = records_ahead(spark, reader_options(plan), place)
        return chosen(ahead, plan.operations)

    places_met = CheckedPlaces(plan.operations, run_operations.secret, files, directory)
    if not places_met.begin(chosen_ahead, plan.batch_rows, stop=reports.stop, waits=plan.follow):
        return Outcome(was_stopped=reports.stop.is_set())
    whole = {
        **job_of(plan, preflight.ask(plan.kafka), preflight.ask(target)),
        **run_operations.identity,
    }
    job = {**whole, "name": f"copy-{uuid.uuid4()}"}
    job_directory.write_job(files, directory, job, claim)
    source_topics.begin(plan, place, ids)
    targets = CopyTargets(plan.kafka, target, reports.note, keeps_partitions=plan.keeps_partitions)
    targets.ensure({topic: plan.target_of(topic) for topic in topics})
    _keep_targets(plan, files, topics)
    name = job_directory.read_job(files, directory)["name"]
    places = OffsetMapFiles(files, directory)
    options = {**reader_options(plan), "topicIds": json.dumps(ids)}
    writer: CopyBatchWriter | ChosenBatchWriter
    if plan.chooses:
        bad_dates = _bad_dates(spark, plan, files)
        writer = ChosenBatchWriter(
            plan, targets, name, secret=run_operations.secret, bad_dates=bad_dates
        )
    else:
        writer = CopyBatchWriter(plan, options, targets, places, name)
    skipped, progress = SkippedOffsets(), reports.progress
    if not plan.fail_on_data_loss:
        progress = with_skips(plan.kafka, place, skipped, reports.note, progress)
    if plan.pattern is not None:
        progress = source_topics.with_new_ids(plan, place, ids, progress)
    with _groups_meanwhile(plan, target, places.map, reports.note):
        check_not_older(plan.target.writer_options(), name, files, plan.checkpoint)
        outcome = run_started(lambda: _start(spark, plan, options, writer, progress), reports.stop)
    for note in let_follow(plan, target, places.map) if plan.has_groups else ():
        reports.note(note)
    return run_operations.with_missed(outcome._replace(skipped_offsets=skipped.offsets))


def _bad_dates(spark: SparkSession, plan: CopyPlan, files: FileSystem) -> BadDates | None:
    return dead_letters.bad_dates(
        spark,
        plan.dead_letters,
        plan.target,
        files=files,
        checkpoint=plan.checkpoint,
        hides=plan.operations.changes,
    )


def _keep_targets(plan: CopyPlan, files: FileSystem, topics: Iterable[str]) -> None:
    ids = preflight.topic_ids(plan.target, [plan.target_of(topic) for topic in topics])
    known_ids = {name: topic_id for name, topic_id in ids.items() if topic_id}
    source_topics.write_ids(files, join(plan.checkpoint_directory, _OF_TARGETS), known_ids)


def _start(
    spark: SparkSession,
    plan: CopyPlan,
    options: Mapping[str, str],
    writer: CopyBatchWriter | ChosenBatchWriter,
    progress: Progress | None,
) -> Watch:
    stream = timed(
        sources.stream_ranges(spark, options).writeStream.foreachBatch(writer.write),
        available_now=not plan.follow,
        trigger=trigger_of(plan.every_ms),
    )
    query = start_query(spark, stream, plan.checkpoint)
    if isinstance(writer, ChosenBatchWriter):
        metrics = writer.metrics
        return Watch(
            query,
            progress,
            rows_of=lambda facts: 0,
            metrics_of=lambda facts: metrics.pop(facts["batchId"], {}),
        )
    rows = writer.rows
    return Watch(query, progress, rows_of=lambda facts: rows.pop(facts["batchId"], 0))


def reader_options(plan: CopyPlan) -> dict[str, str]:
    """Return the options of the source: every record from the first on.

    At a limited rate a batch lasts about RATED_BATCH_S: brokers abort transactions that last long.
    """
    chosen = {"subscribePattern": plan.pattern} if plan.pattern else {}
    rated = {}
    if plan.max_rate is not None:
        rated["maxBytesPerTrigger"] = str(plan.max_rate * RATED_BATCH_S)
    return {
        **plan.kafka.options(),
        **(chosen or {"subscribe": ",".join(plan.topics)}),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(plan.batch_rows),
        **rated,
        **pause_option(plan.every_ms),
        "failOnDataLoss": str(plan.fail_on_data_loss).lower(),
        **source_options(plan.operations),
    }


@contextmanager
def _groups_meanwhile(
    plan: CopyPlan, target: Kafka, offset_map: TranslatedOffsets, tell: Callable[[Note], None]
) -> Iterator[None]:
    """Let groups follow once a minute while a copy goes on; a failure is told and tried again."""
    if not (plan.follow and plan.has_groups):
        yield
        return

    def follow() -> None:
        try:
            for note in let_follow(plan, target, offset_map):
                if note.fields["moved_offsets"]:
                    tell(note)
        except PipelineError as error:
            tell(Note(f"{error}; tried again in a minute", {"warning": str(error)}))

    with repeated(GROUPS_EVERY_S, follow):
        yield
