"""Values of Connect's JSON converter with their schema: numbers and bytes get their meaning.

    {"schema": {"type": "struct", "fields": [{"field": "at", "type": "int64",
     "name": "io.debezium.time.MicroTimestamp"}]}, "payload": {"at": 1795914123456000}}

A number that is a time stays a number for a column of numbers. A column of times gets the time.
Source: Kafka Connect JsonConverter.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from minibroker.pipeline.values.connect_types import (
    DECIMAL,
    MEANINGS,
    VARIABLE_SCALE_DECIMAL,
    WHOLE,
    Meaning,
    decimal_text,
    variable_scale_text,
)
from minibroker.pipeline.values.json_values import MeantNumber, MeantRow, MeantText

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
