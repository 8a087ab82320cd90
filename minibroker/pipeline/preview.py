"""The text of `--dry-run`: the plan, and the answers of the broker and the directories.

Needs no Spark and writes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from minibroker.pipeline import quantities
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.files.file_system import files_of
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.operations import rows as row_operations
from minibroker.pipeline.operations.rows import NONE
from minibroker.pipeline.options.declaration import given_lines
from minibroker.pipeline.options.shared import DEFAULT_BATCH_BYTES
from minibroker.pipeline.plan import SOURCES, TABLE_FORMATS, join
from minibroker.pipeline.quantities import duration
from minibroker.pipeline.spark import places
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.tables.choice import open_archive
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.compare.plan import ComparePlan
from minibroker.pipeline.verbs.copy.plan import CopyPlan
from minibroker.pipeline.verbs.inspect.plan import InspectPlan
from minibroker.pipeline.verbs.lag.plan import LagPlan
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.rollup.plan import RollupPlan
from minibroker.pipeline.verbs.table import verb_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from minibroker.pipeline.operations.rows import RowOperations
    from minibroker.pipeline.options.shared import Engine
    from minibroker.pipeline.plan import Kafka
    from minibroker.pipeline.verbs.replay.target import ReplayTarget

_SEEN_LATER: Final = "is seen when Spark runs"
"""Text for a file at a URL, which is not read here."""

Lines = list[tuple[str, str]]


def preview(plan: Any, engine: Engine) -> list[str]:
    """Return the plan, line by line. Raises PipelineError if the job could not run."""
    verb = verb_of(plan)
    if verb.engine is not None:
        default = places.default_of(engine.conf, os.environ)
        plan = plan if places.is_here(default) else places.placed(plan, default)
    lines = [*_LINES[verb.plan](plan), ("options", "  ".join(given_lines(plan)) or "none")]
    if verb.engine is not None:
        settings = "".join(f" {key}={value}" for key, value in sorted(engine.conf.items()))
        lines.append(("Spark", f"{engine.master}{settings}"))
    return [*_aligned(lines), "nothing was done: --dry-run"]


def _operations(operations: RowOperations, directory: str | None) -> Lines:
    """Return the operations of a plan, with the moments of the first run if there was one.

    Args:
        operations: of the plan.
        directory: with the identity of the job, None for a job without one.
    """
    files = None if directory is None else files_of(directory, None)
    job = {} if files is None or directory is None else job_directory.read_job(files, directory)
    return row_operations.told(row_operations.settled(operations, job))


def _aligned(lines: Lines) -> list[str]:
    width = max(len(name) for name, _ in lines) + 2
    return [f"{name:<{width}}{text}" for name, text in lines]


def _maintain(plan: MaintainPlan) -> Lines:
    from minibroker.pipeline.verbs.maintain import maintenance  # noqa: PLC0415

    place = maintenance.place(plan)
    file_format = maintenance.check(plan, place)
    what = ("maintain", f"{plan.to}, {_kind(file_format)}")
    if file_format in TABLE_FORMATS:
        files = open_archive(file_format, place, plan.catalog, plan.table).files()
    else:
        files = maintenance.files_to_merge(place, file_format)
    found = maintenance.bins(files, plan.target_bytes)
    size = quantities.size(plan.target_bytes)
    merges = f"{sum(map(len, found)):,} files into {len(found):,}, of {size} at most"
    if file_format not in TABLE_FORMATS:
        return [what, ("merges", merges), ("removes", "left-overs")]
    return [
        what,
        ("merges", merges),
        ("drops", f"versions older than {duration(plan.keep_ms)}, and files of no version"),
    ]


def _archive(plan: ArchivePlan) -> Lines:
    from minibroker.pipeline.verbs.archive import job as archive  # noqa: PLC0415

    topics = archive.check(plan)
    ending = "and goes on with what comes" if plan.follow else "and ends"
    return [
        ("archive", _topics(plan.kafka, topics)),
        ("from", _from(plan.kafka)),
        ("to", _archived_as(plan)),
        ("copies", f"{_ahead(plan.kafka, topics, plan.checkpoint, plan.operations)}, {ending}"),
        ("batches", f"of {_batch_limits(plan)}{_pace(plan)}"),
        *_operations(plan.operations, plan.to),
    ]


def _batch_limits(plan: ArchivePlan) -> str:
    if plan.kafka.source != SOURCES[0]:
        return f"{quantities.counted(plan.batch_rows, 'record')} at most"
    return _limits(plan.batch_rows, plan.batch_bytes or DEFAULT_BATCH_BYTES) + _rate(plan.max_rate)


def _limits(rows: int, size_bytes: int) -> str:
    return f"{quantities.counted(rows, 'record')} or {quantities.size(size_bytes)} at most"


def _rate(bytes_per_s: int | None) -> str:
    return "" if bytes_per_s is None else f", {quantities.size(bytes_per_s)} a second"


def _archived_as(plan: ArchivePlan) -> str:
    if not plan.is_table:
        return f"{plan.to}, {plan.format} files by topic and date"
    where = f", {plan.table} in a catalogue" if plan.table else ""
    size = quantities.size(plan.target_bytes)
    return f"{plan.to}, {plan.format} table{where}, files of {size}"


def _pace(plan: ArchivePlan) -> str:
    if not plan.follow or plan.trigger_ms is None:
        return ""
    return f", one every {duration(plan.trigger_ms)} once none is full"


def _replay(plan: ReplayPlan) -> Lines:
    from minibroker.pipeline.verbs.replay import job as replay  # noqa: PLC0415

    target = replay.check(plan)
    files = files_of(plan.archive, None)
    speed = "as fast as it goes" if plan.speed is None else f"at {plan.speed:g} times the pace"
    time = "their timestamps" if plan.keep_timestamps else "the time of the replay"
    place = "in their partitions" if plan.keep_partitions else "in the partitions of their keys"
    checkpoints = files_of(plan.checkpoint, None)
    if checkpoints is None:
        progress = _SEEN_LATER
    elif job_directory.progress_of(checkpoints, join(plan.checkpoint, "checkpoint")) is None:
        progress = "new"
    else:
        progress = "goes on from there"
    return [
        ("replay", f"{plan.archive}, {_kind(archived_files.format_of(files, plan.archive))}")
        if files is not None
        else ("replay", plan.archive),
        ("topics", ", ".join(plan.topics) or "the one that is there"),
        ("to", f"topic {plan.to_topic} ({_target(target)}) at {plan.kafka.bootstrap}"),
        ("writes", f"{speed}, with {time}, {place}"),
        ("progress", f"{plan.checkpoint}: {progress}"),
        ("batches", f"of {_limits(plan.batch_rows, plan.batch_bytes)}{_rate(plan.max_rate)}"),
        *_operations(plan.operations, plan.checkpoint),
    ]


def _kind(file_format: str) -> str:
    return f"{file_format} table" if file_format in TABLE_FORMATS else f"{file_format} files"


def _target(target: ReplayTarget) -> str:
    if target.is_there:
        return quantities.counted(target.partitions, "partition")
    if target.partitions:
        return f"which is made, with {quantities.counted(target.partitions, 'partition')}"
    return f"which is made; how many partitions it gets {_SEEN_LATER}"


def _rollup(plan: RollupPlan) -> Lines:
    from minibroker.pipeline.verbs.rollup import job as rollup  # noqa: PLC0415

    rollup.check(plan)
    slide = f", one every {duration(plan.slide_ms)}" if plan.slide_ms else ""
    return [
        ("rollup", _topics(plan.kafka, [plan.topic])),
        ("from", _from(plan.kafka)),
        ("windows", f"of {duration(plan.window_ms)}{slide}, by {plan.time or 'record.timestamp'}"),
        ("by", ", ".join(plan.by) or "nothing: one row a window"),
        ("computes", ", ".join(plan.aggregates)),
        ("late", f"records more than {duration(plan.watermark_ms)} behind the latest are left out"),
        ("values", plan.schema or f"as in {plan.example}"),
        ("bad", f"to {plan.dead_letters}" if plan.dead_letters else "the first one ends the job"),
        ("to", f"topic {plan.to_topic}" if plan.to_topic else f"{plan.to}, {plan.format} files"),
        ("open", _open_windows(plan)),
        ("progress", plan.checkpoint),
        ("reads", _ahead(plan.kafka, [plan.topic], plan.checkpoint, plan.operations)),
        *_operations(plan.operations, plan.to if plan.to_topic is None else plan.checkpoint),
    ]


def _open_windows(plan: RollupPlan) -> str:
    if plan.to_topic is None and not plan.follow:
        return "windows are written as provisional rows, which the next run replaces"
    return f"windows are not written before a record {duration(plan.watermark_ms)} later came"


def _inspect(plan: InspectPlan) -> Lines:
    from minibroker.pipeline.verbs.inspect import job as inspect  # noqa: PLC0415

    inspect.check(plan)
    if plan.log_dir is None:
        lines = [("inspect", _topics(plan.kafka, plan.topics)), ("from", _from(plan.kafka))]
    else:
        lines = [("inspect", f"{plan.log_dir}, {', '.join(plan.topics) or 'all topics'}")]
    lines += _operations(plan.operations, None)
    return [*lines, ("report", plan.report or "none: a table here")]


def _compare(plan: ComparePlan) -> Lines:
    from minibroker.pipeline.verbs.compare import job as compare  # noqa: PLC0415

    compare.check(plan)
    a, b = plan.sides
    ignored = ", ".join(plan.rules.ignored)
    return [
        ("A", a.where),
        ("B", b.where),
        ("ignores", ignored or "nothing"),
        ("offsets", "have to be the same" if plan.same_offsets else "are shown, not compared"),
        *_operations(plan.operations, None),
        ("report", plan.report or "none: a table here"),
    ]


def _lag(plan: LagPlan) -> Lines:
    from minibroker.pipeline.verbs.lag.readers import LagReader  # noqa: PLC0415

    readers = LagReader(
        plan.kafka,
        groups=plan.groups,
        pattern=plan.pattern,
        topics=plan.topics,
        checkpoints=plan.checkpoints,
    ).read()
    pace = "once" if plan.once else f"every {duration(plan.every_ms)}"
    return [
        ("lag", f"of {len(readers):,} groups and jobs at {plan.kafka.bootstrap}, {pace}"),
        ("metrics", plan.metrics or "none"),
    ]


def _copy(plan: CopyPlan) -> Lines:
    from minibroker.pipeline.verbs.copy import job as copy  # noqa: PLC0415

    topics = copy.check(plan)
    there = preflight.ask(plan.target).partitions
    targets = [
        f"{name} ({quantities.counted(there[name], 'partition')})"
        if name in there
        else f"{name} (which is made)"
        for name in map(plan.target_of, topics)
    ]
    groups = [*plan.groups, *([f"all of {plan.groups_pattern}"] if plan.groups_pattern else [])]
    ending = "and goes on with what comes" if plan.follow else "and ends"
    return [
        ("copy", _topics(plan.kafka, topics)),
        ("from", _from(plan.kafka)),
        ("to", f"{', '.join(targets)} at {_where(plan.target)}"),
        ("places", "in the partitions of their keys" if plan.by_key else "in their partitions"),
        ("groups", ", ".join(groups) or "none"),
        ("copies", f"{_ahead(plan.kafka, topics, plan.checkpoint, plan.operations)}, {ending}"),
        ("batches", f"of {plan.batch_rows:,} records at most{_rate(plan.max_rate)}"),
        *_operations(plan.operations, plan.checkpoint_directory),
    ]


def _topics(kafka: Kafka, names: Iterable[str]) -> str:
    partitions = preflight.ask(kafka).partitions
    return ", ".join(
        f"{name} ({quantities.counted(partitions[name], 'partition')})" for name in names
    )


def _from(kafka: Kafka) -> str:
    way = "Spark's connector" if kafka.source == "connector" else "minibroker's source"
    return f"{kafka.bootstrap} through {way}{_settings(kafka)}"


def _where(kafka: Kafka) -> str:
    """Return the address of a cluster, and the names of the settings for it."""
    return f"{kafka.bootstrap}{_settings(kafka)}"


def _settings(kafka: Kafka) -> str:
    return "".join(f" {key}=…" for key in sorted(kafka.settings))


def _ahead(
    kafka: Kafka, topics: list[str], checkpoint: str, operations: RowOperations = NONE
) -> str:
    """Return how many offsets lie between the checkpoint and the ends of the topics."""
    there = preflight.ask(kafka)
    files = files_of(checkpoint, None)
    reached = job_directory.progress_of(files, checkpoint) if files is not None else None
    starts = preflight.start_offsets(kafka, there, topics)
    ends = preflight.end_offsets(kafka, there, topics)
    done = {
        (partition.topic, partition.partition): offset
        for partition, offset in (reached or {}).items()
    }
    count = sum(
        max(0, end - max(starts[topic][partition], done.get((topic, partition), 0)))
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )
    ahead = quantities.counted(count, "offset")
    if files is None:
        return f"up to {ahead}: how far the last run came {_SEEN_LATER}"
    where = "from the beginning" if reached is None else "from where the last run ended"
    if operations.since is not None or operations.until is not None:
        return f"up to {ahead}, {where}: only those of the time below"
    return f"{ahead}, {where}"


_LINES: Final[Mapping[type[Any], Callable[[Any], Lines]]] = {
    ArchivePlan: _archive,
    ReplayPlan: _replay,
    RollupPlan: _rollup,
    InspectPlan: _inspect,
    ComparePlan: _compare,
    CopyPlan: _copy,
    MaintainPlan: _maintain,
    LagPlan: _lag,
}
"""Plan → what is known about it before it runs; the options follow from the declaration."""
