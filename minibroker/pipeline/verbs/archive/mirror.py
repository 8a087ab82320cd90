"""A table that mirrors a source of change events: the last row of each key, and none that is gone.

    decoded records ─► files of a stage ─► values.changes ─► one commit: old rows out, new rows in

The tasks write the decoded records of a batch into hidden files, as for a Parquet archive. The
driver reads them, keeps the last change of each key, and applies these in one commit with the
identity of the batch. So its memory has to hold the records of one batch, decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.tables.choice import check as check_table
from minibroker.pipeline.tables.data_access import open_input
from minibroker.pipeline.values.arrow_types import plain
from minibroker.pipeline.values.changes import ChangeError, changes_of, key_columns, row_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.tables.data_files import DataFile, Layout
    from minibroker.pipeline.tables.delta import ArchiveDeltaTable
    from minibroker.pipeline.tables.iceberg import IcebergTable
    from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
    from minibroker.pipeline.tables.table import BatchId, TablePlace
    from minibroker.pipeline.verbs.archive.plan import ArchivePlan


class MirrorTable:
    """One table of Iceberg or Delta; used by the driver alone."""

    def __init__(self, plan: ArchivePlan, place: TablePlace, staged: ParquetDirectory) -> None:
        """Args:
        plan: of the archive.
        place: of its directory.
        staged: takes the decoded records, and knows their columns.
        """
        self._plan = plan
        self._place = place
        self._staged = staged
        self._target: ArchiveDeltaTable | IcebergTable | None = None

    def layout(self, batch: BatchId, target_bytes: int) -> Layout:
        """Return where and how the tasks write; a new stage each time."""
        return self._staged.layout(batch, target_bytes)

    def columns(self) -> pa.Schema:
        """Return the columns of the decoded records."""
        return self._staged.columns()

    def take_in(self, types: Mapping[str, pa.DataType]) -> None:
        """Add or widen columns, in the records and in the table."""
        self._staged.take_in(types)
        self._take_in_rows()

    def has(self, batch: BatchId) -> bool:
        """Return whether a batch is committed."""
        target = self._open_or_create()
        return target is not None and target.has(batch)

    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool:
        """Apply the changes in the files of a batch; return False if it is committed already.

        Raises PipelineError: a record is no change.
        """
        target = self._open_or_create()
        if target is None:
            return False  # no schema yet: the batch has tombstones at most
        records = [self._records(file) for file in files] or [self._none()]
        try:
            changes = changes_of(pa.concat_tables(records), self._plan.upsert_by)
        except ChangeError as error:
            raise PipelineError(f"{error}; topic and table differ from here on") from error
        is_done = target.upsert(batch, changes)
        for stage in {file.path.rpartition("/topic=")[0] for file in files}:
            self._place.files.remove(join(self._plan.to, stage))
        return is_done

    def _records(self, file: DataFile) -> pa.Table:
        path = join(self._place.directory, file.path)
        with pq.ParquetFile(open_input(path, self._place.store)) as parquet:
            table = parquet.read()
        return table.append_column("topic", pa.repeat(file.topic, table.num_rows))

    def _none(self) -> pa.Table:
        return self.columns().append(pa.field("topic", pa.string())).empty_table()

    def _rows(self) -> pa.Schema | None:
        """Return the columns of the table, None if no schema is known yet."""
        columns = self.columns()
        if "value" not in columns.names:
            return None
        try:
            row = row_type(columns.field("value").type)
        except ValueError as error:
            raise PipelineError(f"values of {self._plan.to}: {error}") from error
        own = {field.name: field for field in row}
        if "key" in columns.names:
            for field in key_columns(self._plan.upsert_by, columns.field("key").type):
                own.setdefault(field.name, field)
        return pa.schema(list(own.values()))

    def _open_or_create(self) -> ArchiveDeltaTable | IcebergTable | None:
        """Return the table, which is made once its columns are known; None before that."""
        if self._target is not None:
            return self._target
        rows = self._rows()
        if rows is None:
            return None
        plan = self._plan
        check_table(plan.format, plan.to)
        if plan.format == "delta":
            from minibroker.pipeline.tables import delta as delta_table  # noqa: PLC0415  an extra

            self._target = delta_table.open_mirror(self._place, rows)
        else:
            from minibroker.pipeline.tables import iceberg as iceberg_table  # noqa: PLC0415  an extra

            every = [field.name for field in iceberg_table.SCHEMA.fields]
            self._target = iceberg_table.open_table(self._place, plan.catalog, plan.table, every)
        self._take_in_rows()
        return self._target

    def _take_in_rows(self) -> None:
        rows = self._rows()
        if rows is not None and (target := self._target) is not None:
            now = target.columns()
            types = {field.name: field.type for field in rows}
            has = {field.name: plain(field.type) for field in now}
            if any(has.get(name) != types[name] for name in types):
                target.take_in(types)
