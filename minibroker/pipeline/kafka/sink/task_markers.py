"""The markers of tasks that others ask for: the driver, and a task of another number of tasks.

    settings ─► client ─► offsets of a task's group ─► its newest marker

A task asks for its own marker in its transaction.

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
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from minibroker.client.client import CLIENT_ERRORS, Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.groups import committed_offsets, stable_offsets
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.marker import Position, check_begun
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.producer_settings import producer_settings
from minibroker.pipeline.kafka.sink.transaction import (
    ANSWER_TIMEOUT_S,
    CARRIER_PARTITION,
    newest_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.kafka.sink.marker import Marker
    from minibroker.pipeline.kafka.sink.options import SinkOptions

TASKS_AT_ONCE: Final = 16
"""Markers of a look. If none of these tasks has one, no later task has."""


def read_marker(options: SinkOptions, group: str, topic: str) -> Marker | None:
    """Return the newest marker of a task's group; wait for one that is committed and still pending.

    Args:
        options: of the sink.
        group: `Position.name_of` the task.
        topic: the topic of the first marker: a group without offsets does not show a pending one by
            itself.

    Raises:
        PipelineError: no broker answers, or the group may not be read.
    """
    settings = producer_settings(options.settings).connection
    carrier = TopicPartition(topic, CARRIER_PARTITION)
    with _errors_of_client(options, group):
        return newest_of(
            stable_offsets(CoordinatorClient(Client(settings), group), carrier, _deadline())
        )


def _last_markers(options: SinkOptions, groups: Iterable[str]) -> Iterator[Marker | None]:
    """Yield the newest marker of each group.

    Those of transactions that are open are not waited for. Such a task is killed and has not
    written, and its next attempt ends its transaction.

    Raises PipelineError if a group is not readable.
    """
    client = Client(producer_settings(options.settings).connection)
    for group in groups:
        with _errors_of_client(options, group):
            yield newest_of(committed_offsets(CoordinatorClient(client, group), _deadline()))


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
        markers = list(filter(None, _last_markers(options, map(names.name_of, tasks))))
        if not markers:
            return
        yield from markers


@contextmanager
def _errors_of_client(options: SinkOptions, group: str) -> Iterator[None]:
    """Raise PipelineError for the errors of the client."""
    try:
        yield
    except CLIENT_ERRORS as error:
        raise PipelineError(
            f"the committed offset of group {group} is not readable at {options.brokers}: {error}"
        ) from error


def _deadline() -> float:
    return time.monotonic() + ANSWER_TIMEOUT_S
