"""An archive as a Delta table, through the `deltalake` library.

The commit of a batch adds its files and one `txn` action, Delta's own means against repetition: the
application is the query's checkpoint, the version is the number of the batch. If two writers commit
the same batch, the library refuses the second one.

    DIR/_delta_log/…                what counts
    DIR/topic=…/date=…/….parquet    data files; topic and date are only in the names and in the log
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from minibroker.clock import SystemClock
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.tables.data_access import open_input
from minibroker.pipeline.tables.data_files import (
    MERGED,
    PARTITION_COLUMNS,
    RECORD,
    Layout,
    is_left,
    stem_of,
)
from minibroker.pipeline.tables.table import (
    BatchId,
    ListedFile,
    committed_once,
    retried,
    unknown_time,
)
from minibroker.pipeline.values.column_names import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.tables.data_files import DataFile
    from minibroker.pipeline.tables.table import TablePlace
    from minibroker.pipeline.values.changes import Changes

_IS_DELETED: Final = "__gone"
"""Column of a change that deletes its row; only in the source of a merge."""

_FILE_FACTS: Final = ("path", "partition.topic", "partition.date", "num_records", "size_bytes")
"""The facts of `ListedFile` among those of a file in the log, which are many."""

_COUNTED: Final = ("partition", "offset", "timestamp")
"""Columns whose smallest and largest value stand in the log, so that readers skip files."""


class ArchiveDeltaTable:
    """One table; used by the driver alone."""

    def __init__(self, place: TablePlace, table: Any) -> None:
        self._place = place
        self._directory = place.directory
        self._table = table

    def layout(self, batch: BatchId, target_bytes: int) -> Layout:
        return self._layout(target_bytes, stem_of(batch.query, batch.number))

    def has(self, batch: BatchId) -> bool:
        self._table.update_incremental()
        version = self._table.transaction_version(_application(batch))
        return version is not None and version >= batch.number

    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool:
        return committed_once(
            self._directory,
            CommitFailedError,
            lambda: self.has(batch),
            lambda: self._append(batch, files),
        )

    def columns(self) -> pa.Schema:
        self._table.update_incremental()
        return pa.schema(self._table.schema().to_arrow())

    def take_in(self, types: Mapping[str, pa.DataType]) -> None:
        def change() -> None:
            now = self.columns()
            fields = [
                field.with_type(types[field.name]) if field.name in types else field
                for field in now
            ]
            fields += [pa.field(name, types[name]) for name in types if name not in now.names]
            empty = pa.schema(fields).empty_table()
            write_deltalake(self._table, empty, mode="append", schema_mode="merge")

        retried(self._directory, CommitFailedError, change)

    def upsert(self, batch: BatchId, changes: Changes) -> bool:
        """Put the rows of a batch in place of those with their keys, and take out those gone.

        One commit with the batch's identity, like `commit`.
        """
        is_gone = [False] * changes.rows.num_rows + [True] * changes.deleted_keys.num_rows
        source = pa.concat_tables(
            [changes.rows, changes.deleted_keys], promote_options="permissive"
        )
        source = source.append_column(_IS_DELETED, pa.array(is_gone, pa.bool_()))
        columns = {quoted(name): f"s.{quoted(name)}" for name in changes.rows.column_names}

        def change() -> None:
            merger = self._table.merge(
                source,
                " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in changes.by),
                source_alias="s",
                target_alias="t",
                commit_properties=_properties_of(batch),
            )
            merger = merger.when_matched_delete(f"s.`{_IS_DELETED}`")
            merger = merger.when_matched_update(columns, f"NOT s.`{_IS_DELETED}`")
            merger.when_not_matched_insert(columns, f"NOT s.`{_IS_DELETED}`").execute()

        return committed_once(self._directory, CommitFailedError, lambda: self.has(batch), change)

    def files(self) -> list[ListedFile]:
        self._table.update_incremental()
        actions = pa.table(self._table.get_add_actions(flatten=True))
        columns = (actions[name].to_pylist() for name in _FILE_FACTS)
        return [
            ListedFile(f"{self._directory}/{unquote(path)}", topic, str(date), rows, size)
            for path, topic, date, rows, size in zip(*columns, strict=True)
        ]

    def merged_layout(self, target_bytes: int) -> Layout:
        return self._layout(target_bytes, MERGED)

    def replace(self, old: Sequence[ListedFile], new: Sequence[DataFile]) -> bool:
        def exchange() -> bool:
            paths = {file.path for file in self.files()}
            if any(file.path not in paths for file in old):
                return False
            removals = [self._removal(file) for file in old]
            merged = [self._action(file, data_change=False) for file in new]
            self._table.create_write_transaction(
                [*removals, *merged], "append", self._table.schema(), list(PARTITION_COLUMNS)
            )
            return True

        return retried(self._directory, CommitFailedError, exchange)

    def expire(self, before_ms: int) -> int:
        """Make a checkpoint and drop old entries of the log, by the table's own retention."""
        self._table.update_incremental()
        count = self._entries()
        self._table.create_checkpoint()
        self._table.cleanup_metadata()
        return count - self._entries()

    def unlisted(self, query: str, keep_ms: int) -> list[str]:
        self._table.update_incremental()
        last = self._table.transaction_version(_application(BatchId(query, 0)))
        names = self._table.vacuum(
            retention_hours=-(-keep_ms // 3_600_000),
            enforce_retention_duration=False,
            full=True,
            dry_run=True,
        )
        paths = [join(self._directory, unquote(path)) for path in names]
        return [path for path in paths if is_left(path, query, -1 if last is None else last)]

    def _entries(self) -> int:
        """Return how many entries the log has."""
        names = self._place.files.names(join(self._directory, "_delta_log"))
        return sum(name.endswith(".json") for name in names)

    def _append(self, batch: BatchId, files: Sequence[DataFile]) -> None:
        self._table.create_write_transaction(
            [self._action(file) for file in files],
            "append",
            self._table.schema(),
            list(PARTITION_COLUMNS),
            commit_properties=_properties_of(batch),
        )

    def _removal(self, file: ListedFile) -> RemoveAction:
        return RemoveAction(
            path=file.path.removeprefix(f"{self._directory}/"),
            size=file.size,
            partition_values={"topic": file.topic, "date": file.date},
            deletion_timestamp=SystemClock().now_ms(),
            data_change=False,
        )

    def _action(self, file: DataFile, *, data_change: bool = True) -> AddAction:
        path = join(self._directory, file.path)
        try:
            counted = statistics(pq.read_metadata(open_input(path, self._place.store)))
        except OverflowError as error:
            raise unknown_time(file.topic) from error
        return AddAction(
            path=file.path,
            size=file.size,
            partition_values={"topic": file.topic, "date": file.date},
            modification_time=self._place.files.facts(path).modified_ms,
            data_change=data_change,
            stats=json.dumps(counted),
        )

    def _layout(self, target_bytes: int, stem: str) -> Layout:
        columns = pa.schema(self._table.schema().to_arrow())
        schema = pa.schema([field for field in columns if field.name not in PARTITION_COLUMNS])
        return Layout(self._directory, "", schema, target_bytes, stem, store=self._place.store)


def open_mirror(place: TablePlace, columns: pa.Schema) -> ArchiveDeltaTable:
    """Return the table at `place`; a new one has these columns, and no partitions."""
    return _open_or_create(place, columns, [], "minibroker mirror")


def open_table(place: TablePlace, without: Sequence[str] = ()) -> ArchiveDeltaTable:
    """Return the table at `place`, and make it if there is none.

    Args:
        without: columns that a new table does not have yet: `take_in` adds them with their types.
    """
    columns = pa.schema([field for field in RECORD if field.name not in without])
    return _open_or_create(place, columns, list(PARTITION_COLUMNS), "minibroker archive")


def _open_or_create(
    place: TablePlace, columns: pa.Schema, partition_by: list[str], name: str
) -> ArchiveDeltaTable:
    options = None if place.store is None else place.store.for_delta()
    if not DeltaTable.is_deltatable(place.directory, options):
        DeltaTable.create(
            place.directory,
            schema=Schema.from_arrow(columns),
            mode="ignore",
            partition_by=partition_by,
            name=name,
            storage_options=options,
        )
    return ArchiveDeltaTable(place, DeltaTable(place.directory, storage_options=options))


def statistics(metadata: Any) -> Mapping[str, Any]:
    """Return the statistics of a file for the log, from its footer."""
    facts: dict[str, Any] = {"numRecords": metadata.num_rows}
    smallest: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            name, values = column.path_in_schema, column.statistics
            if name not in _COUNTED or values is None or not values.has_min_max:
                continue
            smallest[name] = min(values.min, smallest.get(name, values.min))
            largest[name] = max(values.max, largest.get(name, values.max))
    facts["minValues"] = {name: _json(value) for name, value in smallest.items()}
    facts["maxValues"] = {name: _json(value) for name, value in largest.items()}
    facts["nullCount"] = dict.fromkeys(smallest, 0)
    return facts


def _json(value: Any) -> Any:
    """Return a number as it is, and a time as Delta writes it, in milliseconds and UTC."""
    return value if isinstance(value, int) else f"{value:%Y-%m-%dT%H:%M:%S.}{value:%f}"[:-3] + "Z"


def _properties_of(batch: BatchId) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(_application(batch), batch.number)])


def _application(batch: BatchId) -> str:
    return f"minibroker-{batch.query}"
