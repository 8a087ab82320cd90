"""Rows in JSON, and Debezium's events with such rows, as events: before, after, op.

    {"before": …, "after": …, "op": "c"}               an event
    {"schema": …, "payload": {"before": …, …}}         the same with its schema
    {"schema": …, "payload": {"id": 1, …}}             a row with its schema
    {"id": 1, …}                                       a row: `after` of an event without `op`
    {"id": 1, …, "__deleted": "true"}                  a row that is gone, of ExtractNewRecordState

A row may have fields of the same names as the parts of an event. So the value decides, one by one:
an event has an `op` and an object in `before`, `after` or `source`.

In values of Connect's JSON converter with their schema, numbers and bytes get their meaning:

    {"schema": {"type": "struct", "fields": [{"field": "at", "type": "int64",
     "name": "io.debezium.time.MicroTimestamp"}]}, "payload": {"at": 1795914123456000}}

A number that is a time stays a number for a column of numbers. A column of times gets the time.
Source: Kafka Connect JsonConverter.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from minibroker.pipeline.values.changes import (
    DELETE,
    DELETED,
    OP,
    OPERATIONS,
    ROW_AFTER,
    ROW_BEFORE,
)
from minibroker.pipeline.values.connect_types import (
    DECIMAL,
    MEANINGS,
    VARIABLE_SCALE_DECIMAL,
    WHOLE,
    Meaning,
    decimal_text,
    variable_scale_text,
)
from minibroker.pipeline.values.json_values import (
    JsonReader,
    MeantNumber,
    MeantRow,
    MeantText,
    check_row,
    converter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE: Final = "source"


def event_type(row: pa.DataType) -> pa.DataType:
    """Return the type of events with rows of a type."""
    return pa.struct([(ROW_BEFORE, row), (ROW_AFTER, row), (OP, pa.string())])


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
                ROW_BEFORE: self._row(value.get(ROW_BEFORE), ROW_BEFORE),
                ROW_AFTER: self._row(value.get(ROW_AFTER), ROW_AFTER),
                OP: value[OP],
            }
        row = self._row(value, "value")
        check_row(row, self._row_type)
        if value.get(DELETED) in ("true", True):
            return {ROW_BEFORE: row, OP: DELETE}
        return {ROW_AFTER: row}


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
    if isinstance(value.get(ROW_BEFORE), dict) or isinstance(value.get(ROW_AFTER), dict):
        return True
    return op in OPERATIONS and isinstance(value.get(_SOURCE), dict)


PAYLOAD: Final = "payload"
SCHEMA: Final = "schema"


def meant(value: Any, schema: Any) -> Any:
    """Return a value with the meanings of its schema.

    A part that the schema does not describe stays as it is. Raises ValueError for a value that is
    none of its schema.
    """
    if not isinstance(schema, dict) or value is None:
        return value
    name, kind = schema.get("name"), schema.get("type")
    if name == DECIMAL and isinstance(value, str):
        return _decimal(value, schema)
    if name == VARIABLE_SCALE_DECIMAL:
        row = MeantRow(value)
        row.number = variable_scale_text(value) or ""
        return row
    meaning = MEANINGS.get(name) if isinstance(name, str) else None
    if meaning is not None and meaning.of == WHOLE and type(value) is int:
        return _number(value, meaning)
    if kind == "struct" and isinstance(value, dict):
        fields = {field.get("field"): field for field in schema.get("fields") or ()}
        return {key: meant(item, fields.get(key)) for key, item in value.items()}
    if kind == "array" and isinstance(value, list):
        return [meant(item, schema.get("items")) for item in value]
    if kind == "map" and isinstance(value, dict):
        return {key: meant(item, schema.get("values")) for key, item in value.items()}
    return value


def _number(value: int, meaning: Meaning) -> MeantNumber:
    number = MeantNumber(value)
    number.meaning, number.moment = meaning.type, meaning.convert(value)
    return number


def _decimal(value: str, schema: dict[str, Any]) -> MeantText:
    parameters = schema.get("parameters") or {}
    text = MeantText(value)
    try:
        unscaled = base64.b64decode(value, validate=True)
        text.number = decimal_text(unscaled, int(parameters.get("scale", 0)))
    except (binascii.Error, TypeError, AttributeError) as error:
        raise ValueError(f"{value[:40]!r} is no decimal of its schema") from error
    return text
