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
    (row,) = reader.read(encoded(ALL, value)).to_pylist()
    del value["g"]
    assert row == {**value, "b": '"x"', "d": [("k", 1)], "e": 3_723_000, "f": UNIQUE}


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


# Unions that tell their type; times and decimals that Connect and Debezium name.


A = record(("x", "int"), ("raw", "bytes"), name="A")
B = record(("x", "int"), name="B")
CHOICE = {
    **record(
        ("u", ["null", A, B, "string", "bytes", {"type": "map", "values": "B"}, "double"]),
        ("o", ["null", "A"]),
        ("v", [{"type": "enum", "name": "E", "symbols": ["P"]}, "long", "B"]),
        ("w", ["string", {"type": "long", "logicalType": "timestamp-millis"}]),
    ),
    "namespace": "shop",
}


def test_a_union_of_several_types_tells_which_one_a_value_has() -> None:
    of_a = {"x": 1, "raw": b"\xff"}
    rest = {"o": of_a, "v": "P", "w": datetime(2026, 1, 2, tzinfo=UTC)}
    values = [
        {**rest, "u": ("shop.A", of_a), "w": "t"},
        {**rest, "u": ("shop.B", {"x": 1}), "v": 5},
        {**rest, "u": b"\xff", "v": ("shop.B", {"x": 2})},
        *({**rest, "u": union_value} for union_value in ("t", {"k": {"x": 3}}, float("nan"), None)),
    ]
    reader = AvroReader(json.dumps(CHOICE))
    union_value = reader.read(encoded(CHOICE, *values)).to_pylist()
    assert [None if row["u"] is None else json.loads(row["u"]) for row in union_value] == [
        {"@type": "shop.A", "x": 1, "raw": "/w=="},
        {"@type": "shop.B", "x": 1},
        {"@type": "bytes", "value": "/w=="},
        "t",
        {"k": {"x": 3}},
        {"@type": "double", "value": "nan"},
        None,
    ]
    assert {row["o"]["raw"] for row in union_value} == {b"\xff"}
    assert [row["v"] for row in union_value[:3]] == ['"P"', "5", '{"@type": "shop.B", "x": 2}']
    assert [json.loads(row["w"]) for row in union_value[:2]] == [
        "t",
        {"@type": "timestamp-millis", "value": "2026-01-02T00:00:00Z"},
    ]


def test_a_topic_of_several_types() -> None:
    reader = AvroReader('["shop.A", "shop.B"]', [json.dumps({**A, "namespace": "shop"}), B_OF_SHOP])
    both = [{**A, "namespace": "shop"}, json.loads(B_OF_SHOP)]
    rows = reader.read(encoded(both, ("shop.B", {"x": 1}))).to_pylist()
    assert rows == ['{"@type": "shop.B", "x": 1}']


B_OF_SHOP = json.dumps({**B, "namespace": "shop"})


def meant(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "connect.name": name}


MEANT = record(
    ("a", meant("int", "io.debezium.time.Date")),
    ("b", ["null", meant("long", "io.debezium.time.Timestamp")]),
    ("c", {"type": "array", "items": meant("long", "io.debezium.time.MicroTimestamp")}),
    ("d", meant("string", "io.debezium.time.ZonedTimestamp")),
    ("e", meant("long", "io.debezium.time.MicroTime")),
)
NANOS = record(("a", meant("long", "io.debezium.time.NanoTimestamp")))
AT = datetime(2026, 11, 29, 1, 2, 3, 456_000)  # noqa: DTZ001  Debezium's have no zone
AT_MS = 1_795_914_123_456


def test_times_of_debezium() -> None:
    value = {
        "a": 20_000,
        "b": AT_MS,
        "c": [AT_MS * 1000],
        "d": "2026-11-29T01:02:03.456+01:00",
        "e": 5,
    }
    reader = AvroReader(json.dumps(MEANT))
    assert reader._quick is not None
    data = encoded(MEANT, value, {**value, "b": None, "d": "2026-11-29T01:02:03.4567891Z"})
    rows = [reader.read_alone(data[0].as_py()), reader.read_alone(data[1].as_py())]
    assert reader.read(data.slice(0, 1)).to_pylist() == rows[0].to_pylist()
    assert rows[0].to_pylist() == [
        {"a": date(2024, 10, 4), "b": AT, "c": [AT], "d": AT.replace(hour=0, tzinfo=UTC), "e": 5}
    ]
    assert rows[1].to_pylist()[0]["b"] is None
    assert rows[1].to_pylist()[0]["d"] == AT.replace(tzinfo=UTC, microsecond=456_789)
    plain = AvroReader(json.dumps(MEANT), as_numbers=True)
    assert plain.read(data).to_pylist()[0] == value


def test_nanoseconds_are_cut_to_microseconds() -> None:
    reader = AvroReader(json.dumps(NANOS))
    rows = reader.read(encoded(NANOS, {"a": -1})).to_pylist()
    assert rows == [{"a": datetime(1969, 12, 31, 23, 59, 59, 999_999)}]  # noqa: DTZ001  as above


VARIABLE = {
    **record(("scale", "int"), ("value", "bytes"), name="VariableScaleDecimal"),
    "namespace": "io.debezium.data",
}
DECIMALS = record(
    ("a", ["null", VARIABLE]),
    ("b", "io.debezium.data.VariableScaleDecimal"),
    ("c", {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}),
    ("d", {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 127}),
)


def test_decimals_that_no_column_of_decimals_holds_are_text() -> None:
    raw = {"scale": 2, "value": b"\xff"}
    value = {"a": raw, "b": {"scale": -2, "value": b"\x05"}, "c": b"\x01" * 20, "d": b"\x00"}
    plain = json.loads(json.dumps(DECIMALS).replace('"logicalType": "decimal", ', ""))
    reader = AvroReader(json.dumps(DECIMALS))
    (row,) = reader.read(encoded(plain, value)).to_pylist()
    unscaled = str(int.from_bytes(b"\x01" * 20))
    assert row == {
        "a": "-0.01",
        "b": "500",
        "c": f"{unscaled[:-2]}.{unscaled[-2:]}",
        "d": "0." + "0" * 127,
    }
    assert AvroReader(json.dumps(DECIMALS), as_numbers=True).type.field("c").type == pa.binary()


def test_a_name_that_is_no_text_means_nothing() -> None:
    odd = record(("a", {"type": "long", "connect.name": ["x"]}))
    assert AvroReader(json.dumps(odd)).type == pa.struct([("a", pa.int64())])
