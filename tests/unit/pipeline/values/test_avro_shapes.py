"""Unions that tell their type; times and decimals that Connect and Debezium name."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa

from minibroker.pipeline.values.avro_values import AvroReader
from tests.unit.pipeline.values.avro_samples import encoded, record

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
        *({**rest, "u": found} for found in ("t", {"k": {"x": 3}}, float("nan"), None)),
    ]
    reader = AvroReader(json.dumps(CHOICE))
    found = reader.read(encoded(CHOICE, *values)).to_pylist()
    assert [None if row["u"] is None else json.loads(row["u"]) for row in found] == [
        {"@type": "shop.A", "x": 1, "raw": "/w=="},
        {"@type": "shop.B", "x": 1},
        {"@type": "bytes", "value": "/w=="},
        "t",
        {"k": {"x": 3}},
        {"@type": "double", "value": "nan"},
        None,
    ]
    assert {row["o"]["raw"] for row in found} == {b"\xff"}
    assert [row["v"] for row in found[:3]] == ['"P"', "5", '{"@type": "shop.B", "x": 2}']
    assert [json.loads(row["w"]) for row in found[:2]] == [
        "t",
        {"@type": "timestamp-millis", "value": "2026-01-02T00:00:00Z"},
    ]


def test_a_topic_of_several_types() -> None:
    reader = AvroReader('["shop.A", "shop.B"]', [json.dumps({**A, "namespace": "shop"}), B_OF_SHOP])
    both = [{**A, "namespace": "shop"}, json.loads(B_OF_SHOP)]
    found = reader.read(encoded(both, ("shop.B", {"x": 1}))).to_pylist()
    assert found == ['{"@type": "shop.B", "x": 1}']


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
        {
            "a": date(2024, 10, 4),
            "b": AT,
            "c": [AT],
            "d": AT.replace(hour=0, tzinfo=UTC),
            "e": 5,
        }
    ]
    assert rows[1].to_pylist()[0]["b"] is None
    assert rows[1].to_pylist()[0]["d"] == AT.replace(tzinfo=UTC, microsecond=456_789)
    plain = AvroReader(json.dumps(MEANT), as_numbers=True)
    assert plain.read(data).to_pylist()[0] == value


def test_nanoseconds_are_cut_to_microseconds() -> None:
    reader = AvroReader(json.dumps(NANOS))
    found = reader.read(encoded(NANOS, {"a": -1})).to_pylist()
    assert found == [{"a": datetime(1969, 12, 31, 23, 59, 59, 999_999)}]  # noqa: DTZ001  as above


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
    (found,) = reader.read(encoded(plain, value)).to_pylist()
    unscaled = str(int.from_bytes(b"\x01" * 20))
    assert found == {
        "a": "-0.01",
        "b": "500",
        "c": f"{unscaled[:-2]}.{unscaled[-2:]}",
        "d": "0." + "0" * 127,
    }
    assert AvroReader(json.dumps(DECIMALS), as_numbers=True).type.field("c").type == pa.binary()


def test_a_name_that_is_no_text_means_nothing() -> None:
    odd = record(("a", {"type": "long", "connect.name": ["x"]}))
    assert AvroReader(json.dumps(odd)).type == pa.struct([("a", pa.int64())])
