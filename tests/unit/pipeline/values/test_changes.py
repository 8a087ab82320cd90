"""Changes: the last one of each key, for every form of a value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.values.changes import (
    ChangeError,
    changes_of,
    faults_of,
    key_columns,
    row_type,
)

ROW = pa.struct([("id", pa.int64()), ("name", pa.string())])
ENVELOPE = pa.struct([("before", ROW), ("after", ROW), ("op", pa.string())])


def records(values: list[Any], value_type: pa.DataType, keys: pa.Array | None = None) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "topic": ["t"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": list(range(count)),
            "key": pa.array([b"k"] * count, pa.binary()) if keys is None else keys,
            "value": pa.array(values, value_type),
        }
    )


def row(number: int, name: str | None = None) -> dict[str, Any]:
    return {"id": number, "name": name}


def change(op: str, old: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": old, "after": after, "op": op}


EVENTS = [
    change("c", after=row(1, "a")),
    change("c", after=row(2, "b")),
    change("u", row(1), row(1, "c")),
    change("d", row(2)),
    None,
    change("r", after=row(3, "x")),
    change("d", row(3)),
    change("c", after=row(3, "y")),
    change("m"),
]
ROWS = [row(1, "c"), row(3, "y")]


def test_events_of_a_registry() -> None:
    changes = changes_of(records(EVENTS, ENVELOPE), ["id"])
    assert (changes.rows.to_pylist(), changes.deleted_keys.to_pylist()) == (ROWS, [{"id": 2}])
    backwards = records(EVENTS, ENVELOPE).take(pa.array(range(len(EVENTS) - 1, -1, -1)))
    assert changes_of(backwards, ["id"]).rows.to_pylist() == ROWS


def test_rows_without_an_envelope() -> None:
    values = [row(1, "a"), row(1, "b"), row(2, "c")]
    for value_type, data in ((ROW, values), (ENVELOPE, [{"after": value} for value in values])):
        done = changes_of(records(data, value_type), ["id"])
        assert (done.rows.to_pylist(), done.deleted_keys.num_rows) == (values[1:], 0)


@pytest.mark.parametrize("kind", [pa.string(), pa.bool_()])
def test_rows_that_say_whether_they_are_gone(kind: pa.DataType) -> None:
    yes, no = ("true", "false") if pa.types.is_string(kind) else (True, False)
    rewritten = pa.struct([*ROW, ("__deleted", kind)])
    values = [
        {**row(1, "a"), "__deleted": no},
        {**row(2, "b"), "__deleted": no},
        {**row(2, "b"), "__deleted": yes},
        None,
        {**row(3, "c"), "__deleted": None},
    ]
    changes = changes_of(records(values, rewritten), ["id"])
    assert changes.rows.to_pylist() == [values[0], values[4]]
    assert changes.deleted_keys.to_pylist() == [{"id": 2}]


def test_tombstones_by_the_key_of_the_record() -> None:
    keys = pa.array([{"id": 1}, {"id": 2}, {"id": 1}], pa.struct([("id", pa.int64())]))
    changes = changes_of(records([row(1, "a"), row(2, "b"), None], ROW, keys), ["key"])
    assert (changes.rows.to_pylist(), changes.deleted_keys.to_pylist()) == (
        [row(2, "b")],
        [{"id": 1}],
    )
    plain = pa.array([b"x", b"y", b"x"], pa.binary())
    changes = changes_of(records([row(1, "a"), row(2, "b"), None], ROW, plain), ["key"])
    assert changes.rows.to_pylist() == [{**row(2, "b"), "key": b"y"}]
    assert (changes.deleted_keys.to_pylist(), changes.by) == ([{"key": b"x"}], ["key"])
    assert key_columns(["id"], pa.binary()) == []


def test_keys_of_several_columns_and_nothing() -> None:
    rows = [row(1, "a"), row(1, "b"), row(1, "a")]
    assert changes_of(records(rows, ROW), ["id", "name"]).rows.to_pylist() == [
        row(1, "b"),
        row(1, "a"),
    ]
    assert changes_of(records([], ENVELOPE), ["id"]).rows.num_rows == 0


@pytest.mark.parametrize(
    ("values", "value_type", "by", "sentence"),
    [
        ([change("t")], ENVELOPE, "id", "record t-0 offset 0 has op 't': expected c, r, u or d"),
        ([change("d")], ENVELOPE, "id", "record t-0 offset 0 has no key"),
        ([row(1), None], ROW, "id", "record t-0 offset 1 is a tombstone, whose row only its key"),
    ],
)
def test_other_records_are_named(values: Any, value_type: Any, by: str, sentence: str) -> None:
    with pytest.raises(ChangeError, match=sentence):
        changes_of(records(values, value_type), [by])


def test_each_record_that_is_no_change_has_its_reason() -> None:
    """The others of its batch are not touched."""
    keys = pa.array([b"k"] * 5, pa.binary())
    values = [change("c", after=row(1, "a")), change("x"), change("u"), change("m"), None]
    assert faults_of(pa.array(values, ENVELOPE), keys, ["id"]) == {
        1: "has op 'x': expected c, r, u or d; a truncated table has to be copied anew",
        2: "has no key: id is null",
    }
    by_key = pa.array([b"k", None], pa.binary())
    rows = pa.array([row(1), row(2)], ROW)
    assert faults_of(rows, by_key, ["key"]) == {1: "has no key: key is null"}
    assert faults_of(pa.nulls(2), by_key, ["id"]) == {}


def test_a_key_that_no_row_has_is_wrong_usage() -> None:
    complaint = (
        r"--upsert-by nmae: a row has no such column \(did you mean name\?\); it has id, name"
    )
    with pytest.raises(JobUsageError, match=complaint):
        faults_of(pa.array([row(1)], ROW), pa.array([b"k"]), ["nmae"])


def test_types_of_rows() -> None:
    assert row_type(ENVELOPE) == row_type(ROW) == ROW
    with pytest.raises(ValueError, match="a value is string and no record"):
        row_type(pa.string())
