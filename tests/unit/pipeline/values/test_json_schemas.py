"""The columns of a JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.values.json_schemas import type_of
from minibroker.pipeline.values.json_values import ANY


def found(properties: dict[str, Any], **more: Any) -> pa.DataType:
    return type_of(json.dumps({"type": "object", "properties": properties, **more}))


def test_every_kind_of_property() -> None:
    text = {"type": "string", "format": "date-time"}
    assert found(
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
    field = found({"x": schema}).field("x")
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
