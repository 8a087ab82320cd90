"""The marker that a task of the sink writes in the transaction of its rows.

A transaction of Kafka commits records and consumer offsets together. So each task of a query has a
consumer group that nobody ever joins, and commits an offset there together with its rows:

| where                        | what                                                           |
|------------------------------|----------------------------------------------------------------|
| group, and transactional id  | `<prefix>-<query>-<task>`                                      |
| topic                        | one of those that the task writes to: the first ever           |
| partition                    | 0, since it is always there                                    |
| offset                       | the number of the next micro-batch: the one written, plus one  |
| metadata                     | JSON: rows and digests, run of the query, tasks of the batch,  |
|                              | and for `copy` the offsets that the rows got                   |

`<query>` is the id in the query's checkpoint (`metadata`), so it lives and dies with the numbers
of its micro-batches; in batch jobs it is a random id. Spark repeats only the last micro-batch of a
query, with the same offsets of its sources. A task that finds the marker of the batch in hand
wrote its rows before, and writes nothing.

This requires that the same rows come to the same task again. Spark ensures that for sources of
Kafka records and for shuffles into a fixed number of partitions. This module detects the other
cases: it compares `tasks` (if the writer knows it) before the write, and the rows themselves after
it, by the digests of `digest`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.digest import Contents
from minibroker.pipeline.kafka.sink.options import DEFAULT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

_OLDER: Final = (
    "the checkpoint is older than the topic; put the newer one back, or start with a new "
    "checkpoint and decide where to read from"
)


class Position(NamedTuple):
    """The task, the micro-batch and the query of a writer."""

    prefix: str
    query: str
    run: str
    """The run of the query: a new id each time that the query starts."""
    batch: int
    task: int
    tasks: int
    """Number of tasks, 0 if the writer does not know it."""

    @property
    def name(self) -> str:
        """Return the name of the task's group, which is also its transactional id."""
        return self.name_of(self.task)

    def name_of(self, task: int) -> str:
        """Return the same name of another task of the query."""
        return f"{self.prefix}-{self.query}-{task}"

    def __str__(self) -> str:
        return f"task {self.task} of micro-batch {self.batch} of query {self.query}"


def is_marker_group(group: str) -> bool:
    """Return whether a sink made this group for itself; only the default prefix is known."""
    return group.startswith(f"{DEFAULT_PREFIX}-")


class Marker(NamedTuple):
    """The contents of a task's committed offset."""

    topic: str
    next_batch: int
    contents: Contents
    run: str
    tasks: int
    places: str = ""
    """Offsets that the rows got, see `delivered_places`; empty if nobody asked."""

    @property
    def rows(self) -> int:
        """Return the number of rows of that batch."""
        return self.contents.rows

    @property
    def metadata(self) -> str:
        """Return the metadata text of the commit."""
        places = {"places": self.places} if self.places else {}
        fields = {**self.contents._asdict(), "run": self.run, "tasks": self.tasks, **places}
        return json.dumps(fields)


def parse_marker(topic: str, offset: int, metadata: str | None) -> Marker:
    """Return a committed offset as a marker; fields that foreign metadata lacks are 0 or empty."""
    try:
        plain = json.loads(metadata or "{}")
    except json.JSONDecodeError:
        plain = {}
    fields: Mapping[str, object] = plain if isinstance(plain, dict) else {}
    rows, tasks = fields.get("rows"), fields.get("tasks")
    contents = Contents(
        rows if isinstance(rows, int) else 0,
        str(fields.get("ordered", "")),
        str(fields.get("row_sum", "")),
    )
    return Marker(
        topic,
        offset,
        contents,
        str(fields.get("run", "")),
        tasks if isinstance(tasks, int) else 0,
        str(fields.get("places", "")),
    )


def marker_before(position: Position, topic: str) -> Marker:
    """Return the marker of a task that writes for the first time: no rows of this batch."""
    return Marker(topic, position.batch, Contents(0), position.run, position.tasks)


def marker_after(position: Position, topic: str) -> Marker:
    """Return the marker of a task that wrote its batch; the rows are not counted yet."""
    return Marker(topic, position.batch + 1, Contents(0), position.run, position.tasks)


def is_written(marker: Marker | None, position: Position) -> bool:
    """Return whether the task wrote its batch before.

    Raises:
        PipelineError: the task wrote a later batch: the checkpoint is older than the topic.
    """
    if marker is None or marker.next_batch <= position.batch:
        return False
    if marker.next_batch == position.batch + 1:
        return True
    raise PipelineError(
        f"{position} is to be written, but {marker.topic!r} has micro-batch "
        f"{marker.next_batch - 1} already: {_OLDER}"
    )


def check_begun(marker: Marker, query: str, newest: int) -> None:
    """Raise PipelineError if a task of `query` wrote a later batch than the newest begun one."""
    if marker.next_batch > newest + 1:
        raise PipelineError(
            f"{marker.topic!r} has micro-batch {marker.next_batch - 1} of query {query}, which its "
            f"checkpoint has not begun: {_OLDER}"
        )


def tasks_changed(marker: Marker | None, position: Position) -> bool:
    """Return whether the query had another number of tasks when the marker was written."""
    if marker is None or position.tasks == 0:
        return False
    return marker.tasks not in {0, position.tasks}


def check_same_tasks(markers: Mapping[int, Marker], position: Position) -> None:
    """Check that no task of another number of tasks wrote a part of the current batch.

    Args:
        markers: task → marker, of all tasks that the query had.
        position: of the task that is about to write.

    Raises:
        PipelineError: a task did, and its rows are not known any more.
    """
    for task, marker in sorted(markers.items()):
        if marker.next_batch == position.batch + 1 and tasks_changed(marker, position):
            raise PipelineError(
                f"micro-batch {position.batch} of query {position.query} was begun with "
                f"{marker.tasks} tasks, of which task {task} has written, and is now repeated "
                f"with {position.tasks}: run it with {marker.tasks} tasks until that batch is done"
            )


def check_same_rows(marker: Marker, position: Position, contents: Contents) -> None:
    """Raise PipelineError if a repeated task has other rows than it wrote before."""
    earlier = marker.contents
    if earlier.is_like(contents):
        return
    now = contents.rows if contents.rows != earlier.rows else f"{contents.rows} other ones"
    raise PipelineError(
        f"{position} wrote {earlier.rows} rows before and is now repeated with {now}: rows "
        "went to other tasks or changed, because the number of tasks, the master's cores or the "
        "query changed, or the query computes something else each time; run it as before until "
        "that batch is done"
    )


def check_no_task_is_gone(marker: Marker | None, position: Position) -> None:
    """Raise PipelineError if the current batch had a task behind its last one.

    Args:
        marker: of the first task number that the batch does not have.
        position: of that task.
    """
    if marker is not None and marker.next_batch == position.batch + 1:
        raise PipelineError(
            f"micro-batch {position.batch} of query {position.query} was begun with more than "
            f"{position.task} tasks, of which task {position.task} wrote {marker.rows} rows, and "
            f"was repeated with {position.task}: rows are in {marker.topic!r} twice; run queries "
            "with the number of tasks that they were begun with until a batch is done"
        )
