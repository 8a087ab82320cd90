"""JSON: both ways of reading agree, no value passes for another, reasons name the field."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.pipeline.values.json_values import ANY, JsonReader, RowReader, table_type
from minibroker.pipeline.values.salvage import salvaged

TYPE = pa.struct(
    [
        ("a", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("l", pa.list_(pa.field("element", pa.struct([("b", pa.bool_())])))),
    ]
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "l": st.none() | st.lists(st.fixed_dictionaries({"b": st.booleans()}), max_size=3),
        "more": st.none() | st.dictionaries(st.text(), st.integers(), max_size=2),
    },
)


@settings(max_examples=60)
@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from([None, 2]))
def test_both_ways_read_the_same(values: list[dict[str, Any]], indent: int | None) -> None:
    reader = JsonReader(TYPE)
    assert reader._quick is not None
    data = [json.dumps(value, indent=indent, ensure_ascii=False).encode() for value in values]
    quick = reader.read(pa.array(data, pa.binary()))
    assert quick.to_pylist() == [reader.read_alone(value)[0].as_py() for value in data]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "is no JSON (Expecting value: line 1 column 1 (char 0))"),
        (b"null", "does not match its schema: it is null"),
        (b"[]", "does not match its schema: value is an array and has to be an object"),
        (b'{"a": 1.5}', "value.a is a number and has to be a whole number"),
        (b'{"a": "1"}', "value.a is a string and has to be a whole number"),
        (b'{"a": 9223372036854775808}', "value.a is 9223372036854775808, which is no int64"),
        (b'{"s": 1}', "value.s is a number and has to be a string"),
        (b'{"f": true}', "value.f is true or false and has to be a number"),
        (b'{"l": {}}', "value.l is an object and has to be an array"),
        (b'{"l": [{"b": 0}]}', "value.l[].b is a number and has to be true or false"),
        (b'{"a": 1}} {"i": 1,"v":{}', "is no JSON (Extra data"),
        (b'{"a": 1', "is no JSON"),
        (b'"b": 1}', "is no JSON"),
        (b"\xff", "is not UTF-8"),
        (b'{"s": "\\ud800"}', "does not match its schema"),
        (b"[" * 100_000, "is JSON that is nested too deeply"),
    ],
)
def test_a_bad_value_among_good_ones(value: bytes, reason: str) -> None:
    good = [json.dumps({"a": row}).encode() for row in range(40)]
    data = [*good[:20], value, *good[20:]]
    outcome = salvaged(JsonReader(TYPE), pa.array(data, pa.binary()))
    assert list(outcome.reasons) == [20]
    assert reason in outcome.reasons[20]
    rows = outcome.array.to_pylist()
    assert [row["a"] for row in rows[:20] + rows[21:]] == list(range(40))


def test_two_halves_are_not_one_value() -> None:
    data = [b'{"a": 1} {"a": 2}', b'{"a": 3', b"}"]
    outcome = salvaged(JsonReader(TYPE), pa.array(data, pa.binary()))
    assert (outcome.array.null_count, sorted(outcome.reasons)) == (3, [0, 1, 2])


def test_maps_any_values_times_and_bytes() -> None:
    struct_type = pa.struct(
        [
            pa.field("m", pa.map_(pa.string(), pa.int32())),
            pa.field("any", pa.string(), metadata=ANY),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field("day", pa.date32()),
            pa.field("raw", pa.binary()),
        ]
    )
    text = """{"m": {"k": 1}, "any": [1, {"x": null}], "at": "2026-11-24T18:00:00+01:00",
               "day": "2026-11-24", "raw": "/w=="}"""
    (row,) = JsonReader(struct_type).read(pa.array([text.encode()], pa.binary())).to_pylist()
    assert row == {
        "m": [("k", 1)],
        "any": '[1, {"x": null}]',
        "at": datetime(2026, 11, 24, 17, tzinfo=UTC),
        "day": date(2026, 11, 24),
        "raw": b"\xff",
    }
    with pytest.raises(ValueError, match=r"value.day is 'soon', which is no date32"):
        JsonReader(struct_type).read_alone(b'{"day": "soon"}')


def test_types_of_spark_become_those_of_json() -> None:
    of_spark = pa.struct([("a", pa.int8()), ("l", pa.list_(pa.int64()))])
    assert table_type(of_spark) == pa.struct([("a", pa.int32()), ("l", pa.list_(pa.int64()))])
    with pytest.raises(ValueError, match="expected TIMESTAMP"):
        table_type(pa.timestamp("us"))
    with pytest.raises(ValueError, match="is no type of a JSON value"):
        table_type(pa.time64("us"))


MONEY = pa.struct([("a", pa.decimal128(6, 2)), ("b", pa.list_(pa.decimal128(38, 0)))])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12.5", "12.50"),
        ('"-9999.99"', "-9999.99"),
        ("1e2", "100.00"),
        ("0.0000", "0.00"),
        ("7", "7.00"),
        ("12345.6", None),
        ("1.255", None),
        ('"1_0"', None),
        ('"NaN"', None),
        ("true", None),
        ("1e999999999", None),
    ],
)
def test_decimals_are_exact_or_refused(text: str, value: str | None) -> None:
    """Numbers and texts of numbers, as Debezium writes them (`decimal.handling.mode`)."""
    data = f'{{"a": {text}, "b": [12345678901234567890123456789012345678]}}'.encode()
    outcome = salvaged(JsonReader(MONEY), pa.array([data, b'{"a": 1}'], pa.binary()))
    if value is None:
        assert "a is" in outcome.reasons[0]
    else:
        assert outcome.array.to_pylist()[0] == {
            "a": Decimal(value),
            "b": [Decimal("1234567890" * 3 + "12345678")],
        }
        assert JsonReader(MONEY).read_alone(data)[0].as_py() == outcome.array[0].as_py()
    assert outcome.array.to_pylist()[1] == {"a": Decimal(1), "b": None}


def test_dates_times_and_decimals_are_columns() -> None:
    for kind in (pa.decimal128(10, 2), pa.date32(), pa.timestamp("us", "UTC")):
        assert table_type(pa.struct([("a", kind)])).field("a").type == kind


def test_a_value_without_any_field_is_no_row() -> None:
    """It would be a row of nulls. A field that is null is there."""
    row_type = pa.struct([("id", pa.int64()), ("name", pa.string())])
    row_reader = RowReader(row_type)
    good = [b'{"id": 1}', b'{"id": null}', b'{"name": null, "more": 1}']
    assert row_reader.read(pa.array(good)).to_pylist() == [
        {"id": 1, "name": None},
        {"id": None, "name": None},
        {"id": None, "name": None},
    ]
    for bad in (b"{}", b'{"identity": 1}'):
        with pytest.raises(ValueError, match="none of the fields"):
            row_reader.read(pa.array([*good, bad]))
        with pytest.raises(ValueError, match="match its schema: it has none of the fields id, na"):
            row_reader.read_alone(bad)
    by_python = RowReader(pa.struct([("at", pa.timestamp("us", "UTC"))]))
    with pytest.raises(ValueError, match="none of the fields at"):
        by_python.read(pa.array([b'{"when": "2026-11-24"}']))
    assert JsonReader(row_type).read(pa.array([b"{}"])).to_pylist() == [{"id": None, "name": None}]
