"""An archive as an Iceberg table, through PyIceberg: in its own directory, or in a catalogue.

The commit of a batch adds a snapshot and sets two properties of the table in the same step:

    minibroker.query    id of the query's checkpoint
    minibroker.batch    number of the last batch

A commit names the snapshot that it was made on. If two writers commit the same batch, the second
one fails, reads the properties anew and finds the batch. Snapshots may expire: the properties stay.
PyIceberg's own retries are off for the table (`commit.retry.num-retries`), because they would not
read the properties.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    ValidationError,
    ValidationException,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.tables.data_files import MERGED, Layout, date_text, is_left, stem_of
from minibroker.pipeline.tables.iceberg_directory import IDENTIFIER, DirectoryCatalog
from minibroker.pipeline.tables.iceberg_upsert import replace_rows
from minibroker.pipeline.tables.table import (
    BatchId,
    ListedFile,
    committed_once,
    retried,
    unknown_time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.tables.data_files import DataFile
    from minibroker.pipeline.tables.table import TablePlace
    from minibroker.pipeline.values.changes import Changes

QUERY: Final = "minibroker.query"
BATCH: Final = "minibroker.batch"
_DATA: Final = "data/"
_CONFLICTS: Final = (CommitFailedException, ValidationException)
"""Errors of a commit that takes files out of the table.

PyIceberg 0.12 looks for these files in several threads, which share one evaluator of manifests with
a state. A thread can skip a manifest that has such a file. PyIceberg then sees that a file is
missing, raises a ValidationException and commits nothing. The next try finds the file.
"""

SCHEMA: Final = Schema(
    NestedField(1, "key", BinaryType()),
    NestedField(2, "value", BinaryType()),
    NestedField(3, "topic", StringType()),
    NestedField(4, "partition", IntegerType()),
    NestedField(5, "offset", LongType()),
    NestedField(6, "timestamp", TimestamptzType()),
    NestedField(7, "timestampType", IntegerType()),
    NestedField(
        8,
        "headers",
        ListType(
            9,
            StructType(
                NestedField(10, "key", StringType()), NestedField(11, "value", BinaryType())
            ),
            element_required=False,
        ),
    ),
)
"""Columns of `schemas.RECORD_WITH_HEADERS`, with Iceberg's ids."""

PARTITIONS: Final = PartitionSpec(
    PartitionField(3, 1000, IdentityTransform(), "topic"),
    PartitionField(6, 1001, DayTransform(), "timestamp_day"),
)

_PROPERTIES: Final = {
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.parquet.compression-codec": "zstd",
    **{
        f"write.metadata.metrics.column.{name}": "none"
        for name in ("key", "value", "headers.element.key", "headers.element.value")
    },
}


