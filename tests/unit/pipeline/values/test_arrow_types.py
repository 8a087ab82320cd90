"""Types over the time of a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from minibroker.pipeline.values.arrow_types import (
    TypeConflictError,
    check_times,
    has_times,
    plain,
    united,
    widened,
)

TWINS = pa.struct([("x", pa.int32()), ("X", pa.int32())])
OLD = pa.struct([("a", pa.int32()), ("in", pa.struct([("x", pa.float32())]))])


def test_fields_are_added_everywhere_and_none_goes() -> None:
    item = pa.struct([("y", pa.string())])
    new = pa.struct([("b", pa.list_(item)), ("in", pa.struct([("z", pa.bool_())]))])
    assert united(OLD, new) == pa.struct(
        [
            ("a", pa.int32()),
            ("in", pa.struct([("x", pa.float32()), ("z", pa.bool_())])),
            ("b", pa.list_(item)),
        ]
    )


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), pa.int64()),
        ),
    ],
)
def test_numbers_widen(old: pa.DataType, new: pa.DataType, both: pa.DataType) -> None:
    assert united(old, new) == both
    assert united(pa.list_(old), pa.list_(new)).value_type == both


def test_a_changed_field_is_named() -> None:
    new = united(OLD, pa.struct([("a", pa.int64()), ("c", pa.string())]))
    assert widened(OLD, new) == ["value.a is int64 there and int32 in the table"]
    assert widened(OLD, OLD) == []


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (pa.struct([("a", pa.string())]), "value.a is string there and int32 in the table"),
        (pa.struct([("in", pa.int32())]), "value.in is int32 there and a record in the table"),
        (pa.struct([("A", pa.int32())]), "value.A differs from value.a by upper and lower case"),
        (
            pa.struct([("b", pa.int32()), ("B", pa.int32())]),
            "value.B differs from value.b by upper",
        ),
        (pa.struct([("b", pa.list_(TWINS))]), r"value.b\[\].X differs from value.b\[\].x by"),
        (pa.struct([("b", pa.map_(pa.string(), TWINS))]), "value.b{}.X differs from value.b{}.x"),
        (pa.string(), "value is string there and a record in the table"),
    ],
)
def test_a_conflict_names_the_field(new: pa.DataType, sentence: str) -> None:
    with pytest.raises(TypeConflictError, match=sentence):
        united(OLD, new)


def test_types_of_a_format_become_plain() -> None:
    of_format = pa.struct(
        [
            pa.field("s", pa.large_string(), metadata={"PARQUET:field_id": "4"}),
            pa.field("l", pa.large_list(pa.large_binary())),
        ]
    )
    assert plain(of_format) == pa.struct([("s", pa.string()), ("l", pa.list_(pa.binary()))])
    assert plain(of_format).field("l").type.value_field.name == "element"


@pytest.mark.parametrize(
    ("kind", "bad", "good"),
    [
        (pa.timestamp("us"), 253_402_300_800_000_000, 253_402_300_799_999_999),
        (pa.timestamp("us", "UTC"), -62_135_596_800_000_001, -62_135_596_800_000_000),
        (pa.date32(), 2_932_897, 2_932_896),
    ],
)
def test_times_that_no_table_keeps(kind: pa.DataType, bad: int, good: int) -> None:
    for around, wrap, place in (
        (pa.struct([("a", kind), ("b", pa.int32())]), lambda value: {"a": value}, "a"),
        (pa.list_(kind), lambda value: [value], r"\[\]"),
        (pa.map_(pa.string(), pa.struct([("x", kind)])), lambda v: [("k", {"x": v})], r"\{\}.x"),
    ):
        assert has_times(around)
        check_times(pa.array([wrap(good), None, wrap(None)], around))
        with pytest.raises(
            ValueError, match=f"has a time outside of the years 1 to 9999 in {place}"
        ):
            check_times(pa.array([wrap(good), None, wrap(bad)], around))
    assert not has_times(pa.struct([("a", pa.int64())]))
