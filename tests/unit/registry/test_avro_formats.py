"""Avro schemas: normalized text, references, errors, bounds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import InvalidSchemaError, parse
from minibroker.registry.formats.limits import DEPTH_MAX, REFERENCES_MAX, TEXT_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence


def record(*fields: str, name: str = "A", more: str = "") -> str:
    return f'{{"type":"record","name":"{name}","fields":[{",".join(fields)}]{more}}}'


def field(name: str, node: str, more: str = "") -> str:
    return f'{{"name":"{name}","type":{node}{more}}}'


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        pytest.param('{"type":"string","b":1,"a":{"d":1,"c":2}}',
                     '{"type":"string","a":{"d":1,"c":2},"b":1}', id="properties"),
        pytest.param('{"type":"bytes","scale":2,"x":0,"precision":4,"logicalType":"decimal"}',
                     '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"x":0}',
                     id="a logical type stands first"),
        pytest.param('{"type":"string","scale":2,"logicalType":"decimal"}',
                     '{"type":"string","logicalType":"decimal","scale":2}',
                     id="a logical type without effect"),
        pytest.param(record(field("x", '"float"', ',"default":1')),
                     record(field("x", '"float"', ',"default":1.0')), id="a default"),
        pytest.param(record(more=',"aliases":["Z","B"],"doc":""'),
                     record(more=',"aliases":["B","Z"]'), id="aliases and empty documentation"),
        pytest.param(record(field("x", '"int"', ',"order":"ascending"')),
                     record(field("x", '"int"')), id="the usual order"),
    ],
)  # fmt: skip
def test_normalization_removes_differences_without_a_meaning(text: str, normalized: str) -> None:
    assert parse("AVRO", text).normalized == normalized


def test_documentation_makes_another_schema() -> None:
    assert parse("AVRO", record(more=',"doc":"x"')).canonical != parse("AVRO", record()).canonical


def test_a_referenced_schema_appears_by_its_name() -> None:
    address = record(field("street", '"string"'), name="n.Address")
    schema = parse("AVRO", record(field("home", '"n.Address"')), [("n.Address", address)])
    assert schema.canonical == record(field("home", '"n.Address"'))
    assert schema.normalized == schema.canonical


def test_a_reference_counts_in_a_comparison() -> None:
    text = record(field("home", '"Home"'))
    old = parse("AVRO", text, [("Home", record(name="Home"))])
    new = parse("AVRO", text, [("Home", record(field("x", '"int"'), name="Home"))])
    assert not incompatibilities(old, new)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in incompatibilities(new, old)[0]


def test_a_reference_that_two_schemas_need_is_read_once() -> None:
    base = record(name="Base")
    middle = record(field("b", '"Base"'), name="Middle")
    text = record(field("m", '"Middle"'), field("b", '"Base"'))
    references = [("Base", base), ("Middle", middle), ("Base", base)]
    assert parse("AVRO", text, references).canonical == text


def test_a_reason_has_the_three_parts_of_confluent() -> None:
    new, old = parse("AVRO", record(field("x", '"int"'))), parse("AVRO", record())
    assert incompatibilities(new, old) == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'the reader has the field x,"
        " which has no default and which the writer lacks (path '/fields/0')',"
        " additionalInfo:'x'}"
    ]


SLOW_UNION = ["null", "string", "bytes", "int", "long", "float", "double", "boolean"]
"""A union whose last type takes `true`."""
NAMES = [f"R{number}" for number in range(300)]


def hostile_pair(count: int) -> str:
    """Return a union of records, of which each has a union of all those before."""
    return json.dumps(
        [
            {
                "type": "record",
                "name": name,
                "fields": [{"name": "x", "type": ["null", *NAMES[:number]]}],
            }
            for number, name in enumerate(NAMES[:count])
        ]
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000, f"deeper than {DEPTH_MAX}"),
        ("[" * 10_000, f"deeper than {DEPTH_MAX}"),
        (json.dumps(["int"] * 1001), "a union of 1001 types"),
        (json.dumps(["int"] * 100_000), "more than 20000 values"),
        (json.dumps("x" * TEXT_BYTES_MAX), "are allowed"),
        ('"' + '\\"' * 500_000, "no JSON"),
        (f'{{"type":"int","x":{"9" * 5000}}}', "no JSON"),
        ('{"type":"int","x":NaN}', "no JSON"),
        ('{"type":"int","x":"\\ud800"}', "surrogate"),
        ('"\ud800"', "surrogate"),
        (record(field("x", '"A"', ',"default":{}')), "the default of the field x in A"),
        (
            record(field("x", f'{{"type":"array","items":{json.dumps(list("abc"))}}}')),
            "no type is called a",
        ),
        (
            record(
                field(
                    "x",
                    json.dumps({"type": "array", "items": SLOW_UNION}),
                    f',"default":[{",".join(["true"] * 19_000)}]',
                )
            ),
            "too much work",
        ),
        (
            "["
            + ",".join(record(field("x", f'"R{n + 1}"'), name=f"R{n}") for n in range(999))
            + ',{"type":"enum","name":"R999","symbols":[]}]',
            "nested too deep",
        ),
    ],
    ids=map(str, range(14)),
)  # fmt: skip
def test_a_hostile_schema_is_invalid(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        parse("AVRO", text)


def test_a_hostile_pair_is_not_compatible() -> None:
    schema = parse("AVRO", hostile_pair(150))
    assert "NOT_COMPARABLE" in incompatibilities(schema, parse("AVRO", hostile_pair(150)))[0]


def test_a_comparison_of_recursive_schemas_ends() -> None:
    def ring(length: int) -> str:
        node = '"R0"'
        for number in reversed(range(length)):
            node = record(field("next", f'["null",{node}]'), name=f"R{number}")
        return node

    reader, writer = parse("AVRO", ring(31)), parse("AVRO", ring(1))
    assert not incompatibilities(parse("AVRO", ring(1)), writer)
    assert incompatibilities(reader, writer)


@pytest.mark.parametrize(
    "references", [[("r", '"int"')] * (REFERENCES_MAX + 1), [("r", " " * 1_000_000)] * 5]
)
def test_references_are_bounded(references: Sequence[tuple[str, str]]) -> None:
    with pytest.raises(InvalidSchemaError, match="allowed"):
        parse("AVRO", '"int"', references)


def test_an_unknown_format_is_invalid() -> None:
    with pytest.raises(InvalidSchemaError, match="XML"):
        parse("XML", "<a/>")
