"""One record masked and selected: JSON in, JSON out, or a reason without a part of the value."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.pipeline.operations.mask_rules import fields_of, rules_of
from minibroker.pipeline.operations.masked_rows import masked_rows
from minibroker.pipeline.operations.masking import Masker

SECRET = b"sixteen bytes or more"


def masker(rules: str = "", fields: str = "") -> Masker:
    return Masker(rules_of([rules]), fields_of([fields]), SECRET)


def value_of(rules: str, value: str, fields: str = "") -> str:
    masked_record = masker(rules, fields).apply(None, value.encode(), None)
    assert masked_record.reason is None
    assert masked_record.value is not None
    return masked_record.value.decode()


@pytest.mark.parametrize(
    ("rules", "value", "masked"),
    [
        ("a=null", '{"b": 1.50, "a": "x", "c": -0}', '{"b":1.50,"a":null,"c":-0}'),
        ("a.b=empty", '{"a": {"b": "x", "c": "y"}}', '{"a":{"b":"","c":"y"}}'),
        (
            "a.b=empty",
            '{"a": [{"b": 1}, {"c": 1}, [{"b": 2}]]}',
            '{"a":[{"b":0},{"c":1},[{"b":0}]]}',
        ),
        ("a.b=empty", '[{"a": {"b": "x"}}]', '[{"a":{"b":""}}]'),
        ("a.b=empty", '{"a": null, "c": [{"a": [null, []]}]}', '{"a":null,"c":[{"a":[null,[]]}]}'),
        ("a[]=null", '{"a": [1, 2]}', '{"a":[null,null]}'),
        ("a[]=drop", '{"a": [1, 2]}', '{"a":[]}'),
        ("a=drop", '{"a": [1, 2], "b": 1}', '{"b":1}'),
        ("a=null", '{"a": 1, "a": "twice"}', '{"a":null}'),
        ("a=null", '{"ü": "\\ud83d\\ude00", "a": 1}', '{"ü":"😀","a":null}'),
        ("a=null", '{"b": "\\ud800"}', '{"b":"\\ud800"}'),
    ],
)
def test_fields_are_replaced_and_the_rest_stays(rules: str, value: str, masked: str) -> None:
    assert value_of(rules, value) == masked


def test_fields_are_selected_behind_the_masks() -> None:
    value = '{"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}, 3], "g": 4, "h": "no object"}'
    assert value_of("", value, "d.e, a.c, h.i") == '{"a":{"c":2},"d":[{"e":1}]}'
    assert value_of("a=empty, g=null", value, "g, a") == '{"a":{},"g":null}'


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xff{}", "its value cannot be masked: it is not UTF-8"),
        (b"secret", "its value cannot be masked: it is no JSON"),
        (b'{"a": NaN}', "its value cannot be masked: it is no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "its value cannot be masked: it is no JSON"),
        (b'"secret"', "its value cannot be masked: it is no JSON object"),
        (b'[{"a": 1}, "secret"]', "its value cannot be masked: it is no JSON object"),
        (b"[" * 100_000, "its value cannot be masked: its objects are too deep within each other"),
    ],
)
def test_a_value_that_cannot_be_masked_has_a_reason_and_nothing_else(
    value: bytes, reason: str
) -> None:
    masked_record = masker("a=hash").apply(b"key", value, [("h", b"1")])
    assert masked_record == (None, None, None, 0, reason)


@pytest.mark.parametrize(
    "plain", ['"a@b.c"', "5", "1.50", "true", '[{"b": "x"}, "a@b.c"]', '[["x"]]']
)
def test_a_rule_below_a_plain_value_cannot_be_applied(plain: str) -> None:
    """A text in the place of an object may have in it what the rule is to hide."""
    for rules, value in (
        ("a.b=hash", f'{{"a": {plain}}}'),
        ("c.a.b=drop", f'{{"c": {{"a": {plain}}}}}'),
    ):
        masked_record = masker(rules).apply(b"key", value.encode(), None)
        path = rules.partition(".b")[0]
        reason = (
            f"its value cannot be masked: '{path}' is neither an object nor an array of objects"
        )
        assert masked_record == (None, None, None, 0, reason)


def test_keys_and_headers() -> None:
    masked_record = masker("key.id=null, headers.a=fixed:x, headers.b=drop").apply(
        b'{"id": 1}', b"not read", [("a", b"1"), ("b", b"2"), ("c", None), ("a", None)]
    )
    assert masked_record.key == b'{"id":null}'
    assert masked_record.value == b"not read"
    assert masked_record.headers == [("a", b"x"), ("c", None), ("a", None)]
    assert masker("headers=drop").apply(None, None, [("a", b"1")]).headers == []
    assert masker("headers=drop").apply(None, None, None).headers is None
    assert masker("headers.a=last4").apply(None, None, [("a", b"\xff")]).reason == (
        "header 'a' cannot be masked: it is not UTF-8, which last needs"
    )


def test_a_tombstone_stays_one() -> None:
    assert masker("a=hash, value=hash"[:6]).apply(b"k", None, None) == (b"k", None, None, 0, None)


def test_the_bits_of_met_places_are_returned() -> None:
    masked_record = masker("a=null, b.c=null, key=hash", "a, d").apply(
        b"k", b'{"a": null, "d": 1}', None
    )
    assert masked_record.place_bits == 0b11101


def test_it_reads_the_columns_of_its_rules() -> None:
    assert masker("key=hash").columns == ["key"]
    assert masker("headers.a=drop", "a").columns == ["headers", "value"]


def test_the_tasks_get_it_by_pickle() -> None:
    copy = pickle.loads(pickle.dumps(masker("a=hash")))
    assert copy.apply(None, b'{"a": "x"}', None) == masker("a=hash").apply(None, b'{"a":"x"}', None)


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "secret"]) | st.text(), inner, max_size=4)
    ),
)


def without_secrets(plain: Any) -> Any:
    if isinstance(plain, list):
        return [without_secrets(item) for item in plain]
    if isinstance(plain, dict):
        return {name: without_secrets(plain[name]) for name in plain if name != "secret"}
    return plain


def has_plain(tree: Any) -> bool:
    """Return whether a value is no object, or an array with such a value in it."""
    if isinstance(tree, list):
        return any(map(has_plain, tree))
    return not isinstance(tree, dict) and tree is not None


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b"]), trees))
def test_every_other_field_stays_as_it_was(plain: dict[str, Any]) -> None:
    """A dropped field is gone at its place, in each array there; all else is the same."""
    masked_record = masker("a.secret=drop").apply(None, json.dumps(plain).encode(), None)
    if has_plain(plain.get("a")):
        assert masked_record.value is None
        return
    assert masked_record.reason is None
    got = json.loads(masked_record.value or b"")
    assert {name: got[name] for name in got if name != "a"} == {
        name: plain[name] for name in plain if name != "a"
    }
    inner = got.get("a")
    for item in inner if isinstance(inner, list) else [inner]:
        assert not isinstance(item, dict) or "secret" not in item


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_the_columns_come_back_with_places_and_reasons() -> None:
    masker = Masker(rules_of(["a=mask, headers.user=null"]), (), b"")
    headers = pa.array([[{"key": "user", "value": b"ann"}], None], HEADERS)
    values = pa.array([b'{"a":"x"}', b"ann"])
    masked_columns = masked_rows(masker, ["headers", "value"], [headers, values])
    assert masked_columns.to_pylist() == [
        {
            "headers": [{"key": "user", "value": None}],
            "value": b'{"a":"x"}',
            "found": 3,
            "reason": None,
        },
        {
            "headers": None,
            "value": None,
            "found": 0,
            "reason": "its value cannot be masked: it is no JSON",
        },
    ]
