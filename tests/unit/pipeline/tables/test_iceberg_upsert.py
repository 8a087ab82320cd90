"""Rows of an Iceberg table replaced by keys of any type, over several files."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue

from minibroker.pipeline.tables import iceberg, iceberg_upsert
from minibroker.pipeline.tables.choice import place_of
from minibroker.pipeline.tables.iceberg_upsert import range_of
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.values.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from minibroker.pipeline.tables.iceberg import IcebergTable

EVERY = [field.name for field in iceberg.SCHEMA.fields]


def open_table(directory: Path, columns: pa.Schema) -> IcebergTable:
    opened_table = iceberg.open_table(place_of(str(directory), None), {}, None, EVERY)
    opened_table.take_in({field.name: field.type for field in columns})
    return opened_table


def put(
    table: IcebergTable, number: int, rows: pa.Table, deleted: pa.Table, by: Sequence[str]
) -> None:
    assert table.upsert(BatchId("query", number), Changes(rows, deleted.select(list(by)), by))


def rows_in(table: IcebergTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table._table.scan().to_arrow().to_pylist()
    return rows


KINDS: Sequence[tuple[pa.DataType, Callable[[int], Any]]] = [
    (pa.int32(), int),
    (pa.string(), lambda number: f"key {number}"),
    (pa.binary(), lambda number: b"\xff%d" % number),
    (pa.date32(), date.fromordinal),
    (pa.timestamp("us", "UTC"), lambda number: datetime.fromtimestamp(number, UTC)),
    (pa.decimal128(20, 2), Decimal),
    (pa.bool_(), lambda number: number % 2 == 1),
    (pa.float64(), lambda number: number / 2),
]


@pytest.mark.parametrize(("kind", "key_of"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_keys_of_two_columns(
    kind: pa.DataType, key_of: Callable[[int], Any], tmp_path: Path
) -> None:
    """Three files: one row of the first changes, one of the second goes."""
    columns = pa.schema([("a", kind), ("b", pa.int64()), ("text", pa.string())])

    def table_of(numbers: Sequence[int], text: str) -> pa.Table:
        values = [{"a": key_of(n), "b": n, "text": f"{text}{n}"} for n in numbers]
        return pa.Table.from_pylist(values, columns)

    table, by = open_table(tmp_path, columns), ["a", "b"]
    none = table_of([], "")
    for number, first in enumerate((1, 11, 21)):
        put(table, number, table_of(range(first, first + 4), "old"), none, by)
    put(table, 3, table_of([2, 50], "new"), table_of([12, 99], ""), by)
    expected = {n: f"old{n}" for n in (1, 3, 4, 11, 13, 14, 21, 22, 23, 24)} | {
        2: "new2",
        50: "new50",
    }
    assert {row["b"]: row["text"] for row in rows_in(table)} == expected
    assert all(row["a"] == key_of(row["b"]) for row in rows_in(table))


def test_files_without_such_keys_stay_and_others_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_upsert, "KEPT_BYTES_MAX", 1)
    columns = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])

    def table_of(*numbers: int) -> pa.Table:
        return pa.Table.from_pylist([{"id": n, "tags": [f"{n}"]} for n in numbers], columns)

    table = open_table(tmp_path, columns)
    for number, numbers in enumerate(((1, 2), (3, 4), (1000, 1001))):
        put(table, number, table_of(*numbers), table_of(), ["id"])
    old_paths = {task.file.file_path for task in table._table.scan().plan_files()}
    put(table, 3, table_of(), table_of(2, 3, 500), ["id"])
    after = {task.file.file_path for task in table._table.scan().plan_files()}
    assert len(old_paths & after) == 1
    assert sorted(row["id"] for row in rows_in(table)) == [1, 4, 1000, 1001]
    put(table, 4, table_of(), table_of(1, 4, 1000, 1001), ["id"])
    assert rows_in(table) == []
    put(table, 5, table_of(), table_of(), ["id"])
    assert table.has(BatchId("query", 5))


def test_only_ranges_that_files_know_choose_them() -> None:
    keys = pa.table({"a": [3, 1, 2], "b": ["x", "y", "x"], "c": [b"1", b"2", b"3"]})
    text = str(range_of(keys, ["a", "b", "c"]))
    for bound in ("LongLiteral(1)", "LongLiteral(3)", "literal('x')", "literal('y')"):
        assert bound in text
    assert range_of(keys, ["c"]) == AlwaysTrue()
