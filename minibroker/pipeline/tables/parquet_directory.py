"""A directory of Parquet files, as a table: its files are committed by a list.

    DIR/_minibroker/columns.json        the columns of every file that is written from now on; none:
                                        those of a record
    DIR/_minibroker/.staged/…           files of a batch; `file_archive` has the rest

A file has the columns that were there when it was written. Readers unite them by name:
`union_by_name` in DuckDB, `mergeSchema` in Spark, `unify_schemas` in PyArrow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from minibroker.pipeline.errors import damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, absolute, join
from minibroker.pipeline.tables.data_files import PARTITION_COLUMNS, RECORD, Layout
from minibroker.pipeline.tables.file_archive import STAGED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.files.object_stores import ObjectStore
    from minibroker.pipeline.tables.data_files import DataFile
    from minibroker.pipeline.tables.file_archive import FileArchive
    from minibroker.pipeline.tables.table import BatchId

_COLUMNS: Final = "columns.json"

_RECORD: Final = pa.schema([field for field in RECORD if field.name not in PARTITION_COLUMNS])
"""Columns of a record that are in the files; topic and date are directories."""


class ParquetDirectory:
    """One directory; used by the driver alone."""

    def __init__(
        self,
        archive: FileArchive,
        files: FileSystem,
        directory: str,
        without: Sequence[str],
        *,
        compression: str,
        store: ObjectStore | None = None,
    ) -> None:
        """Take the archive in `directory`.

        Args:
            without: as of `iceberg.open_table`.
            compression: codec of the pages, as PyArrow names it.
            store: settings of the store that the directory is in, None for a path.
        """
        self._store = store
        self._compression = compression
        self._archive = archive
        self._files = files
        self._directory = directory
        self._path = join(directory, JOB_DIRECTORY, _COLUMNS)
        self._without = without

    def layout(self, batch: BatchId, target_bytes: int) -> Layout:
        """Return where and how the tasks write; a new stage each time."""
        stage = self._archive.new_stage(batch).rpartition("/")[2]
        return Layout(
            directory=absolute(self._directory),
            prefix=f"{JOB_DIRECTORY}/{STAGED}/{stage}/",
            schema=self.columns(),
            target_bytes=target_bytes,
            stem=f"part-{batch.number:09d}",
            compression=self._compression,
            store=self._store,
        )

    def has(self, batch: BatchId) -> bool:
        """Return whether a batch is committed."""
        return self._archive.has(batch)

    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool:
        """Commit the files of a batch, all of one layout."""
        if not files:
            return self._archive.commit(batch, self._archive.new_stage(batch), [])
        stage = files[0].path.rpartition("/topic=")[0]
        names = [file.path.removeprefix(f"{stage}/") for file in files]
        return self._archive.commit(batch, join(self._directory, stage), names)

    def columns(self) -> pa.Schema:
        """Return the columns. Raises PipelineError for a damaged file."""
        text = self._files.read(self._path)
        if text is None:
            return pa.schema([field for field in _RECORD if field.name not in self._without])
        try:
            return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(json.loads(text)["schema"])))
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise damage(self._path, error) from error

    def take_in(self, types: Mapping[str, pa.DataType]) -> None:
        """Add or widen columns for the files to come."""
        now = self.columns()
        fields = [
            field.with_type(types[field.name]) if field.name in types else field for field in now
        ]
        fields += [pa.field(name, types[name]) for name in types if name not in now.names]
        schema = pa.schema(fields)
        if schema.equals(now):
            return
        content = {
            "columns": str(schema).splitlines(),
            "schema": schema.serialize().to_pybytes().hex(),
        }
        self._files.write(self._path, json.dumps(content, indent=2) + "\n")
