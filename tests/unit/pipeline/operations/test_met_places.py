"""A place that no record has ends a job, unless it may be missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.operations.mask_rules import fields_of, rules_of
from minibroker.pipeline.operations.met_places import MetPlaces, check, places_of
from minibroker.pipeline.operations.rows import NONE, RowOperations

ORDER = {"id": 1, "customer": {"email": "ann@example.com"}, "items": [{"sku": "a"}]}
HEADERS: list[tuple[str, bytes | None]] = [("user", b"ann"), ("trace", None)]
SECRET = b"sixteen bytes or more"


def operations(mask: str = "", select: str = "") -> RowOperations:
    return NONE._replace(rules=rules_of([mask]), fields=fields_of([select]))


def met(row_operations: RowOperations, *values: Any) -> MetPlaces:
    places = MetPlaces(row_operations, SECRET)
    for value in values:
        places.take(b'{"id": 7}', json.dumps(value).encode(), HEADERS)
    return places


def refuse(row_operations: RowOperations, *values: Any) -> None:
    places = met(row_operations, *values)
    check(row_operations, places.place_bits, places.names)


def test_places_that_are_there_pass() -> None:
    """One record has the one, another the other; that is enough."""
    row_operations = operations(
        "customer.email=email, items.sku=mask, key.id=hash, headers.user=drop", "customer, items"
    )
    refuse(row_operations, {"id": 1, "customer": {"email": "a@b.c"}}, {"items": [{"sku": "x"}]})


@pytest.mark.parametrize(
    ("mask", "select", "sentence"),
    [
        (
            "customer.emial=hash",
            "",
            r"--mask customer\.emial=hash: no .* mean customer\.email.*\?\)",
        ),
        ("key.di=hash", "", r"has key\.di \(did you mean key\.id"),
        ("headers.usr=drop", "", r"has headers\.usr \(did you mean headers\.user"),
        ("", "id, customer.mail", r"--select customer\.mail: no .* \(did you mean customer\.email"),
        ("wholly=hash", "", r"has wholly; nothing was written; .* write wholly\? for a place"),
    ],
)
def test_a_wrong_name_ends_the_job(mask: str, select: str, sentence: str) -> None:
    with pytest.raises(JobUsageError, match=sentence):
        refuse(operations(mask, select), ORDER)


def test_a_place_with_a_question_mark_may_be_missing() -> None:
    row_operations = operations("customer.phone?=hash, headers.tenant?=drop", "id, note?")
    refuse(row_operations, ORDER)
    assert [str(rule) for rule in row_operations.rules] == [
        "customer.phone?=hash",
        "headers.tenant?=drop",
    ]
    assert rules_of(["`a?`=hash"])[0].path.names == ("a?",)


def test_a_value_that_is_no_json_has_no_names() -> None:
    assert list(places_of(b"\xff", b"[" * 100_000, None)) == []
    assert list(places_of(None, b'{"a.b": {"key": 1}}', None)) == ["`a.b`", "`a.b`.key"]
