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
        "fields": [{"name": field, "type": found} for field, found in fields],
    }


def encoded(schema: Any, *values: Any) -> pa.Array:
    parsed = fastavro.parse_schema(schema)
    found = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        found.append(out.getvalue())
    return pa.array(found, pa.binary())
