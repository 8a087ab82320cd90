"""A data source that writes the files of one batch in the tasks: `minibroker-table`.

Its rows are records with their date, or ranges of offsets, which the task reads by itself
(`task`).

It commits nothing. Once all tasks are done, Spark calls `commit` in a process beside the driver,
which writes the facts of the files into the file `result`. The driver reads them and commits. It is
a data source and no `mapInArrow`, because that needs pandas.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from minibroker.pipeline.files.object_stores import ObjectStore
from minibroker.pipeline.tables import data_files
from minibroker.pipeline.tables.data_files import DataFile, Layout
from minibroker.pipeline.verbs.archive import task as archive_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

FORMAT: Final = "minibroker-table"
_STORE: Final = "secret.store"
"""Option with the settings of the store; Spark shows no option whose name has `secret` in it."""


@dataclass
class WrittenFiles(WriterCommitMessage):
    """The files of one task."""

    files: list[DataFile]


class TableSink(DataSource):
    """`frame.write.format("minibroker-table")`; only `table_writer` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> FilesWriter:
        return FilesWriter(self.options)


class FilesWriter(DataSourceArrowWriter):
    """The writer of one batch; made in the driver, copied to its tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._layout = layout_of(options)
        self._task = archive_task.task_of(options)
        self._result = options["result"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of one task, in a worker."""
        rows = iterator if self._task is None else self._task.rows(iterator)
        return WrittenFiles(data_files.write_files(self._layout, rows))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write the facts of all files for the driver, on its machine."""
        files = [
            file
            for message in messages
            if isinstance(message, WrittenFiles)
            for file in message.files
        ]
        Path(self._result).write_text(json.dumps(files), encoding="utf-8")


def options_of(layout: Layout, result: Path) -> dict[str, str]:
    """Return the options for a batch with this layout."""
    return {
        "directory": layout.directory,
        "prefix": layout.prefix,
        "schema": base64.b64encode(layout.schema.serialize()).decode(),
        "targetBytes": str(layout.target_bytes),
        "stem": layout.stem,
        "compression": layout.compression,
        "result": str(result),
        **({} if layout.store is None else {_STORE: json.dumps(layout.store)}),
    }


def files_in(result: Path) -> list[DataFile]:
    """Return the files whose facts `commit` has written."""
    return [DataFile(*fields) for fields in json.loads(result.read_text(encoding="utf-8"))]


def layout_of(options: Mapping[str, str]) -> Layout:
    """Return the layout that `options_of` has turned into options."""
    return Layout(
        directory=options["directory"],
        prefix=options["prefix"],
        schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(options["schema"]))),
        target_bytes=int(options["targetBytes"]),
        stem=options["stem"],
        compression=options["compression"],
        store=ObjectStore(*json.loads(options[_STORE])) if _STORE in options else None,
    )
