"""A data source whose tasks decode the rows of a batch and write them: `minibroker-decoded`.

    rows ─► values.decoding ─┬─► data_files: decoded rows, where the table's files are
                             ├─► data_files: dead letters, in a directory of the batch
                             └─► schemas that the driver has not told: then no file counts

Like `table_sink` it commits nothing. The driver reads the facts of all files from a file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from minibroker.pipeline.archives import table_sink
from minibroker.pipeline.archives import task as archive_task
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.tables.data_files import RECORD, DataFile, FileWriter, Layout
from minibroker.pipeline.values import decoding
from minibroker.pipeline.values.decoding import REASON, SchemaKey, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from minibroker.pipeline.values.decoding import ColumnDecoding

FORMAT: Final = "minibroker-decoded"

DEAD_LETTER: Final = RECORD.append(pa.field(REASON, pa.string()))
"""Columns of `schemas.ARCHIVE` and the reason: a record as it came."""


@dataclass
class DecodedFiles(WriterCommitMessage):
    """The outcome of a task."""

    files: list[DataFile]
    dead: list[DataFile]
    unseen: list[tuple[str, SchemaKey]]


class DecodedBatch(NamedTuple):
    """The outcome of all tasks of a batch."""

    files: list[DataFile]
    dead: list[DataFile]
    unseen: list[tuple[str, SchemaKey]]
    """(column, schema) that the tasks were not told; then the files do not count."""


class DecodedSink(DataSource):
    """`frame.write.format("minibroker-decoded")`; only `decoded_writer` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DecodedFilesWriter:
        return DecodedFilesWriter(self.options)


class DecodedFilesWriter(DataSourceArrowWriter):
    """The writer of a batch; made in the driver, copied to its tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._layout = table_sink.layout_of(options)
        self._task = archive_task.task_of(options)
        self._columns = options["decoding"]
        self._dead = options.get("dead", "")
        self._result = options["result"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> DecodedFiles:
        """Decode and write the rows of a task, in a worker."""
        rows = iterator if self._task is None else self._task.rows(iterator)
        columns = decoding.from_json(self._columns)
        good = FileWriter(self._layout)
        dead = FileWriter(dead_layout(self._dead, self._layout)) if self._dead else None
        try:
            unseen = write_decoded(rows, columns, good, dead)
            if unseen:
                good.abandon()
                if dead is not None:
                    dead.abandon()
                return DecodedFiles([], [], unseen)
            return DecodedFiles(good.close(), [] if dead is None else dead.close(), [])
        except BaseException:
            good.abandon()
            if dead is not None:
                dead.abandon()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write the facts of all tasks for the driver, on its machine."""
        done = [message for message in messages if isinstance(message, DecodedFiles)]
        told = {
            "files": [file for message in done for file in message.files],
            "dead": [file for message in done for file in message.dead],
            "unseen": sorted({unseen for message in done for unseen in message.unseen}),
        }
        Path(self._result).write_text(json.dumps(told), encoding="utf-8")


def write_decoded(
    batches: Iterator[pa.RecordBatch],
    columns: Sequence[ColumnDecoding],
    good: FileWriter,
    dead: FileWriter | None,
) -> list[tuple[str, SchemaKey]]:
    """Write rows and dead letters; return the schemas that the task was not told, if any.

    Raises PipelineError for a dead letter if there is no place for it.
    """
    unseen: dict[tuple[str, SchemaKey], None] = {}
    for batch in batches:
        found = decoded(batch, columns)
        unseen.update(dict.fromkeys(found.unseen))
        if unseen:
            continue  # the batch runs again: go on only to meet the other new schemas
        if found.dead is not None:
            if dead is None:
                raise _dead_letter(found.dead)
            dead.add(found.dead)
        good.add(found.rows)
    return list(unseen)[: decoding.UNSEEN_MAX]


def dead_layout(directory: str, layout: Layout) -> Layout:
    """Return the layout of the dead letters of a batch."""
    return Layout(directory, "", DEAD_LETTER, layout.target_bytes, layout.stem)


def options_of(
    layout: Layout, columns: Sequence[ColumnDecoding], dead: str | None, result: Path
) -> dict[str, str]:
    """Return the options for a batch; `dead` is the directory of its dead letters."""
    return {
        **table_sink.options_of(layout, result),
        "decoding": decoding.to_json(columns),
        **({} if dead is None else {"dead": dead}),
    }


def written_in(result: Path) -> DecodedBatch:
    """Return the outcome that `commit` has written."""
    told = json.loads(result.read_text(encoding="utf-8"))
    return DecodedBatch(
        [DataFile(*fields) for fields in told["files"]],
        [DataFile(*fields) for fields in told["dead"]],
        [(column, SchemaKey(id_, tuple(message))) for column, (id_, message) in told["unseen"]],
    )


def _dead_letter(dead: pa.RecordBatch) -> PipelineError:
    record = dead.slice(0, 1).select(["topic", "partition", "offset", REASON]).to_pylist()[0]
    return PipelineError(
        f"record {record['topic']}-{record['partition']} offset {record['offset']} cannot be "
        f"decoded: {record[REASON]}; give --dead-letters TOPIC or DIR to set such records aside, "
        "or correct the schema"
    )
