"""Rows in JSON, and Debezium's events with such rows, as events: before, after, op.

    {"before": …, "after": …, "op": "c"}               an event
    {"schema": …, "payload": {"before": …, …}}         the same with its schema
    {"schema": …, "payload": {"id": 1, …}}             a row with its schema
    {"id": 1, …}                                       a row: `after` of an event without `op`
    {"id": 1, …, "__deleted": "true"}                  a row that is gone, of ExtractNewRecordState

A row may have fields of the same names as the parts of an event. So the value decides, one by one:
an event has an `op` and an object in `before`, `after` or `source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from minibroker.pipeline.values.changes import AFTER, BEFORE, DELETE, DELETED, OP, OPERATIONS
from minibroker.pipeline.values.connect_json import PAYLOAD, SCHEMA, meant
from minibroker.pipeline.values.json_values import JsonReader, check_row, converter

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE: Final = "source"


def event_type(row: pa.DataType) -> pa.DataType:
    """Return the type of events with rows of a type."""
    return pa.struct([(BEFORE, row), (AFTER, row), (OP, pa.string())])


class EventReader(JsonReader):
    """Reads rows of one type, and events with such rows."""

    def __init__(self, row: pa.DataType) -> None:
        super().__init__(event_type(row))
        self._quick = None  # a value's parts decide how it is read
        self._row = converter(row)
        self._row_type = row

    def _converted(self, value: Any) -> Any:
        value = _without_schema(value)
        if not isinstance(value, dict):
            return self._row(value, "value")
        if _is_event(value):
            return {
                BEFORE: self._row(value.get(BEFORE), BEFORE),
                AFTER: self._row(value.get(AFTER), AFTER),
                OP: value[OP],
            }
        row = self._row(value, "value")
        check_row(row, self._row_type)
        if value.get(DELETED) in ("true", True):
            return {BEFORE: row, OP: DELETE}
        return {AFTER: row}


def _without_schema(value: Any) -> Any:
    """Return the payload of a value that has its schema beside it, and any other value as it is.

    Raises ValueError: the payload is none of its schema.
    """
    if not isinstance(value, dict) or not isinstance(payload := value.get(PAYLOAD), dict):
        return value
    if value.keys() == {SCHEMA, PAYLOAD}:
        return meant(payload, value[SCHEMA])
    return payload if value.keys() == {PAYLOAD} and _is_event(payload) else value


def _is_event(value: Mapping[str, Any]) -> bool:
    op = value.get(OP)
    if not isinstance(op, str):
        return False
    if isinstance(value.get(BEFORE), dict) or isinstance(value.get(AFTER), dict):
        return True
    return op in OPERATIONS and isinstance(value.get(_SOURCE), dict)
