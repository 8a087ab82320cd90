"""From decoded records to the rows of a table that mirrors another one: the last of each key.

    value {before, after, op, …}         Debezium's envelope; `json_events` makes it of JSON
    value {id, amount, …}                the row itself; a tombstone: it is gone
    value {id, amount, …, __deleted}     the row, and in text whether it is gone

Records of one key are in one partition, and the one with the largest offset wins.
Source: Debezium's documentation of change events (`op`: c, r and u have a row, d deletes it), and
of ExtractNewRecordState (`delete.tombstone.handling.mode=rewrite`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.pipeline.errors import JobUsageError, near_places

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORD_KEY: Final = "key"
"""The key of the record, instead of names of columns; and the column of a key without fields."""
OP: Final = "op"
ROW_BEFORE: Final = "before"
ROW_AFTER: Final = "after"
DELETED: Final = "__deleted"
"""Column of a row that is no envelope: `true` if the row is gone."""
_WITH_ROW: Final = ("c", "r", "u")
DELETE: Final = "d"
_IGNORED: Final = ("m",)
"""Messages of the database's log, which are no changes of a row."""
OPERATIONS: Final = (*_WITH_ROW, DELETE, "t", *_IGNORED)
"""Operations of Debezium; `t` empties a table."""


class ChangeError(ValueError):
    """A record that is no change of a row; the text names it."""


class Changes(NamedTuple):
    """The changes of a batch, one for each key."""

    rows: pa.Table
    """Rows that are there now."""
    deleted_keys: pa.Table
    """Keys of rows that are not there any more, with the columns of the key alone."""
    by: Sequence[str]
    """Columns of the key."""


def row_type(value: pa.DataType) -> pa.DataType:
    """Return the type of the rows in decoded values. Raises ValueError: they have no fields."""
    if not pa.types.is_struct(value):
        raise ValueError(f"a value is {value} and no record: it has no columns")
    if _is_envelope(value):
        return value.field(ROW_AFTER).type
    return value


def key_columns(by: Sequence[str], key: pa.DataType) -> list[pa.Field]:
    """Return the columns of a key that come from the record's key, if `by` says so."""
    if list(by) != [RECORD_KEY]:
        return []
    if pa.types.is_struct(key):
        return list(key)
    return [pa.field(RECORD_KEY, key)]


def changes_of(records: pa.Table, by: Sequence[str]) -> Changes:
    """Return the changes that records make.

    Args:
        records: topic, partition, offset, key and value, decoded; of any order.
        by: columns of a row that are its key, or `RECORD_KEY`.

    Raises:
        ChangeError: a record has no key, or its operation is unknown (`faults_of`).
    """
    records = records.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
    changes = _ReadChanges(records["value"].combine_chunks(), records["key"].combine_chunks(), by)
    if faults := changes.faults():
        first = min(faults)
        raise ChangeError(f"{_name_of(records, first)} {faults[first]}")
    last = _last_of(changes.keys, changes.names, changes.is_change)
    is_gone = changes.is_gone.take(last)
    rows = pa.table(changes.rows).take(last.filter(pc.invert(is_gone)))
    deleted_keys = pa.table(dict(zip(changes.names, changes.keys, strict=True))).take(
        last.filter(is_gone)
    )
    return Changes(rows, deleted_keys, changes.names)


def faults_of(value: pa.Array, key: pa.Array, by: Sequence[str]) -> dict[int, str]:
    """Return why records are no changes of rows, by their index: a sentence without its subject.

    Args:
        value: decoded values of records.
        key: their keys.
        by: as of `changes_of`.

    Raises JobUsageError: no row has such a column.
    """
    return _ReadChanges(value, key, by).faults() if pa.types.is_struct(value.type) else {}


