"""Decoding of batches: rows, dead letters and unseen schemas; the way of the decodings as text."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa

from minibroker.pipeline.tables.data_files import RECORD
from minibroker.pipeline.values.decoding import (
    AVRO,
    JSON,
    ColumnDecoding,
    SchemaKey,
    ValueSchema,
    decoded,
    from_json,
    of_type,
    reader_of,
    to_json,
)
from minibroker.pipeline.values.wire_format import header_of

TEXT = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
SCHEMA = ValueSchema(JSON, TEXT)
TYPE = pa.struct([("a", pa.int64()), ("b", pa.string())])


def batch(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "offset": list(range(len(values))),
            "key": pa.array([b"k"] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def decoding(**changes: Any) -> ColumnDecoding:
    schemas = {SchemaKey(1): SCHEMA, SchemaKey(2): SCHEMA._replace(reason="it does not fit")}
    return ColumnDecoding("value", schemas, None, TYPE)._replace(**changes)


def value(number: int, id_: int = 1) -> bytes:
    return header_of(id_) + json.dumps({"a": number}).encode()


def test_rows_keep_their_order_and_dead_letters_have_reasons() -> None:
    given = batch(value(0), None, b"x", value(3, 2), value(4), header_of(1) + b"{", value(6))
    found = decoded(given, [decoding(keeps_bytes=True)])
    assert found.rows.to_pylist() == [
        {"offset": 0, "key": b"k", "value": {"a": 0, "b": None}, "valueBytes": value(0)},
        {"offset": 1, "key": b"k", "value": None, "valueBytes": None},
        {"offset": 4, "key": b"k", "value": {"a": 4, "b": None}, "valueBytes": value(4)},
        {"offset": 6, "key": b"k", "value": {"a": 6, "b": None}, "valueBytes": value(6)},
    ]
    assert found.dead is not None
    assert found.dead["offset"].to_pylist() == [2, 3, 5]
    assert found.dead["value"].to_pylist() == [b"x", value(3, 2), header_of(1) + b"{"]
    first, second, third = found.dead["reason"].to_pylist()
    assert first == "its value does not begin with the byte 0 and the id of a schema"
    assert second == "its value has schema 2, but it does not fit"
    assert third.startswith("its value is no JSON (")
    assert third.endswith(", schema 1")


def test_unseen_schemas_are_told_once_each() -> None:
    found = decoded(batch(value(0, 8), value(1), value(2, 9), value(3, 8)), [decoding()])
    assert sorted(found.unseen) == [("value", SchemaKey(8)), ("value", SchemaKey(9))]
    assert found.dead is None


def test_the_schema_is_in_a_header() -> None:
    guid = "89791762-2336-4186-9674-299b90a802e2"
    name = {"key": "__value_schema_id", "value": b"\x01" + uuid.UUID(guid).bytes}
    given = batch(b'{"a": 1}', value(2), b'{"a": 3}').append_column(
        "headers", pa.array([[name], None, [name]], RECORD.field("headers").type)
    )
    found = decoded(given, [decoding()])
    assert found.unseen == [("value", SchemaKey(guid))]
    known = decoding(schemas={SchemaKey(1): SCHEMA, SchemaKey(guid): SCHEMA}, keeps_bytes=True)
    rows = decoded(given, [known]).rows.to_pylist()
    assert [row["value"]["a"] for row in rows] == [1, 2, 3]
    assert [row["valueBytes"] for row in rows] == [b'{"a": 1}', value(2), b'{"a": 3}']
    assert from_json(to_json([known])) == [known]


def test_two_columns_and_one_dead_letter_for_a_record() -> None:
    key = ColumnDecoding("key", {}, of_type(pa.struct([("a", pa.int64())])), TYPE)
    found = decoded(batch(b"x"), [key, decoding()])
    assert (found.rows.num_rows, found.dead["reason"].to_pylist()) == (
        0,
        ["its key is no JSON (Expecting value: line 1 column 1 (char 0))"],
    )


def test_only_tombstones_and_nothing() -> None:
    found = decoded(batch(None, None), [decoding(schemas={}, type=pa.null())])
    assert found.rows["value"].to_pylist() == [None, None]
    assert decoded(batch(), [decoding()]).rows.num_rows == 0


def test_decodings_travel_as_text() -> None:
    named = ValueSchema(AVRO, '"int"', (("Other", '"string"'),), (0, 3), "why", as_numbers=True)
    given = [
        decoding(schemas={SchemaKey(5, (0, 3)): named}, keeps_bytes=True, has_bounds=True),
        ColumnDecoding("key", {}, of_type(TYPE), TYPE),
    ]
    assert from_json(to_json(given)) == given
    assert reader_of(given[1].plain or SCHEMA).type == TYPE
