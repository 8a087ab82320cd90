"""An Iceberg catalogue that is the table's own directory: no server, no database.

    DIR/metadata/v7.metadata.json   version 7 of the table, made in one step
    DIR/metadata/version-hint.text  "7", for readers
    DIR/data/topic=…/date=…/        data files

This is the layout of Iceberg's HadoopTables, which Spark, DuckDB and PyIceberg read by the path
alone. A commit is the making of the next file, which fails if another writer made it first: by
`link` on this machine, by a conditional request in an object store. A kill between the two files
leaves a hint that is one version old. Its readers see a whole older version, and the next opening
by a writer mends it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata

from minibroker.pipeline.files.paths import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.pipeline.files.file_system import FileSystem

IDENTIFIER: Final = ("directory", "archive")
"""PyIceberg wants a name for every table; the directory is the name here."""
_HINT: Final = "version-hint.text"
_VERSION: Final = re.compile(r"v(\d+)\.metadata\.json")


class DirectoryCatalog(NoopCatalog):
    """The catalogue of one table, whose location is its directory."""

    def __init__(
        self, directory: str, files: FileSystem, properties: Mapping[str, str] | None = None
    ) -> None:
        """Take the table in `directory`.

        Args:
            directory: absolute path, or URL of a store.
            properties: of PyIceberg's FileIO.
        """
        super().__init__("directory", **(properties or {}))
        self._directory = directory
        self._files = files
        self._metadata = join(directory, "metadata")

    def create_table(
        self,
        identifier: Any,
        schema: Any,
        location: str | None = None,
        *,
        partition_spec: Any = UNPARTITIONED_PARTITION_SPEC,
        sort_order: Any = UNSORTED_SORT_ORDER,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Make version 1; if another writer is first, that one's table is returned."""
        metadata = new_table_metadata(
            location=self._directory,
            schema=schema,
            partition_spec=partition_spec,
            sort_order=sort_order,
            properties=dict(properties or {}),
        )
        self._make(1, metadata)
        return self.load_table(identifier)

    def load_table(self, identifier: Any) -> Table:
        """Return the newest version. Raises NoSuchTableError."""
        version = self._newest()
        if version is None:
            raise NoSuchTableError(f"there is no Iceberg table in {self._directory}")
        path = self._path(version)
        io = load_file_io(properties=self.properties, location=path)
        metadata = FromInputFile.table_metadata(io.new_input(path))
        return Table(
            identifier=identifier,
            metadata=metadata,
            metadata_location=path,
            io=io,
            catalog=self,
        )

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """Make the next version. Raises CommitFailedException if another writer was faster."""
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        metadata = update_table_metadata(
            base_metadata=current.metadata,
            updates=updates,
            metadata_location=current.metadata_location,
        )
        version = _version_of(current.metadata_location.rpartition("/")[2]) + 1
        if not self._make(version, metadata):
            raise CommitFailedException(f"another writer made version {version}")
        return CommitTableResponse(metadata=metadata, metadata_location=self._path(version))

    def mend_hint(self) -> None:
        """Write the hint anew if a writer was killed before it could."""
        version = self._newest()
        if version is not None and self._hint() != version:
            self._write_hint(version)

    def _make(self, version: int, metadata: Any) -> bool:
        """Make the file of a version in one step; return False if there is one."""
        if not self._files.create(self._path(version), metadata.model_dump_json(exclude_none=True)):
            return False
        self._write_hint(version)
        return True

    def _newest(self) -> int | None:
        """Return the newest version: the hint may be older, never newer."""
        version = self._hint()
        if version is None or not self._files.has(self._path(version)):
            names = self._files.names(self._metadata)
            versions = [_version_of(name) for name in names if _VERSION.fullmatch(name)]
            return max(versions, default=None)
        while self._files.has(self._path(version + 1)):
            version += 1
        return version

    def _hint(self) -> int | None:
        text = (self._files.read(join(self._metadata, _HINT)) or "").strip()
        return int(text) if text.isdecimal() else None

    def _write_hint(self, version: int) -> None:
        self._files.write(join(self._metadata, _HINT), str(version))

    def _path(self, version: int) -> str:
        return join(self._metadata, f"v{version}.metadata.json")


def _version_of(name: str) -> int:
    match = _VERSION.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no version of a table: expected v1.metadata.json")
    return int(match[1])
