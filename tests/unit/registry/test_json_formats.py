"""JSON Schemas: validity by draft, references, canonical text, compatibility, bounds."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import InvalidSchemaError, ParsedSchema, parse
from minibroker.registry.formats.json_schemas import SCHEMA_DEPTH_MAX

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def schema(value: Any, *references: tuple[str, Any]) -> ParsedSchema:
    return parse(
        "JSON", json.dumps(value), [(name, json.dumps(other)) for name, other in references]
    )


def kinds(new: Any, old: Any) -> list[str]:
    """Return the kinds of the reasons why `new` does not read what `old` wrote."""
    reasons = incompatibilities(schema(new), schema(old))
    return [re.match(r"\{errorType:'(\w+)'", reason)[1] for reason in reasons]  # type: ignore[index]


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def open_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (INTEGER, NUMBER, None),
        (NUMBER, INTEGER, "TYPE_NARROWED"),
        (STRING, INTEGER, "TYPE_CHANGED"),
        (STRING, {"type": ["string", "null"]}, None),
        ({"type": ["string", "null"]}, STRING, "TYPE_NARROWED"),
        (STRING, {}, None),
        ({}, STRING, "TYPE_NARROWED"),
        (STRING, True, None),
        (STRING, False, "TYPE_CHANGED"),
        # content models
        (
            open_object(a=STRING),
            open_object(a=STRING, b=STRING),
            "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        ),
        (open_object(a=STRING), open_object(a=STRING, b={}), None),
        (closed(a=STRING), closed(a=STRING, b=STRING), None),
        (
            closed(a=STRING),
            closed(a=STRING, b=STRING) | {"required": ["b"]},
            "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        ),
        (
            closed(a=STRING),
            closed(a=STRING, b=STRING | {"default": "x"}) | {"required": ["b"]},
            None,
        ),
        (open_object(a=STRING, b=STRING), open_object(a=STRING), None),
        (
            closed(a=STRING, b=STRING),
            closed(a=STRING),
            "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        ),
        (closed(a=STRING, b=False), closed(a=STRING), None),
        (closed(a=STRING), open_object(a=STRING), None),
        (open_object(a=STRING), closed(a=STRING), "ADDITIONAL_PROPERTIES_REMOVED"),
        (
            open_object(a=STRING) | {"additionalProperties": STRING},
            open_object(a=STRING, b=STRING) | {"additionalProperties": STRING},
            None,
        ),
        (
            open_object(a=STRING) | {"additionalProperties": INTEGER},
            open_object(a=STRING, b=STRING) | {"additionalProperties": INTEGER},
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
        (
            open_object(a=STRING, b=STRING) | {"additionalProperties": INTEGER},
            open_object(a=STRING) | {"additionalProperties": INTEGER},
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
        (
            open_object(ab=STRING) | {"additionalProperties": False},
            {"type": "object", "patternProperties": {"^a": STRING}, "additionalProperties": False},
            None,
        ),
        (
            open_object(a=STRING),
            open_object(a=STRING) | {"required": ["a"]},
            "REQUIRED_ATTRIBUTE_ADDED",
        ),
        (
            open_object(a=STRING),
            open_object(a=STRING | {"default": ""}) | {"required": ["a"]},
            None,
        ),
        (open_object(a=STRING) | {"required": ["a"]}, open_object(a=STRING), None),
        # bounds
        ({"maxLength": 5}, {"maxLength": 6}, None),
        ({"maxLength": 6}, {"maxLength": 5}, "MAX_LENGTH_DECREASED"),
        ({}, {"maxLength": 5}, "MAX_LENGTH_ADDED"),
        ({"minLength": 5}, {"minLength": 6}, "MIN_LENGTH_INCREASED"),
        ({}, {"minLength": 0}, None),
        ({"pattern": "a"}, {"pattern": "b"}, "PATTERN_CHANGED"),
        ({"maximum": 1}, {"exclusiveMaximum": 1}, "EXCLUSIVE_MAXIMUM_DECREASED"),
        ({"exclusiveMaximum": 1}, {"maximum": 1}, None),
        ({"minimum": 0.1}, {"minimum": 0.2}, "MINIMUM_INCREASED"),
        ({"multipleOf": 4}, {"multipleOf": 2}, None),
        ({"multipleOf": 2}, {"multipleOf": 4}, "MULTIPLE_OF_CHANGED"),
        (INTEGER, {"multipleOf": 0.5}, None),
        ({"maxItems": 2}, {"maxItems": 1}, "MAX_ITEMS_DECREASED"),
        ({}, {"uniqueItems": True}, "UNIQUE_ITEMS_ADDED"),
        ({"maxProperties": 2}, {"maxProperties": 1}, "MAX_PROPERTIES_DECREASED"),
        ({"maxLength": 1, "type": "integer"}, {"type": "integer"}, None),
        # enums
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, None),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, "ENUM_ARRAY_NARROWED"),
        ({"enum": ["a"]}, {"enum": ["b"]}, "ENUM_ARRAY_CHANGED"),
        ({"enum": ["a"]}, STRING, None),
        (STRING, {"enum": ["a"]}, "ENUM_ARRAY_CHANGED"),
        ({"type": "boolean"}, {"enum": [False, True]}, None),
        ({"enum": ["abc"]}, {"maxLength": 2}, "MAX_LENGTH_ADDED"),
        ({"const": 1}, {"enum": [1.0]}, None),
        ({"const": True}, {"const": 1}, "ENUM_ARRAY_CHANGED"),
        # arrays
        ({"items": STRING}, {"items": {}}, None),
        ({"items": STRING}, {"items": INTEGER}, "TYPE_CHANGED"),
        (
            {"items": [STRING], "additionalItems": False},
            {"items": [STRING, STRING], "additionalItems": False},
            None,
        ),
        ({"items": [STRING]}, {"items": [STRING, STRING]}, "ITEM_ADDED_TO_OPEN_CONTENT_MODEL"),
        (
            {"items": [STRING, STRING], "additionalItems": False},
            {"items": [STRING], "additionalItems": False},
            "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        ),
        (
            {"items": [STRING]},
            {"items": [STRING], "additionalItems": False},
            "ADDITIONAL_ITEMS_REMOVED",
        ),
        # sums and logic
        ({"anyOf": [STRING, INTEGER]}, {"anyOf": [STRING, NUMBER, {"type": "null"}]}, None),
        ({"oneOf": [STRING, INTEGER]}, {"oneOf": [STRING]}, "TYPE_CHANGED"),
        (STRING, {"oneOf": [STRING, INTEGER]}, None),
        ({"type": ["string", "null"]}, {"oneOf": [{"type": "null"}, STRING]}, None),
        (
            {"oneOf": [STRING, INTEGER]},
            {"oneOf": [STRING, {"type": "boolean"}]},
            "SUM_TYPE_NARROWED",
        ),
        ({"allOf": [{"maxLength": 2}, STRING]}, {"type": "string", "maxLength": 3}, None),
        (STRING, {"allOf": [STRING, {"maxLength": 3}]}, "MAX_LENGTH_ADDED"),
        ({"not": {}}, STRING, "TYPE_NARROWED"),
        ({"not": NUMBER}, {"not": INTEGER}, None),
        ({"not": INTEGER}, {"not": NUMBER}, "NOT_TYPE_EXTENDED"),
        (STRING, {"not": INTEGER}, None),
        ({"dependencies": {"a": ["b", "c"]}}, {"dependencies": {"a": ["b"]}}, None),
        (
            {"dependencies": {"a": ["b"]}},
            {"dependencies": {"a": ["b", "c"]}},
            "DEPENDENCY_ARRAY_EXTENDED",
        ),
        ({}, {"dependencies": {"a": {"required": ["b"]}}}, "DEPENDENCY_SCHEMA_ADDED"),
    ],
)
def test_a_change_has_its_reason(old: Any, new: Any, reason: str | None) -> None:
    reasons = kinds(new, old)
    assert reasons[-1:] == ([] if reason is None else [reason]), reasons


def test_a_reason_says_where() -> None:
    old, new = open_object(a=open_object(b=INTEGER)), open_object(a=open_object(b=STRING))
    assert incompatibilities(schema(new), schema(old)) == [
        "{errorType:'TYPE_CHANGED', description:'the reader takes string and the writer has integer"
        " (path '#/properties/a/properties/b')'}"
    ]


def test_references_are_followed_and_count() -> None:
    text = {"properties": {"a": {"$ref": "other.json#/definitions/x"}}}
    old = schema(text, ("other.json", {"definitions": {"x": INTEGER}}))
    new = schema(text, ("other.json", {"definitions": {"x": STRING}}))
    assert old.canonical == new.canonical
    assert not incompatibilities(old, old)
    assert "TYPE_CHANGED" in incompatibilities(new, old)[0]


def test_references_follow_the_identifier_of_the_schema() -> None:
    text = {"$id": "http://example.com/a/root.json", "items": {"$ref": "x.json"}}
    new = schema(text, ("x.json", STRING))
    assert "TYPE_CHANGED" in incompatibilities(new, schema({"items": INTEGER}))[0]


def test_a_schema_that_contains_itself_is_compared() -> None:
    def tree(value: Any) -> Any:
        return {"properties": {"value": value, "next": {"$ref": "#"}}, "required": ["value"]}

    assert not kinds(tree(NUMBER), tree(INTEGER))
    assert kinds(tree(INTEGER), tree(NUMBER)) == ["TYPE_NARROWED"]


def test_nothing_beside_a_reference_counts_before_2019() -> None:
    old = {"definitions": {"x": STRING}, "items": {"$ref": "#/definitions/x"}}
    new = {"definitions": {"x": STRING}, "items": {"$ref": "#/definitions/x", "maxLength": 1}}
    assert not kinds(new, old)
    assert kinds(new | {"$schema": DRAFT_2020}, old) == ["MAX_LENGTH_ADDED"]


def test_an_exclusive_bound_of_draft_4_is_a_boolean() -> None:
    old = {"$schema": DRAFT_4, "maximum": 3}
    assert kinds({**old, "exclusiveMaximum": True}, old) == ["EXCLUSIVE_MAXIMUM_DECREASED"]
    assert not kinds(old, {**old, "exclusiveMaximum": True})


def test_unevaluated_properties_close_a_schema() -> None:
    base = {"$schema": DRAFT_2020, "$defs": {"base": open_object(a=STRING)}}
    new = base | {"allOf": [{"$ref": "#/$defs/base"}], "unevaluatedProperties": False}
    assert not kinds(new, new)
    assert kinds(new, base | {"$ref": "#/$defs/base"}) == ["UNEVALUATED_PROPERTIES_REMOVED"]


def test_the_canonical_text_keeps_the_order_of_keys() -> None:
    json_schema = parse("JSON", '{ "type": "object",\n "b": 1.0, "a": 1e10 }')
    assert json_schema.canonical == '{"type":"object","b":1.0,"a":1.0E10}'
    assert json_schema.normalized == '{"a":1.0E10,"b":1.0,"type":"object"}'


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (1, "an object, true or false"),
        ({"type": "strin"}, "at '#/type'"),
        ({"properties": {"a": {"minLength": -1}}}, "at '#/properties/a/minLength'"),
        ({"$ref": "#/definitions/x"}, "no target"),
        ({"$ref": "http://127.0.0.1:1/x.json"}, "no target"),
        ({"$ref": "file:///etc/passwd"}, "no target"),
        ({"properties": {"a": {"$ref": "#/properties/a/$ref"}}}, "is no schema"),
        ({"pattern": "["}, "is no pattern"),
        ({"pattern": "a" * 5000}, "characters"),
        ({"$schema": DRAFT_4, "const": 1, "required": []}, "at '#/required'"),
        ({"enum": [[], 1] * 1000}, "many types"),
        ({"enum": ["a"] * 30_000}, "more than 20000 values"),
        ({"properties": {f"a{number}": {} for number in range(30_000)}}, "more than 20000 values"),
    ],
)
def test_an_invalid_schema_says_why(value: Any, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=re.escape(reason)):
        schema(value)


def test_a_schema_that_is_nested_too_deep_is_invalid() -> None:
    with pytest.raises(InvalidSchemaError, match="nested"):
        parse("JSON", '{"not":' * 10_000 + "{}" + "}" * 10_000)


def test_patterns_of_ecmascript_are_valid() -> None:
    schema({"pattern": r"^(?<year>\d{4})-\p{L}+(?<!x)$"})


def test_a_pattern_that_runs_for_ever_is_never_tried() -> None:
    bomb = {"patternProperties": {"^(a+)+$": STRING}, "additionalProperties": False}
    assert kinds(bomb, closed(**{"a" * 30 + "b": STRING}))


@pytest.mark.parametrize("draft", [DRAFT_4, DRAFT_2020])
def test_the_deepest_schema_is_compared(draft: str) -> None:
    def nested(depth: int) -> Any:
        return {"allOf": [nested(depth - 1)]} if depth else STRING

    deepest = {"$schema": draft, **nested((SCHEMA_DEPTH_MAX - 1) // 2)}
    assert not kinds(deepest, {"$schema": draft, **nested(1)})
    assert not kinds(STRING, deepest)


def test_many_patterns_are_tried_in_bounded_work() -> None:
    def patterns(letter: str) -> Any:
        many = {f"^{letter}{number}": {} for number in range(300)}
        names = {f"f{number}": STRING for number in range(2000)}
        return {"properties": names, "patternProperties": many}

    assert kinds(patterns("a"), patterns("b")) == ["NOT_COMPARABLE"]


def test_sums_that_contain_themselves_are_not_comparable() -> None:
    def endless(other: Any) -> Any:
        return {"anyOf": [{"$ref": "#"}, other]}

    assert kinds(endless(STRING), endless(INTEGER)) == ["NOT_COMPARABLE"]


def test_references_that_double_are_compared_in_bounded_work() -> None:
    definitions = {
        f"x{number}": {"allOf": [{"$ref": f"#/definitions/x{number + 1}"}] * 2}
        for number in range(60)
    }
    bomb = {"$ref": "#/definitions/x0", "definitions": definitions | {"x60": STRING}}
    assert not kinds(bomb, STRING)


def test_sums_that_multiply_are_compared_in_bounded_work() -> None:
    sums = [{"anyOf": [{"minLength": n}, {"maxLength": n}, {"type": "null"}]} for n in range(1, 15)]
    assert kinds({"allOf": [*sums, {"pattern": "x"}]}, {"allOf": sums}) == ["NOT_COMPARABLE"]
