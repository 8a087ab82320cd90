"""Masks of decoded columns: the results of JSON masks where both have one, types for the rest."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.operations.mask_rules import fields_of, rules_of
from minibroker.pipeline.operations.masked_columns import ColumnMasks, MaskedRecords
from minibroker.pipeline.operations.masking import Masker
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.values.json_values import JsonReader

SECRET = b"sixteen bytes or more"
ITEM = pa.struct([("sku", pa.string()), ("count", pa.int64())])
VALUE = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("part", pa.float64()),
        ("paid", pa.bool_()),
        ("at", pa.struct([("place", pa.string()), ("zone", pa.int64())])),
        ("items", pa.list_(pa.field("element", ITEM))),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("more", pa.map_(pa.string(), pa.string())),
    ]
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
LONG = st.integers(-(2**63) + 1, 2**63 - 1)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | LONG,
        "name": st.none() | TEXT,
        "part": st.none() | st.floats(-1e6, 1e6).filter(lambda number: number != int(number)),
        "paid": st.none() | st.booleans(),
        "at": st.none() | st.fixed_dictionaries({}, optional={"place": TEXT, "zone": LONG}),
        "items": st.none()
        | st.lists(st.fixed_dictionaries({}, optional={"sku": TEXT, "count": LONG}), max_size=3),
        "tags": st.none() | st.lists(TEXT, max_size=3),
        "more": st.none() | st.dictionaries(st.sampled_from("abc"), TEXT, max_size=3),
    },
)
PLACES = ("id", "name", "part", "paid", "at", "at.place", "items", "items.sku", "tags", "tags[]")
METHODS = ("hash", "email", "mask", "last1", "first2", "empty", "null", "drop")


def operations(rules: str = "", fields: str = "") -> RowOperations:
    return NONE._replace(rules=rules_of([rules]), fields=fields_of([fields]))


def masks(rules: str = "", fields: str = "", *, skips: bool = False, keys: bool = False) -> Any:
    masker = Masker(rules_of([rules]), fields_of([fields]), SECRET)
    column_masks = ColumnMasks(masker, ["value", "key"] if keys else ["value"], skips=skips)
    return pickle.loads(pickle.dumps(column_masks))


def rows_of(values: pa.Array, **others: pa.Array) -> pa.RecordBatch:
    count = len(values)
    columns = {
        "topic": pa.array(["t"] * count),
        "partition": pa.array([0] * count),
        "offset": pa.array(range(count)),
        "value": values,
    }
    return pa.RecordBatch.from_pydict(columns | others)


def masked(rules: str, values: pa.Array, fields: str = "") -> list[Any]:
    masked_rows = masks(rules, fields).of(rows_of(values))
    result = masked_rows.rows.column("value")
    result.validate(full=True)
    assert result.type.equals(values.type)
    return list(result.to_pylist())


def _first_name(rule: tuple[str, str]) -> str:
    return rule[0].removesuffix("[]").split(".")[0]


@settings(max_examples=60)
@given(
    st.lists(OBJECTS, min_size=1, max_size=6),
    st.lists(
        st.tuples(st.sampled_from([*PLACES, "more", "more.a"]), st.sampled_from(METHODS)),
        max_size=3,
        unique_by=_first_name,
    ),
    st.lists(st.sampled_from(["id", "at.place", "items.sku", "more.b", "tags"]), unique=True),
)
def test_a_decoded_value_is_masked_as_its_json(
    values: list[dict[str, Any]], rules: list[tuple[str, str]], fields: list[str]
) -> None:
    """Masked and then decoded, or decoded and then masked: both give the same columns."""
    mask_text, reader = ", ".join(f"{place}={method}" for place, method in rules), JsonReader(VALUE)
    texts = [json.dumps(value).encode() for value in values]
    chosen = ",".join(fields)
    masker = Masker(rules_of([mask_text]), fields_of([chosen]), SECRET)
    expected = [masker.apply(None, text, None).value or b"" for text in texts]
    expected_values = pa.concat_arrays([reader.read_alone(text) for text in expected])
    decoded = pa.concat_arrays([reader.read_alone(text) for text in [b"{}", *texts]]).slice(1)
    assert masked(mask_text, decoded, chosen) == expected_values.to_pylist()


def test_results_have_the_type_of_their_column() -> None:
    values = pa.array(
        [
            {
                "small": -7,
                "price": Decimal("12.50"),
                "whole": Decimal(98765),
                "day": date(2026, 11, 28),
                "at": datetime(2026, 11, 28, tzinfo=UTC),
                "raw": b"ab",
            },
            None,
        ],
        pa.struct(
            [
                ("small", pa.int32()),
                ("price", pa.decimal128(5, 2)),
                ("whole", pa.decimal128(5, 0)),
                ("day", pa.date32()),
                ("at", pa.timestamp("us", "UTC")),
                ("raw", pa.binary()),
            ]
        ),
    )
    row, removed = masked("value=hash", values)
    assert removed is None
    assert 0 <= row["small"] < 2**31
    assert 0 <= row["price"] < 1000
    assert (row["day"], row["at"], len(row["raw"])) == (None, None, 64)
    row, _ = masked("whole=last2, raw=mask, price=fixed:1.5, small=fixed:3", values)
    assert (row["whole"], row["raw"], row["price"], row["small"]) == (65, b"xx", Decimal("1.5"), 3)


def test_keys_and_headers_that_stay_bytes_are_masked_beside_columns() -> None:
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = rows_of(
        pa.array([{"a": "x"}, {"a": "y"}]),
        key=pa.array([b"ann", None]),
        headers=pa.array([[{"key": "user", "value": b"ann"}], []], header),
    )
    masked_rows = masks("key=mask, headers.user=drop, a=mask, nothing=drop").of(rows)
    assert masked_rows.rows.schema.equals(rows.schema)
    columns = masked_rows.rows.select(["key", "headers", "value"]).to_pydict()
    assert columns == {
        "key": [b"xxx", None],
        "headers": [[], []],
        "value": [{"a": "x"}, {"a": "x"}],
    }
    assert masked_rows.place_bits == 0b0111
    decoded = masks("key=mask", keys=True).of(rows.set_column(4, "key", pa.array(["ann", None])))
    assert decoded.rows.column("key").to_pylist() == ["xxx", None]


def test_text_in_the_place_of_an_object_is_json_or_cannot_be_masked() -> None:
    values = pa.array([{"by": text} for text in ('{"email":"a@b.at"}', None, "a@b.at", "[]")])
    rows = rows_of(values)
    with pytest.raises(
        PipelineError,
        match="record t-0 offset 2 is not written: its value cannot be masked: it is no JSON; give",
    ) as failure:
        masks("by.email=mask").of(rows)
    assert "a@b" not in str(failure.value)
    result: MaskedRecords = masks("by.email=mask", skips=True).of(rows)
    assert (result.unmaskable, result.place_bits) == (1, 1)
    assert result.rows.column("offset").to_pylist() == [0, 1, 3]
    assert result.rows.column("value").to_pylist() == [
        {"by": '{"email":"x-x-xx"}'},
        {"by": None},
        {"by": "[]"},
    ]


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("id.name=hash", "rule for value.id.name, but value.id is a column of int64, which has no"),
        ("id=fixed:x", "value.id=fixed:x does not fit a column of int64"),
        ("paid=fixed:x", "value.paid=fixed:x does not fit a column of bool"),
        ("at=fixed:x", "value.at=fixed:x does not fit a column of struct"),
    ],
)
def test_a_rule_that_no_value_can_follow_is_refused_before_any_record(
    rules: str, sentence: str
) -> None:
    with pytest.raises(PipelineError, match=sentence):
        masks(rules, skips=True).check({"value": VALUE}, operations(rules))
    masks(rules).check({}, operations(rules))


@pytest.mark.parametrize(
    ("rules", "fields", "sentence"),
    [
        ("nmae=hash", "", r"--mask nmae=hash: no .* has nmae \(did you mean name"),
        ("items.skuu=mask", "", r"has items\.skuu \(did you mean items\.sku"),
        ("", "id, at.plce", r"--select at\.plce: no .* \(did you mean at\.place"),
        ("nmae?=hash, more.any=hash, name=hash, headers.x=drop", "id, note?", ""),
    ],
)
def test_a_place_that_a_column_has_not_got_ends_the_job(
    rules: str, fields: str, sentence: str
) -> None:
    """Any name may be in a map; headers are no column with a type."""
    masker_of_rules, row_operations = masks(rules, fields), operations(rules, fields)
    if not sentence:
        masker_of_rules.check({"value": VALUE}, row_operations)
        return
    with pytest.raises(JobUsageError, match=sentence):
        masker_of_rules.check({"value": VALUE}, row_operations)


def test_records_that_cannot_be_decoded_are_left_out_or_end_the_job() -> None:
    rows = rows_of(pa.array([b"a@b.at"]))
    assert masks("a=hash", skips=True).left_out(rows) == 1
    with pytest.raises(PipelineError, match="t-0 offset 0 is not written: it cannot be decoded"):
        masks("a=hash").left_out(rows)
