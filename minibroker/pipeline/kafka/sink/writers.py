"""The sink `minibroker`: rows of a frame into topics, each micro-batch exactly once.

Spark gives a task its rows as Arrow batches, and repeats a task, or a whole micro-batch, whenever
it does not know whether it was done. So each task writes in one transaction, which carries a
marker of the micro-batch (`marker`), and looks for that marker first:

    rows ── none ──► nothing to do, no connection
         └─ some ──► fence older writers ── marker of this batch there? ── yes ──► compare the rows
                                                                       └─ no ───► write, commit

| what happens                              | why no row is there twice or not at all              |
|-------------------------------------------|------------------------------------------------------|
| a task fails, or is killed                | aborted; at the latest when the task runs again      |
| two attempts of a task run (speculation)  | the later fences the earlier, or finds its marker    |
| the driver is killed between two tasks    | the micro-batch is repeated, some tasks find theirs  |
| a driver runs on behind its successor     | its tasks are fenced one by one                      |
| the broker is killed                      | the producer goes on when it is back, or aborts      |
| the query gets another number of tasks    | `PipelineError` in the middle of a micro-batch       |

Readers need `isolation.level=read_committed`. Committed offsets of an idle group expire
(`offsets.retention.minutes`, 7 days). A query that stops for longer in the middle of a micro-batch
may write that micro-batch again.

A batch job is a query of one micro-batch with a name of its own: no task's rows are there twice. If
a job fails, some of its tasks may have written. Where that matters, write as a stream with
`trigger(availableNow=True)`.
"""

from __future__ import annotations

import uuid
from itertools import chain
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.columns import check_columns, columns
from minibroker.pipeline.kafka.sink.digest import ContentDigest, Contents
from minibroker.pipeline.kafka.sink.marker import (
    Position,
    check_no_task_is_gone,
    check_same_rows,
    check_same_tasks,
    is_written,
    marker_after,
    marker_before,
    tasks_changed,
)
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.task_markers import read_marker
from minibroker.pipeline.kafka.sink.transaction import Transaction
from minibroker.pipeline.kafka.task_process import prepare_for_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from minibroker.pipeline.kafka.sink.delivered_places import DeliveredPlaces
    from minibroker.pipeline.kafka.sink.marker import Marker
    from minibroker.pipeline.kafka.sink.options import SinkOptions

# Spark's own, MicroBatchExecution and StreamExecution; the job group of a query is its run.
QUERY_PROPERTY: Final = "sql.streaming.queryId"
BATCH_PROPERTY: Final = "streaming.sql.batchId"
RUN_PROPERTY: Final = "spark.jobGroup.id"
ADAPTIVE_PROPERTIES: Final = (
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.streaming.stateless.enabled",
)
"""Settings of a query that its tasks see; a batch keeps its tasks if one of them is false."""


class WriteOutcome(WriterCommitMessage):
    """The result of a task for the driver."""

    def __init__(
        self,
        position: Position,
        rows: int,
        topic: str = "",
        *,
        is_repeated: bool = False,
        is_first: bool = False,
    ) -> None:
        self.position = position
        self.rows = rows
        self.topic = topic
        """Topic of the task's marker, empty if there were no rows."""
        self.is_repeated = is_repeated
        """True if the task found its marker and wrote nothing."""
        self.is_first = is_first
        """True for the first micro-batch in this run of the query: only that one can be a repeated
        one.
        """


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceArrowWriter:
    """Return the writer of `DataSource.writer`.

    Raises PipelineError for wrong options or columns.
    """
    if overwrite:
        raise PipelineError("records of a topic cannot be overwritten: use mode('append')")
    return BatchWriter(_checked(options, schema))


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceStreamArrowWriter:
    """Return the writer of `DataSource.streamWriter`.

    Raises PipelineError for wrong options or columns.
    """
    if overwrite:
        raise PipelineError(
            "records of a topic cannot be overwritten: use outputMode('append') or 'update'"
        )
    return StreamWriter(_checked(options, schema))


def _checked(options: Mapping[str, str], schema: StructType) -> SinkOptions:
    sink_options = parse_options(options)
    check_columns(schema, sink_options.topic)
    return sink_options


