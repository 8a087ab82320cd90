"""The text of `--dry-run`: the plan, and the answers of the broker and the directories.

A verb says what it would do (`describe` of its job) with the parts here. Needs no Spark and writes
nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from minibroker.cli import quantities
from minibroker.cli.declaration import given_lines
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.files.file_system import files_of
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.operations import rows as row_operations
from minibroker.pipeline.operations.rows import NONE
from minibroker.pipeline.spark import launch, places
from minibroker.pipeline.tables import TABLE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.operations.rows import RowOperations
    from minibroker.pipeline.options.declaration import Arguments

SEEN_LATER: Final = "is seen when Spark runs"
"""Text for a file at a URL, which is not read here."""

Lines = list[tuple[str, str]]


def preview(arguments: Arguments) -> list[str]:
    """Return the plan, line by line. Raises PipelineError if the job could not run."""
    verb, plan, engine, _ = arguments
    if verb.engine is not None:
        default = places.default_of(engine.conf, os.environ)
        plan = plan if places.is_here(default) else places.resolve_places(plan, default)
    described = launch.job_of(verb).describe(plan)
    lines = [*described, ("options", "  ".join(given_lines(plan)) or "none")]
    if verb.engine is not None:
        settings = "".join(f" {key}={value}" for key, value in sorted(engine.conf.items()))
        lines.append(("Spark", f"{engine.master}{settings}"))
    return [*_aligned(lines), "nothing was done: --dry-run"]


def operations_lines(operations: RowOperations, directory: str | None) -> Lines:
    """Return the operations of a plan, with the moments of the first run if there was one.

    Args:
        directory: with the identity of the job, None for a job without one.
    """
    files = None if directory is None else files_of(directory, None)
    job = {} if files is None or directory is None else job_directory.read_job(files, directory)
    return row_operations.describe(row_operations.with_first_moments(operations, job))


def _aligned(lines: Lines) -> list[str]:
    width = max(len(name) for name, _ in lines) + 2
    return [f"{name:<{width}}{text}" for name, text in lines]


def limits_text(rows: int, size_bytes: int) -> str:
    """Return the limits of a batch."""
    return f"{quantities.counted(rows, 'record')} or {quantities.size(size_bytes)} at most"


def rate_text(bytes_per_s: int | None) -> str:
    """Return the limit of the rate, behind other limits."""
    return "" if bytes_per_s is None else f", {quantities.size(bytes_per_s)} a second"


def format_text(file_format: str) -> str:
    """Return what an archive of this format is."""
    return f"{file_format} table" if file_format in TABLE_FORMATS else f"{file_format} files"


def topics_text(kafka: Kafka, names: Iterable[str]) -> str:
    """Return topics with their partitions, as the cluster has them. Raises PipelineError."""
    partitions = preflight.ask(kafka).partitions
    return ", ".join(
        f"{name} ({quantities.counted(partitions[name], 'partition')})" for name in names
    )


def origin_text(kafka: Kafka) -> str:
    """Return the address of a cluster that is read, and what reads it."""
    return f"{kafka.bootstrap} through minibroker's source{_settings(kafka)}"


def cluster_text(kafka: Kafka) -> str:
    """Return the address of a cluster, and the names of the settings for it."""
    return f"{kafka.bootstrap}{_settings(kafka)}"


def _settings(kafka: Kafka) -> str:
    return "".join(f" {key}=…" for key in sorted(kafka.settings))


def ahead_text(
    kafka: Kafka, topics: list[str], checkpoint: str, operations: RowOperations = NONE
) -> str:
    """Return how many offsets lie between the checkpoint and the ends of the topics."""
    cluster = preflight.ask(kafka)
    files = files_of(checkpoint, None)
    progress = job_directory.progress_of(files, checkpoint) if files is not None else None
    starts = preflight.start_offsets(kafka, cluster, topics)
    ends = preflight.end_offsets(kafka, cluster, topics)
    done = {
        (partition.topic, partition.partition): offset
        for partition, offset in (progress or {}).items()
    }
    count = sum(
        max(0, end - max(starts[topic][partition], done.get((topic, partition), 0)))
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )
    ahead = quantities.counted(count, "offset")
    if files is None:
        return f"up to {ahead}: how far the last run came {SEEN_LATER}"
    start_text = "from the beginning" if progress is None else "from where the last run ended"
    if operations.since is not None or operations.until is not None:
        return f"up to {ahead}, {start_text}: only those of the time below"
    return f"{ahead}, {start_text}"
