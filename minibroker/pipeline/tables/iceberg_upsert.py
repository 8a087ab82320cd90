"""Rows of an Iceberg table replaced by their keys: files that have such rows are written anew.

    keys ─► their range ─► files that may have some ─► key columns alone ─► rows with these keys?
                                                                              │ yes
    one commit ◄─ old files out, other rows and new rows in ◄─ the whole file ◄─┘

PyIceberg's own way is an expression with a term for each key. With two columns it takes minutes for
the keys of one batch. Here Arrow joins the keys of a file with those of the batch, by any number of
columns. Rows of one file are in memory at a time, and some of those that stay.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, LessThanOrEqual
from pyiceberg.io.pyarrow import ArrowScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table, Transaction

KEPT_BYTES_MAX: Final = 256 << 20
"""Bytes of rows that stay, in memory before they are written."""
_ROW: Final = "__row"


def replace_rows(
    table: Table, transaction: Transaction, keys: pa.Table, rows: pa.Table, by: Sequence[str]
) -> None:
    """Take the rows with these keys out of the table, and put `rows` in.

    Args:
        table: as the transaction began with it.
        transaction: gets all changes.
        keys: of rows to take out, without null.
        rows: to put in.
        by: columns of the keys.
    """
    rests: list[pa.Table] = []
    old: list[Any] = []
    scan = table.scan(row_filter=range_of(keys, by)) if keys.num_rows else None
    for task in scan.plan_files() if scan is not None else ():
        indices = _rows_with(keys, _read(table, task, by), by)
        if not len(indices):
            continue
        whole = _read(table, task)
        is_gone = pc.is_in(pa.array(range(whole.num_rows), pa.int64()), value_set=indices)
        rests.append(whole.filter(pc.invert(is_gone)))
        old.append(task.file)
        if sum(part.nbytes for part in rests) > KEPT_BYTES_MAX:
            transaction.append(pa.concat_tables(rests))
            rests = []
    if old:
        with transaction.update_snapshot().overwrite() as change:
            for file in old:
                change.delete_data_file(file)
    new = pa.concat_tables([*rests, rows], promote_options="permissive")
    if new.num_rows:
        transaction.append(new)


def range_of(keys: pa.Table, by: Sequence[str]) -> BooleanExpression:
    """Return a filter for the files that may have rows with these keys: from the smallest on."""
    bounds: list[BooleanExpression] = []
    for name in by:
        column = keys[name]
        if pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            span = pc.min_max(column).as_py()
            bounds += [GreaterThanOrEqual(name, span["min"]), LessThanOrEqual(name, span["max"])]
    return reduce(And, bounds) if bounds else AlwaysTrue()


def _rows_with(keys: pa.Table, table_rows: pa.Table, by: Sequence[str]) -> pa.Array:
    """Return the indices of the rows in `table_rows` that have one of the keys."""
    of_batch = keys.select(list(by)).cast(table_rows.schema)
    numbered = table_rows.append_column(_ROW, pa.array(range(table_rows.num_rows), pa.int64()))
    matches = numbered.join(of_batch, keys=list(by), join_type="left semi")
    return matches[_ROW].combine_chunks()


def _read(table: Table, task: Any, columns: Sequence[str] = ()) -> pa.Table:
    """Return rows of a file, with all columns of the table or with some."""
    schema = table.schema().select(*columns) if columns else table.schema()
    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    file_rows: pa.Table = scan.to_table([task])
    return file_rows.select(list(columns)) if columns else file_rows