class BatchWriter(DataSourceArrowWriter):
    """The writer of one job; made in the driver, copied to its tasks."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriteOutcome:
        """Write the rows of one task, in a worker."""
        task = _context().partitionId()
        position = Position(self._options.prefix, self._job, self._job, 0, task, 0)
        return write_rows(self._options, position, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """The writer of one micro-batch; made in the driver for each, and again when it is done."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriteOutcome:
        """Write the rows of one task, in a worker."""
        context = _context()
        query = context.getLocalProperty(QUERY_PROPERTY)
        batch = context.getLocalProperty(BATCH_PROPERTY)
        if not query or batch is None:
            raise PipelineError(
                "the task does not know its micro-batch: write streams with writeStream and a "
                "trigger of micro-batches"
            )
        if all(context.getLocalProperty(name) != "false" for name in ADAPTIVE_PROPERTIES):
            raise PipelineError(
                "Spark may choose other tasks when it repeats a micro-batch, because adaptive "
                "execution is on: set spark.sql.adaptive.enabled=false before the query starts, or "
                "start it with minibroker.pipeline.kafka.sink.frames.stream_to_topic"
            )
        position = Position(
            prefix=self._options.prefix,
            query=query,
            run=context.getLocalProperty(RUN_PROPERTY) or "",
            batch=int(batch),
            task=context.partitionId(),
            tasks=self._options.tasks,
        )
        return write_rows(self._options, position, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Check the micro-batch in the driver when every task is done.

        Raises PipelineError: see `marker`.
        """
        first_messages = [
            message
            for message in messages
            if isinstance(message, WriteOutcome) and message.is_first
        ]
        if not first_messages:
            return
        topic = first_messages[0].topic
        behind = first_messages[0].position._replace(task=len(messages))
        check_no_task_is_gone(read_marker(self._options, behind.name, topic), behind)
        for message in messages:
            if isinstance(message, WriteOutcome) and not message.rows:
                marker = read_marker(self._options, message.position.name, topic)
                if marker is not None and is_written(marker, message.position):
                    check_same_rows(marker, message.position, Contents(0))


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise PipelineError("rows are written by Spark's tasks, not by the driver")
    return context


def write_rows(
    options: SinkOptions,
    position: Position,
    batches: Iterator[pa.RecordBatch],
    places: DeliveredPlaces | None = None,
) -> WriteOutcome:
    """Write all rows of a task or none; a task that wrote before writes nothing.

    Args:
        options: of the sink.
        position: of the task.
        batches: its rows.
        places: takes the offsets that the rows get; the marker keeps them.

    Raises:
        PipelineError: the write fails, or the rows differ from those that the task wrote before.
    """
    prepare_for_tasks()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return WriteOutcome(position, 0)
    topic = options.topic or next(iter(columns(first, None)[0]))
    with Transaction(options, position) as transaction:
        marker = transaction.read_marker(topic)
        is_repeated = is_written(marker, position)
        _check_other_tasks(options, position, marker, topic)
        rest = chain((first,), batches)
        if marker is not None and is_repeated:
            contents = _contents(options, rest)
            check_same_rows(marker, position, contents)
        else:
            if marker is not None:
                topic = marker.topic
            elif options.topic is None:
                # From now on the group has an offset, and shows when one is pending there.
                transaction.write_marker(marker_before(position, topic))
            contents = _write(transaction, options, rest, marker_after(position, topic), places)
    is_first = marker is None or marker.run != position.run
    if marker is not None and is_repeated and places is not None:
        places.read(marker.places)
    return WriteOutcome(position, contents.rows, topic, is_repeated=is_repeated, is_first=is_first)


def _write(
    transaction: Transaction,
    options: SinkOptions,
    batches: Iterable[pa.RecordBatch],
    marker: Marker,
    places: DeliveredPlaces | None,
) -> Contents:
    digest = ContentDigest()
    transaction.begin()
    for batch in batches:
        row_columns = columns(batch, options.topic)
        digest.add(row_columns)
        transaction.send_batch(batch, row_columns, places)
    contents = digest.contents()
    if places is not None:
        transaction.flush()
        marker = marker._replace(places=places.text())
    transaction.commit(marker._replace(contents=contents))
    return contents


def _contents(options: SinkOptions, batches: Iterable[pa.RecordBatch]) -> Contents:
    """Return what a task would write."""
    digest = ContentDigest()
    for batch in batches:
        digest.add(columns(batch, options.topic))
    return digest.contents()


def _check_other_tasks(
    options: SinkOptions, position: Position, marker: Marker | None, topic: str
) -> None:
    """Raise PipelineError if this batch began with another number of tasks.

    The brokers are asked only after a change of that number.
    """
    if position.tasks == 0:
        return
    if marker is None and position.task > 0:
        marker = read_marker(options, position.name_of(0), topic)
    if marker is None or not tasks_changed(marker, position):
        return
    others = {
        task: read_marker(options, position.name_of(task), topic) for task in range(marker.tasks)
    }
    check_same_tasks({task: other for task, other in others.items() if other is not None}, position)