class _ReadChanges:
    """The changes of records, in their order."""

    def __init__(self, value: pa.Array, key: pa.Array, by: Sequence[str]) -> None:
        self._value = value
        self._parts = parts = _Parts(value)
        self._of_key = key_columns(by, key.type)
        self.names = [field.name for field in self._of_key] or list(by)
        """Columns of the key."""
        self.rows, old_rows = parts.rows(), parts.old_rows()
        """Columns of the rows behind the changes."""
        for field in self._of_key:
            column = pc.struct_field(key, [field.name]) if pa.types.is_struct(key.type) else key
            self.rows, old_rows = (
                {**self.rows, field.name: column},
                {**old_rows, field.name: column},
            )
        self.is_gone = parts.is_gone()
        """True where a change deletes its row."""
        self.is_change = pc.and_(parts.is_change(), pc.or_(value.is_valid(), bool(self._of_key)))
        """True where a record is a change at all."""
        _check_names(self.rows, self.names)
        self.keys = [
            pc.if_else(self.is_gone, old_rows[name], self.rows[name]) for name in self.names
        ]
        """The columns of the key, of each change."""

    def faults(self) -> dict[int, str]:
        """Return the records that are no changes of rows, see `faults_of`."""
        faults = self._parts.unknown_operations()
        value = self._value
        if not self._of_key and not (_is_envelope(value.type) or DELETED in value.type.names):
            for row in pc.indices_nonzero(value.is_null()).to_pylist():
                faults[row] = "is a tombstone, whose row only its key names: give --upsert-by key"
        for name, column in zip(self.names, self.keys, strict=True):
            for row in pc.indices_nonzero(pc.and_(self.is_change, column.is_null())).to_pylist():
                faults.setdefault(row, f"has no key: {name} is null")
        return faults


class _Parts:
    """The parts of decoded values, whatever they are."""

    def __init__(self, value: pa.Array) -> None:
        self._value = value
        self._is_envelope = _is_envelope(value.type)
        op = _field(value, OP) if self._is_envelope else pa.nulls(len(value), pa.string())
        self._op = op.cast(pa.string())

    def rows(self) -> dict[str, pa.Array]:
        """Return the columns of the rows that are there behind a change."""
        return self._columns(_field(self._value, ROW_AFTER) if self._is_envelope else self._value)

    def old_rows(self) -> dict[str, pa.Array]:
        """Return the columns of the rows that were there before a change."""
        return self._columns(_field(self._value, ROW_BEFORE) if self._is_envelope else self._value)

    def is_gone(self) -> pa.Array:
        """Return whether a change deletes its row."""
        is_delete = pc.fill_null(pc.equal(self._op, DELETE), False)
        if not self._is_envelope and DELETED in self._value.type.names:
            marks = _field(self._value, DELETED).cast(pa.string())
            is_delete = pc.fill_null(pc.equal(marks, "true"), False)
        return pc.or_(is_delete, self._value.is_null())

    def is_change(self) -> pa.Array:
        """Return whether a record is a change at all."""
        return pc.fill_null(pc.invert(pc.is_in(self._op, pa.array(_IGNORED))), True)

    def unknown_operations(self) -> dict[int, str]:
        """Return index → sentence of the records with another operation than those of a row."""
        operations = pa.array([*_WITH_ROW, DELETE, *_IGNORED])
        unknown = pc.and_(self._op.is_valid(), pc.invert(pc.is_in(self._op, operations)))
        return {
            row: f"has op {self._op[row].as_py()!r}: expected c, r, u or d; a truncated table has "
            "to be copied anew"
            for row in pc.indices_nonzero(unknown).to_pylist()
        }

    @staticmethod
    def _columns(rows: pa.Array) -> dict[str, pa.Array]:
        return {name: _field(rows, name) for name in rows.type.names}


def _is_envelope(value: pa.DataType) -> bool:
    names = value.names if pa.types.is_struct(value) else []
    return OP in names and ROW_AFTER in names and pa.types.is_struct(value.field(ROW_AFTER).type)


def _field(values: pa.Array, name: str) -> pa.Array:
    """Return a field; null where the struct is null."""
    return pc.struct_field(values, [name])


def _check_names(rows: dict[str, pa.Array], names: Sequence[str]) -> None:
    missing = [name for name in names if name not in rows]
    if missing:
        raise JobUsageError(
            f"--upsert-by {missing[0]}: a row has no such column{near_places(missing[0], rows)}; "
            f"it has {', '.join(rows)}"
        )


def _last_of(keys: Sequence[pa.Array], names: Sequence[str], is_change: pa.Array) -> pa.Array:
    """Return the index of the last change of each key, rising."""
    table = pa.table(
        [*keys, pa.array(range(len(is_change)), pa.int64())], [*names, "__row"]
    ).filter(is_change)
    rows = table.group_by(list(names)).aggregate([("__row", "max")])["__row_max"]
    last = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    return last.take(pc.array_sort_indices(last))


def _name_of(records: pa.Table, index: int) -> str:
    row = records.select(["topic", "partition", "offset"]).slice(index, 1).to_pylist()[0]
    return f"record {row['topic']}-{row['partition']} offset {row['offset']}"
