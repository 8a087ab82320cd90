"""Avro: pyruhvro and fastavro read the same; schemas without columns are refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.pipeline.values.avro_values import AvroReader
from tests.unit.pipeline.values.avro_samples import encoded, record

UNIQUE = "b19710fb-435d-4685-8926-4bf0ac592568"
ALL = record(
    ("a", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    ("b", ["int", "string"]),
    ("c", {"type": "fixed", "name": "F", "size": 3}),
    ("d", {"type": "map", "values": ["null", "long"]}),
    ("e", {"type": "int", "logicalType": "time-millis"}),
    ("f", {"type": "string", "logicalType": "uuid"}),
    ("g", "null"),
    ("h", {"type": "array", "items": record(("x", ["long", "int"]), name="Q")}),
    ("i", ["null", "Q"]),
    ("j", {"type": "long", "logicalType": "local-timestamp-millis"}),
    ("k", "bytes"),
)


def test_types_that_only_fastavro_reads() -> None:
    value = {
        "a": Decimal("-12.34"),
        "b": "x",
        "c": b"abc",
        "d": {"k": 1},
        "e": time(1, 2, 3),
        "f": UUID(UNIQUE),
        "g": None,
        "h": [{"x": 3}],
        "i": {"x": 4},
        "j": datetime(2026, 1, 1),  # noqa: DTZ001  a local one
        "k": b"\xff",
    }
    reader = AvroReader(json.dumps(ALL))
    (found,) = reader.read(encoded(ALL, value)).to_pylist()
    del value["g"]
    assert found == {**value, "b": '"x"', "d": [("k", 1)], "e": 3_723_000, "f": UNIQUE}


QUICK = record(
    ("a", ["null", "int"]),
    ("b", "string"),
    ("c", {"type": "enum", "name": "E", "symbols": ["X", "Y"]}),
    ("d", {"type": "map", "values": "long"}),
    ("e", {"type": "int", "logicalType": "date"}),
    ("f", ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
    ("g", {"type": "array", "items": ["null", "string"]}),
    ("h", record(("x", "double"), ("y", ["null", "boolean"]), name="Q")),
    ("i", "float"),
    ("j", {"type": "long", "logicalType": "timestamp-micros"}),
)
TIMES = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001  in UTC below
VALUES = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-(2**31), 2**31 - 1),
        "b": st.text(),
        "c": st.sampled_from("XY"),
        "d": st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1), max_size=3),
        "e": st.dates(date(1900, 1, 1)),
        "f": st.none() | TIMES.map(lambda at: at.replace(microsecond=0, tzinfo=UTC)),
        "g": st.lists(st.none() | st.text(), max_size=3),
        "h": st.fixed_dictionaries(
            {"x": st.floats(allow_nan=False), "y": st.none() | st.booleans()}
        ),
        "i": st.floats(width=32, allow_nan=False),
        "j": TIMES.map(lambda at: at.replace(tzinfo=UTC)),
    }
)


@settings(max_examples=60)
@given(st.lists(VALUES, min_size=1, max_size=5))
def test_both_libraries_read_the_same(values: list[dict[str, Any]]) -> None:
    reader = AvroReader(json.dumps(QUICK))
    assert reader._quick is not None
    data = encoded(QUICK, *values)
    quick = reader.read(data)
    alone = [reader.read_alone(value.as_py())[0].as_py() for value in data]
    assert quick.to_pylist() == alone


@settings(max_examples=200)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    for schema in (QUICK, ALL):
        reader = AvroReader(json.dumps(schema))
        try:
            reader.read(pa.array([data], pa.binary()))
        except Exception:
            with pytest.raises(ValueError, match=r"is no Avro of this schema"):
                reader.read_alone(data)


def test_named_schemas_of_references() -> None:
    other = {**record(("x", "int"), name="Other"), "namespace": "shop"}
    schema = {**record(("o", "shop.Other")), "namespace": "here"}
    reader = AvroReader(json.dumps(schema), [json.dumps(other)])
    inner = {**record(("o", other)), "namespace": "here"}
    assert reader.read(encoded(inner, {"o": {"x": 1}})).to_pylist() == [{"o": {"x": 1}}]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "it is no Avro schema"),
        ('{"type": "record"}', "it is no Avro schema"),
        ('{"type": "array", "items": "null"}', "the values of its list value have no bytes"),
        (json.dumps(record(("a", ["null", "R"]))), "its field value.a has R inside itself"),
        (json.dumps(record()), "its record value has no fields"),
        (json.dumps({"type": "array", "items": record(("n", "null"))}), "has no fields"),
    ],
)
def test_schemas_without_columns_are_refused(schema: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        AvroReader(schema)


def test_a_list_that_claims_to_have_no_end() -> None:
    reader = AvroReader(json.dumps(record(("a", {"type": "array", "items": "long"}))))
    huge = b"\x80\x80\x80\x80\x80\x80\x80\x40"
    with pytest.raises(ValueError, match="EOFError"):
        reader.read_alone(huge)
