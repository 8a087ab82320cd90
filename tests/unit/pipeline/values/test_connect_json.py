"""Values of Connect's JSON with their schema: the column decides which meaning it gets."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.pipeline.values.connect_types import decimal_of, decimal_text, variable_scale_text
from minibroker.pipeline.values.json_events import EventReader
from minibroker.pipeline.values.salvage import salvaged

DEBEZIUM = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."
FIELDS = [
    {"field": "at", "type": "int64", "name": f"{DEBEZIUM}MicroTimestamp"},
    {"field": "ms", "type": "int64", "name": f"{CONNECT}Timestamp"},
    {"field": "day", "type": "int32", "name": f"{DEBEZIUM}Date"},
    {"field": "n", "type": "bytes", "name": f"{CONNECT}Decimal", "parameters": {"scale": "2"}},
    {"field": "v", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    {"field": "many", "type": "array", "items": {"type": "int32", "name": f"{DEBEZIUM}Date"}},
    {
        "field": "named",
        "type": "map",
        "keys": {"type": "string"},
        "values": {"type": "struct", "fields": [{"field": "d", "type": "int32"}]},
    },
]
ROW = {
    "at": 1_795_914_123_456_000,
    "ms": 1_795_914_123_456,
    "day": 20_000,
    "n": base64.b64encode(b"\x30\x39").decode(),
    "v": {"scale": 1, "value": base64.b64encode(b"\x0f").decode()},
    "many": [1],
    "named": {"k": {"d": 5}},
}
MOMENT = datetime(2026, 11, 29, 1, 2, 3, 456_000, tzinfo=UTC)


def read(row: pa.DataType, value: Any, fields: Any = FIELDS) -> Any:
    schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}]}
    text = json.dumps({"schema": schema, "payload": {"op": "c", "after": value}}).encode()
    outcome = salvaged(EventReader(row), pa.array([text], pa.binary()))
    return outcome.reasons.get(0) or outcome.array.to_pylist()[0]["after"]


def test_columns_of_times_and_decimals() -> None:
    instant = pa.timestamp("us", "UTC")
    row = pa.struct(
        [
            ("at", instant),
            ("ms", instant),
            ("day", pa.date32()),
            ("n", pa.decimal128(10, 2)),
            ("v", pa.decimal128(10, 3)),
            ("many", pa.list_(pa.date32())),
        ]
    )
    assert read(row, ROW) == {
        "at": MOMENT,
        "ms": MOMENT,
        "day": date(2024, 10, 4),
        "n": Decimal("123.45"),
        "v": Decimal("1.5"),
        "many": [date(1970, 1, 2)],
    }


def test_columns_of_what_the_json_says() -> None:
    map_type = pa.map_(pa.string(), pa.struct([("d", pa.int32())]))
    plain = pa.struct(
        [("at", pa.int64()), ("day", pa.int32()), ("n", pa.binary()), ("named", map_type)]
    )
    row = read(plain, ROW)
    assert row == {"at": ROW["at"], "day": 20_000, "n": b"\x30\x39", "named": [("k", {"d": 5})]}
    texts = pa.struct([("n", pa.string()), ("v", pa.string())])
    assert read(texts, ROW) == {"n": "123.45", "v": "1.5"}
    assert read(pa.struct([("n", pa.float64())]), ROW) == {"n": 123.45}


@pytest.mark.parametrize(
    ("column", "kind", "change", "sentence"),
    [
        ("day", pa.timestamp("us", "UTC"), {}, "after.day is a number and has to be a string"),
        ("n", pa.decimal128(4, 2), {}, "which is no decimal128"),
        ("n", pa.decimal128(4, 2), {"n": "?"}, "is no decimal of its schema"),
        ("v", pa.string(), {"v": {"scale": 1}}, "is no VariableScaleDecimal"),
    ],
)
def test_values_that_do_not_fit(column: str, kind: Any, change: Any, sentence: str) -> None:
    assert sentence in read(pa.struct([(column, kind)]), {**ROW, **change})


def test_a_schema_that_is_none_changes_nothing() -> None:
    row = pa.struct([("day", pa.int32())])
    for fields in (None, [{"field": "day", "name": ["x"]}]):
        assert read(row, ROW, fields) == {"day": 20_000}


# Types that Connect and Debezium name: decimals as text, and the columns of decimals.


@pytest.mark.parametrize(
    ("number", "scale", "text"),
    [
        (0, 0, "0"),
        (0, 2, "0.00"),
        (0, -3, "0"),
        (-5, 3, "-0.005"),
        (12345, 2, "123.45"),
        (-7, -2, "-700"),
    ],
)
def test_text_of_a_decimal(number: int, scale: int, text: str) -> None:
    assert decimal_text(number.to_bytes(4, signed=True), scale) == text


@given(st.integers(-(10**40), 10**40), st.integers(0, 60))
def test_a_text_is_the_number(number: int, scale: int) -> None:
    text = decimal_text(number.to_bytes(20, signed=True), scale)
    assert int(text.replace(".", "")) == number
    assert len(text.partition(".")[2]) == scale


def test_a_decimal_that_claims_too_many_digits() -> None:
    with pytest.raises(ValueError, match="a decimal has scale -2147483648"):
        decimal_text(b"\x01", -(2**31))


def test_a_decimal_with_its_own_scale() -> None:
    assert variable_scale_text(None) is None
    assert variable_scale_text({"scale": 1, "value": b"\x0f"}) == "1.5"
    assert variable_scale_text({"scale": 1, "value": base64.b64encode(b"\x0f").decode()}) == "1.5"
    for value in ({"scale": 1}, {"scale": "1", "value": b"x"}, 5):
        with pytest.raises(ValueError, match="is no VariableScaleDecimal"):
            variable_scale_text(value)


def test_columns_of_decimals() -> None:
    assert decimal_of(10, 2) == pa.decimal128(10, 2)
    assert decimal_of(None, 2) == decimal_of(39, 2) == decimal_of(5, 6) == decimal_of(5, -1)
    assert decimal_of(5, -1) == pa.string()
