"""Batches that a checkpoint has begun, compared with those that the topic has, before a run.

Tasks find out by themselves that a checkpoint is older than the topic (`marker.is_written`), but
each one only from its own marker. If an older copy of a checkpoint was put back, the next batch has
other records than the one that was written under its number. A task without a marker of that batch
would write before another one refuses, or no task would have one. So the driver looks at the
markers of all tasks that the query ever had. Spark notes a batch in the checkpoint before its tasks
run: a marker of a batch that is not noted there comes from a newer checkpoint.

    markers of tasks 0 … 15, 16 … 31, … ─► newest of offsets/ ─► refused, or the query starts
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.kafka.sink.marker import Position, check_begun
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.task_markers import last_markers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.kafka.sink.marker import Marker
    from minibroker.pipeline.kafka.sink.options import SinkOptions

TASKS_AT_ONCE: Final = 16
"""Markers of a look. If none of these tasks has one, no later task has."""


def check_not_older(
    options: Mapping[str, str], query: str, files: FileSystem, checkpoint: str
) -> None:
    """Raise PipelineError if a task wrote a batch that the checkpoint has not begun.

    Args:
        options: of the sink, as Spark passes them.
        query: the name that is in the markers of the query's tasks.
        files: of the checkpoint.
        checkpoint: of the query, which does not run.
    """
    markers = list(_markers_of(parse_options(options), query))
    # Read behind the markers: another driver of the query, which is fenced soon, may go on.
    newest = job_directory.last_begun(files, checkpoint)
    for marker in markers:
        check_begun(marker, query, -1 if newest is None else newest)


def _markers_of(options: SinkOptions, query: str) -> Iterator[Marker]:
    """Yield the newest marker of each task that the query had. Raises PipelineError."""
    names = Position(options.prefix, query, "", 0, 0, 0)
    for first in itertools.count(0, TASKS_AT_ONCE):
        tasks = range(first, first + TASKS_AT_ONCE)
        markers = list(filter(None, last_markers(options, map(names.name_of, tasks))))
        if not markers:
            return
        yield from markers
