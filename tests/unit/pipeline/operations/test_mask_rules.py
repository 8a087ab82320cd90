"""The words of `--mask` and `--select`: places, quotes, and what is refused."""

from __future__ import annotations

import pytest

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.operations.mask_rules import FieldPath, MaskRule, fields_of, rules_of


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("email=hash", MaskRule(FieldPath("value", ("email",)), "hash")),
        (" customer.email = email ", MaskRule(FieldPath("value", ("customer", "email")), "email")),
        ("card=last4", MaskRule(FieldPath("value", ("card",)), "last", "4")),
        ("name=first12", MaskRule(FieldPath("value", ("name",)), "first", "12")),
        ("items[].sku=mask", MaskRule(FieldPath("value", ("items", "sku")), "mask")),
        ("tags[]=drop", MaskRule(FieldPath("value", ("tags",), is_each=True), "drop")),
        ("`a.b`.c=null", MaskRule(FieldPath("value", ("a.b", "c")), "null")),
        ("`key`=empty", MaskRule(FieldPath("value", ("key",)), "empty")),
        ("value.key=empty", MaskRule(FieldPath("value", ("key",)), "empty")),
        ("value=null", MaskRule(FieldPath("value", ()), "null")),
        ("key=hash", MaskRule(FieldPath("key", ()), "hash")),
        ("key.id=hash", MaskRule(FieldPath("key", ("id",)), "hash")),
        ("headers=drop", MaskRule(FieldPath("headers", ()), "drop")),
        ("headers.x-user.id=drop", MaskRule(FieldPath("headers", ("x-user.id",)), "drop")),
        ("a=fixed:x=y", MaskRule(FieldPath("value", ("a",)), "fixed", "x=y")),
        ("a=fixed:'b, c'", MaskRule(FieldPath("value", ("a",)), "fixed", "b, c")),
        ("a=fixed:", MaskRule(FieldPath("value", ("a",)), "fixed", "")),
    ],
)
def test_a_rule_is_read_and_written_again(text: str, rule: MaskRule) -> None:
    assert rules_of([text]) == (rule,)
    assert rules_of([str(rule)]) == (rule,)


def test_rules_stand_between_commas_and_in_several_texts() -> None:
    found = rules_of(["email=hash, card=last4,", "a=fixed:'x, y', key=hash"])
    assert [str(rule) for rule in found] == [
        "email=hash",
        "card=last4",
        "a=fixed:'x, y'",
        "key=hash",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("email", "expected FIELD=METHOD, such as email=hash"),
        ("=hash", "has no field"),
        ("a..b=hash", "expected a field, such as customer.email"),
        ("a.=hash", "expected a field"),
        ("a=sha", "'sha' is no method, expected hash, email, mask, last4"),
        ("a=last0", "is no method"),
        ("a=hash:x", "is no method"),
        ("a=hash, a=drop", "has a and a, which are about the same place"),
        ("a.b=hash, a=drop", "a.b and a, which are about the same place"),
        ("key=hash, key.id=hash", "key and key.id, which are about the same place"),
        ("headers=drop, headers.a=hash", "are about the same place"),
        ("a=fixed:it's, card=last4", "a quote ' is not closed"),
        ("`a=hash", "a quote ` is not closed"),
    ],
)
def test_a_wrong_rule_is_refused(text: str, sentence: str) -> None:
    """A quote that is not closed would hide the rules behind it, which would then not be done."""
    with pytest.raises(JobUsageError, match=sentence):
        rules_of([text])


def test_too_many_rules_are_refused() -> None:
    with pytest.raises(JobUsageError, match="has 61 rules: expected 60 at most"):
        rules_of([",".join(f"field{number}=drop" for number in range(61))])


def test_fields_are_those_of_values() -> None:
    assert [str(path) for path in fields_of(["id, customer.country", "value.key"])] == [
        "id",
        "customer.country",
        "value.key",
    ]
    with pytest.raises(JobUsageError, match="'key': expected fields of the JSON value"):
        fields_of(["key"])
    with pytest.raises(JobUsageError, match=r"has a and a\.b, which are about the same place"):
        fields_of(["a, a.b"])
