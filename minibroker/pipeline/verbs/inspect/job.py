"""`inspect`: statistics of topics, of a broker or in its files, as values, a table and a page.

    topics ──────────────────┐
                             ├► tasks: inspect.tallies ─► Tally ────────┬─► Inspection ─► report
    files ─ minibroker-log ──┘                                              │
      └───► tasks: inspect.batch_tallies ─► BatchTally ─────────────────┘

The records and batches are read once, each partition in one task and in its order. So nothing is
sorted or kept: a task returns what it has counted, and the driver adds it up.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from minibroker.clock import SystemClock
from minibroker.kafka.foreign_text import key_text
from minibroker.pipeline.cli import page_file
from minibroker.pipeline.cli.dry_run import Lines, operations_lines, origin_text, topics_text
from minibroker.pipeline.cli.one_answer import VerbAnswer
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.explain import READ_AGAIN, explained
from minibroker.pipeline.files.file_system import local
from minibroker.pipeline.files.paths import is_remote
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka import reader_lag as group_lag
from minibroker.pipeline.kafka.segments.records import SegmentOptions
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.frames import operated
from minibroker.pipeline.operations.rows import source_options
from minibroker.pipeline.spark import places
from minibroker.pipeline.verbs.inspect import source as tally_source
from minibroker.pipeline.verbs.inspect.facts import (
    FrequentKey,
    GroupLag,
    Inspection,
    PartitionFacts,
    Slice,
    TopicFacts,
)
from minibroker.pipeline.verbs.inspect.keys import KEY_BYTES_SHOWN
from minibroker.pipeline.verbs.inspect.page import page
from minibroker.pipeline.verbs.inspect.plan import InspectPlan
from minibroker.pipeline.verbs.inspect.tallies import TopicTally, width_of
from minibroker.pipeline.verbs.inspect.text import text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from minibroker.pipeline.kafka.reader_lag import ReaderLag
    from minibroker.pipeline.verbs.inspect.batch_tallies import BatchTally
    from minibroker.pipeline.verbs.inspect.keys import CountedKey
    from minibroker.pipeline.verbs.inspect.tallies import Tally

FREQUENT_KEYS: Final = 10


def check(plan: InspectPlan) -> None:
    """Check that the topics exist and that the page can be written.

    Args:
        plan: with its directory where the session has it (`launch.resolve_places`).

    Raises:
        PipelineError: no broker, no such topic, no such directory.
    """
    page_file.check(plan.report)
    if plan.log_dir is not None:
        if is_remote(plan.log_dir):
            raise PipelineError(
                f"{plan.log_dir} is not a directory of this machine, and a broker's files are read "
                "from no other place: give file:/… for one of this machine"
            )
        SegmentOptions.parse(_of_files(plan)).find_partitions()
    else:
        preflight.chosen_topics(preflight.ask(plan.kafka), plan.topics, None)


def describe(plan: InspectPlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    check(plan)
    if plan.log_dir is None:
        lines = [
            ("inspect", topics_text(plan.kafka, plan.topics)),
            ("from", origin_text(plan.kafka)),
        ]
    else:
        lines = [("inspect", f"{plan.log_dir}, {', '.join(plan.topics) or 'all topics'}")]
    lines += operations_lines(plan.operations, None)
    return [*lines, ("report", plan.report or "none: a table here")]


def run(
    spark: SparkSession, plan: InspectPlan, *, tell: Callable[[str], None] | None = None
) -> Inspection:
    """Inspect the topics; write the page if `plan` names one.

    Args:
        plan: the topics, and the page to write.
        tell: called with a few words about the current step.

    Raises:
        PipelineError: it cannot be done.
    """
    plan = places.resolve_places(plan, places.default_of_session(spark))
    try:
        inspection = _look(spark, plan, tell or (lambda _: None))
    except Exception as error:
        raise explained(error, READ_AGAIN) from error
    if plan.report is not None:
        page_file.write(plan.report, page(inspection))
    return inspection


def answer(inspection: Inspection, *, is_terminal: bool) -> VerbAnswer:
    """Return the tables of an inspection; a script gets the same."""
    return VerbAnswer(text(inspection))


def _look(spark: SparkSession, plan: InspectPlan, tell: Callable[[str], None]) -> Inspection:
    partitions = _all_partitions(plan)
    tell("reading records")
    begun_s = SystemClock().monotonic_s()
    tally = _tally(spark, plan)
    records = sum(topic.records for topic in tally.topics.values())
    rate = records / max(SystemClock().monotonic_s() - begun_s, 0.001)
    tell(f"{records:,} records  {rate:,.0f} records/s")
    topics = {
        name: topic_facts(name, numbers, tally.topics.get(name, TopicTally()))
        for name, numbers in partitions.items()
    }
    if plan.log_dir is not None:
        tell("reading batches")
        topics = _with_batches(topics, tally_source.of_files(spark, _of_files(plan)))
    else:
        tell("asking for groups")
        readers = group_lag.LagReader(plan.kafka, topics=sorted(topics), groups_max=None).read()
        topics = {
            name: facts._replace(groups=groups_of(facts, readers)) for name, facts in topics.items()
        }
    return Inspection(
        plan.log_dir or plan.kafka.bootstrap,
        SystemClock().now_ms(),
        plan.log_dir is not None,
        tuple(topics[name] for name in sorted(topics)),
    )


def groups_of(topic: TopicFacts, readers: Sequence[ReaderLag]) -> tuple[GroupLag, ...]:
    """Return the groups that read a topic, the one with the largest lag first.

    A partition without a commit counts as no lag.
    """
    groups = []
    for reader in readers:
        lags = [part for part in reader.partitions if part.topic == topic.topic]
        if lags:
            lag, partitions = sum(part.lag for part in lags), len(topic.partitions)
            groups.append(
                GroupLag(reader.name, reader.state, lag, partitions, partitions - len(lags))
            )
    return tuple(sorted(groups, key=lambda group: (-group.lag, group.group)))


def _all_partitions(plan: InspectPlan) -> dict[str, list[int]]:
    """Return every partition: one without a record is shown as well."""
    if plan.log_dir is None:
        partitions = preflight.ask(plan.kafka).partitions
        return {name: list(range(partitions[name])) for name in plan.topics}
    by_topic: dict[str, list[int]] = {}
    for partition in SegmentOptions.parse(_of_files(plan)).find_partitions():
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return by_topic


def _tally(spark: SparkSession, plan: InspectPlan) -> Tally:
    operations = plan.operations
    secret = mask_secret.secret_of_job(operations, os.environ, None)
    if plan.log_dir is None:
        options = plan.kafka.options() | {
            "subscribe": ",".join(plan.topics),
            "startingOffsets": "earliest",
            "includeHeaders": str(operations.is_used).lower(),
            **source_options(operations),
        }
        if not operations.is_used:
            return tally_source.of_topics(spark, options)
        # Without a number of tasks a partition is in one.
        records = sources.read_topics(spark, options)
        return tally_source.of_records(operated(records, operations, secret))
    isolation = plan.kafka.options()["kafka.isolation.level"]
    reader = spark.read.format("minibroker-log").options(**_of_files(plan), wholePartitions="true")
    records = reader.option("isolation.level", isolation).load()
    return tally_source.of_records(operated(records, operations, secret))


def _of_files(plan: InspectPlan) -> dict[str, str]:
    chosen = {"subscribe": ",".join(plan.topics)} if plan.topics else {}
    # What cannot be read is part of what is found.
    return {"path": str(local(str(plan.log_dir))), "failOnDataLoss": "false", **chosen}


def topic_facts(name: str, partitions: Sequence[int], tally: TopicTally) -> TopicFacts:
    """Return the facts about a topic.

    Args:
        partitions: all that it has; one without a record is shown as well.
    """
    facts = TopicFacts(
        name,
        tuple(
            tally.partitions[number].facts if number in tally.partitions else PartitionFacts(number)
            for number in partitions
        ),
    )
    if not tally.records:
        return facts
    times = tally.times
    width = width_of((times.last_ms or 0) - (times.first_ms or 0))
    return facts._replace(
        keys=tally.key_count(),
        smallest_bytes=tally.smallest,
        median_bytes=tally.size_at(0.5),
        largest_bytes=tally.largest,
        slice_ms=width,
        slices=tuple(Slice(*item) for item in times.slices(width)),
        sizes=tuple(tally.sizes_by_power()),
        frequent_keys=tuple(
            _key(item, tally.frequent.missed)
            for item in tally.frequent.most_frequent(FREQUENT_KEYS)
        ),
    )


def _key(counted: CountedKey, missed: int) -> FrequentKey:
    is_in_one = counted.first_partition == counted.last_partition
    return FrequentKey(
        key_text(counted.start, is_cut=counted.size > KEY_BYTES_SHOWN),
        counted.records,
        counted.first_partition if is_in_one else None,
        missed,
    )


def _with_batches(topics: dict[str, TopicFacts], tally: BatchTally) -> dict[str, TopicFacts]:
    return {
        name: topic._replace(**tally.of_topic(name)._asdict()) for name, topic in topics.items()
    }
