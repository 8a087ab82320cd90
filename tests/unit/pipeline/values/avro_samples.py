"""Schemas of Avro and values that fastavro has encoded."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": field_type} for field, field_type in fields],
    }


def encoded(schema: Any, *values: Any) -> pa.Array:
    avro_schema = fastavro.parse_schema(schema)
    rows = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, avro_schema, value)
        rows.append(out.getvalue())
    return pa.array(rows, pa.binary())