class IcebergTable:
    """One table; used by the driver alone."""

    def __init__(self, place: TablePlace, table: Any) -> None:
        self._place = place
        self._directory = place.directory
        self._table = table

    def layout(self, batch: BatchId, target_bytes: int) -> Layout:
        return self._layout(target_bytes, stem_of(batch.query, batch.number))

    def has(self, batch: BatchId) -> bool:
        self._table.refresh()
        properties = self._table.properties
        return (
            properties.get(QUERY) == batch.query
            and int(properties.get(BATCH, "-1")) >= batch.number
        )

    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool:
        return committed_once(
            self._directory,
            CommitFailedException,
            lambda: self.has(batch),
            lambda: self._append(batch, files),
        )

    def columns(self) -> pa.Schema:
        self._table.refresh()
        return schema_to_pyarrow(self._table.schema())

    def take_in(self, types: Mapping[str, pa.DataType]) -> None:
        def change() -> None:
            self._table.refresh()
            with self._table.update_schema() as update:
                update.union_by_name(pa.schema(list(types.items())))

        try:
            retried(self._directory, CommitFailedException, change)
        except (ValidationError, ValueError) as error:
            raise PipelineError(
                f"the table in {self._directory} does not take the columns of the schemas: {error}"
            ) from error

    def upsert(self, batch: BatchId, changes: Changes) -> bool:
        """Put the rows of a batch in place of those with their keys, and take out those gone.

        One commit with the batch's identity, like `commit`. Data files with such rows are written
        anew, without them.
        """
        keys = pa.concat_tables([changes.rows.select(list(changes.by)), changes.deleted_keys])

        def change() -> None:
            with self._table.transaction() as transaction:
                transaction.set_properties({QUERY: batch.query, BATCH: str(batch.number)})
                replace_rows(self._table, transaction, keys, changes.rows, changes.by)

        return committed_once(self._directory, _CONFLICTS, lambda: self.has(batch), change)

    def files(self) -> list[ListedFile]:
        self._table.refresh()
        return [_listed_file(task.file) for task in self._table.scan().plan_files()]

    def merged_layout(self, target_bytes: int) -> Layout:
        return self._layout(target_bytes, MERGED)

    def replace(self, old: Sequence[ListedFile], new: Sequence[DataFile]) -> bool:
        def exchange() -> bool:
            self._table.refresh()
            files = {task.file.file_path: task.file for task in self._table.scan().plan_files()}
            if any(file.path not in files for file in old):
                return False
            with (
                self._table.transaction() as transaction,
                transaction.update_snapshot().overwrite() as change,
            ):
                for file in old:
                    change.delete_data_file(files[file.path])
                for merged in new:
                    change.append_data_file(self._data_file(merged))
            return True

        return retried(self._directory, _CONFLICTS, exchange)

    def expire(self, before_ms: int) -> int:
        oldest = datetime.fromtimestamp(before_ms / 1000, UTC)

        def drop() -> int:
            self._table.refresh()
            count = len(self._table.metadata.snapshots)
            self._table.maintenance.expire_snapshots().older_than(oldest).commit()
            return max(0, count - len(self._table.metadata.snapshots))

        return retried(self._directory, CommitFailedException, drop)

    def unlisted(self, query: str, keep_ms: int) -> list[str]:
        """Files leave with the snapshots that list them, so `keep_ms` has no part in this."""
        data = join(self._directory, _DATA.rstrip("/"))
        paths = [file.path for file in self._place.files.tree(data)]
        self._table.refresh()
        table_paths, manifests = set(), {}
        for snapshot in self._table.metadata.snapshots:
            for manifest in snapshot.manifests(self._table.io):
                manifests[manifest.manifest_path] = manifest
        for manifest in manifests.values():
            for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=True):
                table_paths.add(entry.data_file.file_path.removeprefix("file://"))
        last = int(self._table.properties.get(BATCH, "-1"))
        if self._table.properties.get(QUERY) != query:
            last = -1
        return [path for path in paths if path not in table_paths and is_left(path, query, last)]

    def _append(self, batch: BatchId, files: Sequence[DataFile]) -> None:
        names = {QUERY: batch.query, BATCH: str(batch.number)}
        with self._table.transaction() as transaction:
            transaction.set_properties(names)
            if files:
                with transaction.update_snapshot(names).merge_append() as append:
                    for file in files:
                        append.append_data_file(self._data_file(file))

    def _data_file(self, file: DataFile) -> Any:
        """Return the entry of a file, with the statistics of its columns from its footer.

        Raises:
            PipelineError: PyIceberg cannot keep a time of the file.
        """
        try:
            return parquet_file_to_data_file(
                self._table.io, self._table.metadata, join(self._directory, file.path)
            )
        except OverflowError as error:
            raise unknown_time(file.topic) from error

    def _layout(self, target_bytes: int, stem: str) -> Layout:
        schema: pa.Schema = schema_to_pyarrow(self._table.schema())
        return Layout(self._directory, _DATA, schema, target_bytes, stem, store=self._place.store)


def open_table(
    place: TablePlace, catalog: Mapping[str, str], name: str | None, without: Sequence[str] = ()
) -> IcebergTable:
    """Return the table, and make it if there is none.

    Args:
        place: location of the table.
        catalog: PyIceberg's properties of a catalogue; empty: the directory is the catalogue.
        name: `namespace.table` in that catalogue.
        without: columns that a new table does not have yet: `take_in` adds them with their types.
            Without any of them it has no partitions either.

    Raises:
        PipelineError: the catalogue does not answer, or has this table elsewhere.
    """
    directory = place.directory
    of_store = {} if place.store is None else place.store.for_iceberg()
    if not catalog:
        directory_catalog = DirectoryCatalog(directory, place.files, of_store)
        directory_catalog.mend_hint()
        return IcebergTable(
            place, _open_or_create(directory_catalog, IDENTIFIER, directory, without)
        )
    try:
        open_catalog = load_catalog("minibroker", **{**of_store, **catalog})
        identifier = tuple((name or "").split("."))
        open_catalog.create_namespace_if_not_exists(identifier[:-1])
        table = _open_or_create(open_catalog, identifier, directory, without)
    except Exception as error:
        raise PipelineError(
            f"the catalogue does not take table {name}: {type(error).__name__}: {error}; check "
            "--catalog and --table"
        ) from error
    if table.location().rstrip("/").removeprefix("file://") != directory:
        raise PipelineError(
            f"table {name} is at {table.location()} and not at {directory}: give that directory "
            "with --to, or another name with --table"
        )
    return IcebergTable(place, table)


def _open_or_create(
    catalog: Any, identifier: tuple[str, ...], directory: str, without: Sequence[str]
) -> Any:
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        fields = [field for field in SCHEMA.fields if field.name not in without]
        return catalog.create_table(
            identifier,
            Schema(*fields),
            location=directory,
            partition_spec=PARTITIONS if fields else UNPARTITIONED_PARTITION_SPEC,
            properties=_PROPERTIES,
        )


def _listed_file(file: Any) -> ListedFile:
    topic, days = file.partition[0], file.partition[1]
    return ListedFile(
        file.file_path,
        topic,
        date_text(days),
        file.record_count,
        file.file_size_in_bytes,
    )
