"""The columns of a JSON Schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.values.json_schemas import type_of
from minibroker.pipeline.values.json_values import ANY, JsonReader


def struct_of(properties: dict[str, Any], **more: Any) -> pa.DataType:
    return type_of(json.dumps({"type": "object", "properties": properties, **more}))


def test_every_kind_of_property() -> None:
    text = {"type": "string", "format": "date-time"}
    assert struct_of(
        {
            "id": {"type": "integer"},
            "amount": {"type": ["number", "null"]},
            "at": text,
            "is": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "by": {"type": "object", "additionalProperties": {"type": "integer"}},
            "who": {"$ref": "#/$defs/who"},
            "kind": {"enum": ["a", "b"]},
        },
        **{"$defs": {"who": {"properties": {"name": {"type": "string"}}}}},
    ) == pa.struct(
        [
            ("id", pa.int64()),
            ("amount", pa.float64()),
            ("at", pa.string()),
            ("is", pa.bool_()),
            ("tags", pa.list_(pa.field("element", pa.string()))),
            ("by", pa.map_(pa.string(), pa.int64())),
            ("who", pa.struct([("name", pa.string())])),
            ("kind", pa.string()),
        ]
    )


@pytest.mark.parametrize(
    "schema", [{}, True, {"type": ["string", "integer"]}, {"type": "array"}, {"type": "object"}]
)
def test_anything_else_is_text(schema: Any) -> None:
    field = struct_of({"x": schema}).field("x")
    assert (field.type, field.metadata) == (pa.string(), ANY)


def test_a_reference_to_another_schema() -> None:
    other = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    schema = json.dumps({"properties": {"o": {"$ref": "other.json"}}})
    assert type_of(schema, {"other.json": other}) == pa.struct(
        [("o", pa.struct([("n", pa.int64())]))]
    )


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "it is no JSON"),
        ('{"type": "string"}', "it is no schema of an object with properties"),
        ('{"properties": {"a": {"$ref": "#/x"}}}', "it refers to #/x, which is not there"),
        ('{"properties": {"a": {"$ref": "#"}}}', "too deep for a table, or inside itself"),
    ],
)
def test_schemas_without_columns_are_refused(schema: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        type_of(schema)


DECIMAL_NAME = "org.apache.kafka.connect.data.Decimal"


def decimal(kind: str, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "title": DECIMAL_NAME, "connect.parameters": parameters}


CONNECT = {
    "at": {"type": "integer", "title": "io.debezium.time.Timestamp", "connect.type": "int64"},
    "day": {"oneOf": [{"type": "null"}, {"type": "integer", "title": "io.debezium.time.Date"}]},
    "zoned": {"type": "string", "title": "io.debezium.time.ZonedTimestamp"},
    "small": decimal("string", **{"scale": "2", "connect.decimal.precision": "5"}),
    "number": decimal("number", **{"scale": "2", "connect.decimal.precision": "5"}),
    "unknown": decimal("number", scale="2"),
    "variable": {"type": "object", "title": "io.debezium.data.VariableScaleDecimal"},
}
VALUE = (
    b'{"at": 1795914123456, "day": null, "zoned": "2026-11-29T01:02:03Z", "small": "MDk=", '
    b'"number": 123.45, "unknown": 1.50, "variable": {"scale": 1, "value": "Dw=="}}'
)


def test_types_that_connect_names_in_titles() -> None:
    schema = json.dumps({"type": "object", "properties": CONNECT})
    value = JsonReader(type_of(schema)).read_alone(VALUE).to_pylist()[0]
    assert value == {
        "at": datetime(2026, 11, 29, 1, 2, 3, 456_000),  # noqa: DTZ001  Debezium's have no zone
        "day": None,
        "zoned": datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC),
        "small": Decimal("123.45"),
        "number": Decimal("123.45"),
        "unknown": "1.50",
        "variable": "1.5",
    }
    plain = type_of(schema, as_numbers=True)
    assert (plain.field("at").type, plain.field("number").type) == (pa.int64(), pa.float64())
    for text in (VALUE.replace(b"123.45", b"1234.5"), VALUE.replace(b'"MDk="', b'"?"')):
        with pytest.raises(ValueError, match="does not match its schema"):
            JsonReader(type_of(schema)).read_alone(text)
    wrong = {"properties": {"a": decimal("number", scale="x")}}
    with pytest.raises(ValueError, match="its field a is no decimal of Connect"):
        type_of(json.dumps(wrong))
