"""Rows and events in JSON: the value decides which of both it is."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.values.json_events import EventReader
from minibroker.pipeline.values.salvage import salvaged

ROW = pa.struct([("id", pa.int64()), ("op", pa.string()), ("payload", pa.string())])
READER = EventReader(ROW)
FIRST = {"id": 1, "op": None, "payload": None}


def read(value: Any) -> Any:
    (row,) = READER.read(pa.array([json.dumps(value).encode()], pa.binary())).to_pylist()
    return row


def event(**parts: Any) -> dict[str, Any]:
    return {"before": None, "after": None, "op": None, **parts}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"op": "c", "before": None, "after": {"id": 1}}, event(op="c", after=FIRST)),
        ({"op": "d", "before": {"id": 1}, "after": None}, event(op="d", before=FIRST)),
        ({"op": "d", "before": None, "after": None, "source": {"db": "x"}}, event(op="d")),
        ({"op": "m", "source": {}, "message": {}}, event(op="m")),
        ({"op": "t", "source": {}}, event(op="t")),
        ({"op": "x", "after": {"id": 1}}, event(op="x", after=FIRST)),
        (
            {"op": "u", "before": None, "after": {"id": 1, "op": "buy", "payload": "p"}},
            event(op="u", after={"id": 1, "op": "buy", "payload": "p"}),
        ),
    ],
)
def test_events(value: Any, expected: Any) -> None:
    assert read(value) == expected
    assert read({"payload": value}) == expected
    assert read({"schema": {"type": "struct"}, "payload": value}) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"id": 1},
        {"id": 1, "op": "buy", "payload": "text"},
        {"id": 1, "op": "d", "payload": None},
        {"id": 1, "op": "buy", "source": {"page": "x"}},
        {"id": 1, "before": {}, "after": {}},
    ],
)
def test_rows_with_fields_of_those_names(value: Any) -> None:
    row = {name: value.get(name) for name in ROW.names}
    assert read(value) == event(after=row)
    assert read({"schema": {}, "payload": value}) == event(after=row)


def test_a_row_that_is_gone() -> None:
    for deleted_flag in ("true", True):
        assert read({"id": 1, "__deleted": deleted_flag}) == event(op="d", before=FIRST)
    assert read({"id": 1, "__deleted": "false"}) == event(after=FIRST)


def test_values_that_are_neither_row_nor_event_are_bad() -> None:
    values = [b"[]", b"{", b'{"id": "x"}', b'{"op": "c", "after": {"id": "x"}}', b'{"id": 1}']
    outcome = salvaged(READER, pa.array(values, pa.binary()))
    assert (
        outcome.reasons[0] == "does not match its schema: value is an array and has to be an object"
    )
    assert "after.id is a string and has to be a whole number" in outcome.reasons[3]
    assert sorted(outcome.reasons) == [0, 1, 2, 3]
