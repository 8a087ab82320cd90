"""Pairs of schemas, old and new, that both registries compare in both directions.

A pair is one change. Its name says which, and is the subject under which it is registered.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Pair(NamedTuple):
    """A change of a schema."""

    name: str
    kind: str
    """AVRO, JSON or PROTOBUF."""
    old: str
    new: str


def _record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field, "type": "int"} if isinstance(field, str) else field for field in fields
        ],
        **more,
    }


def _field(name: str, node: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": node, **more}


def _enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": [*symbols], **more}


_FIXED = {"type": "fixed", "name": "F", "size": 2}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4}

AVRO: dict[str, tuple[Any, Any]] = {
    "int becomes long": ("int", "long"),
    "int becomes double": ("int", "double"),
    "long becomes int": ("long", "int"),
    "float becomes double": ("float", "double"),
    "string becomes bytes": ("string", "bytes"),
    "int becomes string": ("int", "string"),
    "a field is added": (_record("a"), _record("a", "b")),
    "a field with a default is added": (_record("a"), _record("a", _field("b", "int", default=1))),
    "a field is removed": (_record("a", "b"), _record("a")),
    "a field with a default is removed": (
        _record("a", _field("b", "int", default=1)),
        _record("a"),
    ),
    "a field is renamed": (_record("a"), _record("b")),
    "a field is renamed with an alias": (_record("a"), _record(_field("b", "int", aliases=["a"]))),
    "fields change places": (_record("a", "b"), _record("b", "a")),
    "a field may be null": (_record("a"), _record(_field("a", ["null", "int"]))),
    "a field may be null, and has a default": (
        _record("a"),
        _record(_field("a", ["null", "int"], default=None)),
    ),
    "a default changes": (
        _record(_field("a", "int", default=1)),
        _record(_field("a", "int", default=2)),
    ),
    "a default goes": (_record(_field("a", "int", default=1)), _record("a")),
    "a record is renamed": (_record("a"), _record("a", name="S")),
    "a record is renamed with an alias": (_record("a"), _record("a", name="S", aliases=["R"])),
    "a record gets a namespace": (_record("a"), _record("a", namespace="n")),
    "documentation is added": (_record("a"), _record("a", doc="text")),
    "a property is added": (_record("a"), _record("a", color="red")),
    "an enum gets a symbol": (_enum("A"), _enum("A", "B")),
    "an enum with a default gets a symbol": (
        _enum("A", default="A"),
        _enum("A", "B", default="A"),
    ),
    "an enum loses a symbol": (_enum("A", "B"), _enum("A")),
    "symbols change places": (_enum("A", "B"), _enum("B", "A")),
    "an enum becomes a string": (_enum("A"), "string"),
    "a fixed grows": (_FIXED, {**_FIXED, "size": 3}),
    "a fixed is renamed": (_FIXED, {**_FIXED, "name": "G"}),
    "a fixed becomes bytes": (_FIXED, "bytes"),
    "a union gets a type": (["null", "int"], ["null", "int", "string"]),
    "a union loses a type": (["null", "int", "string"], ["null", "int"]),
    "types of a union change places": (["null", "int"], ["int", "null"]),
    "a type of a union is promoted": (["null", "int"], ["null", "long"]),
    "a type becomes a union": ("int", ["int", "string"]),
    "a union becomes a type": (["int", "string"], "string"),
    "items are promoted": (
        {"type": "array", "items": "int"},
        {"type": "array", "items": "long"},
    ),
    "items change": ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
    "an array becomes a map": ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}),
    "values of a map are promoted": (
        {"type": "map", "values": "int"},
        {"type": "map", "values": "double"},
    ),
    "a nested record gets a field": (
        _record(_field("r", _record("a", name="S"))),
        _record(_field("r", _record("a", "b", name="S"))),
    ),
    "a record in a union gets a field": (
        ["null", _record("a")],
        ["null", _record("a", "b")],
    ),
    "a record that contains itself gets a field": (
        _record(_field("next", ["null", "R"])),
        _record(_field("next", ["null", "R"]), _field("a", "int", default=0)),
    ),
    "a logical type is added": ("long", {"type": "long", "logicalType": "timestamp-millis"}),
    "a precision changes": (_DECIMAL, {**_DECIMAL, "precision": 8}),
    "bytes become a decimal": ("bytes", _DECIMAL),
}

_STRING, _INTEGER, _NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
_NULL = {"type": "null"}


def _open(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _closed(**properties: Any) -> dict[str, Any]:
    return {**_open(**properties), "additionalProperties": False}


def _partly(rest: Any, **properties: Any) -> dict[str, Any]:
    return {**_open(**properties), "additionalProperties": rest}


def _required(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**schema, "required": [*names]}


JSON: dict[str, tuple[Any, Any]] = {
    "integer becomes number": (_INTEGER, _NUMBER),
    "integer becomes string": (_INTEGER, _STRING),
    "a type gets null": (_STRING, {"type": ["string", "null"]}),
    "a type becomes everything": (_STRING, {}),
    "a title and a description are added": (_STRING, {**_STRING, "title": "t", "description": "d"}),
    "a default is added": (_STRING, {**_STRING, "default": "x"}),
    "an open schema gets a property": (_open(a=_STRING), _open(a=_STRING, b=_STRING)),
    "an open schema gets any property": (_open(a=_STRING), _open(a=_STRING, b={})),
    "an open schema gets a required property": (
        _open(a=_STRING),
        _required(_open(a=_STRING, b=_STRING), "b"),
    ),
    "a closed schema gets a property": (_closed(a=_STRING), _closed(a=_STRING, b=_STRING)),
    "a closed schema gets a required property": (
        _closed(a=_STRING),
        _required(_closed(a=_STRING, b=_STRING), "b"),
    ),
    "a closed schema gets a required property with a default": (
        _closed(a=_STRING),
        _required(_closed(a=_STRING, b={**_STRING, "default": "x"}), "b"),
    ),
    "a partly open schema gets a property that it covers": (
        _partly(_STRING, a=_STRING),
        _partly(_STRING, a=_STRING, b=_STRING),
    ),
    "a partly open schema gets a property that it does not cover": (
        _partly(_STRING, a=_STRING),
        _partly(_STRING, a=_STRING, b=_INTEGER),
    ),
    "a closed schema becomes open": (_closed(a=_STRING), _open(a=_STRING)),
    "a closed schema becomes partly open": (_closed(a=_STRING), _partly(_STRING, a=_STRING)),
    "an open schema becomes partly open": (_open(a=_STRING), _partly(_STRING, a=_STRING)),
    "a property becomes required": (_open(a=_STRING), _required(_open(a=_STRING), "a")),
    "a property with a default becomes required": (
        _open(a={**_STRING, "default": ""}),
        _required(_open(a={**_STRING, "default": ""}), "a"),
    ),
    "a property changes its type": (_open(a=_INTEGER), _open(a=_STRING)),
    "a property is promoted": (_open(a=_INTEGER), _open(a=_NUMBER)),
    "a nested property changes its type": (
        _open(a=_open(b=_INTEGER)),
        _open(a=_open(b=_STRING)),
    ),
    "a longest length grows": ({**_STRING, "maxLength": 3}, {**_STRING, "maxLength": 4}),
    "a longest length is added": (_STRING, {**_STRING, "maxLength": 4}),
    "a shortest length grows": ({**_STRING, "minLength": 3}, {**_STRING, "minLength": 4}),
    "a pattern is added": (_STRING, {**_STRING, "pattern": "^a"}),
    "a pattern changes": ({**_STRING, "pattern": "^a"}, {**_STRING, "pattern": "^b"}),
    "a maximum grows": ({**_NUMBER, "maximum": 3}, {**_NUMBER, "maximum": 4}),
    "a minimum is added": (_NUMBER, {**_NUMBER, "minimum": 0}),
    "a factor is divided": ({**_INTEGER, "multipleOf": 4}, {**_INTEGER, "multipleOf": 2}),
    "an enum gets a value": ({"enum": ["a"]}, {"enum": ["a", "b"]}),
    "an enum changes": ({"enum": ["a"]}, {"enum": ["b"]}),
    "items are promoted": (
        {"type": "array", "items": _INTEGER},
        {"type": "array", "items": _NUMBER},
    ),
    "items change": ({"type": "array", "items": _INTEGER}, {"type": "array", "items": _STRING}),
    "an open tuple gets an item": (
        {"type": "array", "items": [_STRING]},
        {"type": "array", "items": [_STRING, _STRING]},
    ),
    "a closed tuple gets an item": (
        {"type": "array", "items": [_STRING], "additionalItems": False},
        {"type": "array", "items": [_STRING, _STRING], "additionalItems": False},
    ),
    "items become unique": ({"type": "array"}, {"type": "array", "uniqueItems": True}),
    "a longest array is added": ({"type": "array"}, {"type": "array", "maxItems": 3}),
    "a sum gets a type": (
        {"oneOf": [_STRING, _INTEGER]},
        {"oneOf": [_STRING, _INTEGER, _NULL]},
    ),
    "a type becomes a sum": (_STRING, {"oneOf": [_STRING, _INTEGER]}),
    "types of a sum change places": (
        {"oneOf": [_STRING, _INTEGER]},
        {"oneOf": [_INTEGER, _STRING]},
    ),
    "a product gets a part": (
        {"allOf": [_open(a=_STRING)]},
        {"allOf": [_open(a=_STRING), _required(_open(b=_STRING), "b")]},
    ),
    "a not is extended": ({"not": _INTEGER}, {"not": _NUMBER}),
    "a reference is dissolved": (
        {"definitions": {"s": _STRING}, **_open(a={"$ref": "#/definitions/s"})},
        _open(a=_STRING),
    ),
    "the target of a reference changes": (
        {"definitions": {"s": _STRING}, **_open(a={"$ref": "#/definitions/s"})},
        {"definitions": {"s": _INTEGER}, **_open(a={"$ref": "#/definitions/s"})},
    ),
    "a dependency is added": (_open(a=_STRING), {**_open(a=_STRING), "dependencies": {"a": ["b"]}}),
    "a key changes its place": (
        {"type": "object", "properties": {"a": _STRING}},
        {"properties": {"a": _STRING}, "type": "object"},
    ),
}

PROTOBUF: dict[str, tuple[str, str]] = {
    "a field is added": ("int32 x = 1;", "int32 x = 1; string y = 2;"),
    "a field is renamed": ("int32 x = 1;", "int32 y = 1;"),
    "a field gets another number": ("int32 x = 1;", "int32 x = 2;"),
    "int32 becomes int64": ("int32 x = 1;", "int64 x = 1;"),
    "int32 becomes bool": ("int32 x = 1;", "bool x = 1;"),
    "int32 becomes an enum": ("int32 x = 1; enum E { Z = 0; }", "E x = 1; enum E { Z = 0; }"),
    "int32 becomes sint32": ("int32 x = 1;", "sint32 x = 1;"),
    "int32 becomes string": ("int32 x = 1;", "string x = 1;"),
    "int32 becomes a message": ("int32 x = 1; message B {}", "B x = 1; message B {}"),
    "fixed32 becomes sfixed32": ("fixed32 x = 1;", "sfixed32 x = 1;"),
    "fixed32 becomes fixed64": ("fixed32 x = 1;", "fixed64 x = 1;"),
    "float becomes double": ("float x = 1;", "double x = 1;"),
    "string becomes bytes": ("string x = 1;", "bytes x = 1;"),
    "string becomes repeated": ("string x = 1;", "repeated string x = 1;"),
    "int32 becomes repeated": ("int32 x = 1;", "repeated int32 x = 1;"),
    "optional int32 becomes repeated": ("optional int32 x = 1;", "repeated int32 x = 1;"),
    "a field becomes optional": ("int32 x = 1;", "optional int32 x = 1;"),
    "a message changes its type": (
        "B x = 1; message B {} message C {}",
        "C x = 1; message B {} message C {}",
    ),
    "a message is added": ("int32 x = 1;", "int32 x = 1; message B {}"),
    "a nested message gets a field": (
        "B x = 1; message B { int32 y = 1; }",
        "B x = 1; message B { int32 y = 1; int32 z = 2; }",
    ),
    "a nested message changes a type": (
        "B x = 1; message B { int32 y = 1; }",
        "B x = 1; message B { string y = 1; }",
    ),
    "a field moves into a new oneof": ("int32 x = 1;", "oneof o { int32 x = 1; string y = 2; }"),
    "two fields move into a oneof": (
        "int32 x = 1; string y = 2;",
        "oneof o { int32 x = 1; string y = 2; }",
    ),
    "a field moves into an old oneof": (
        "int32 x = 1; oneof o { string y = 2; }",
        "oneof o { int32 x = 1; string y = 2; }",
    ),
    "a oneof gets a field": (
        "oneof o { int32 x = 1; }",
        "oneof o { int32 x = 1; string y = 2; }",
    ),
    "a constant is added": ("enum E { Z = 0; }", "enum E { Z = 0; Y = 1; }"),
    "a constant is renamed": ("enum E { Z = 0; }", "enum E { Y = 0; }"),
    "values of a map change": ("map<string, int32> x = 1;", "map<string, string> x = 1;"),
    "values of a map are widened": ("map<string, int32> x = 1;", "map<string, int64> x = 1;"),
    "a number is reserved": ("int32 x = 1; int32 y = 2;", "int32 x = 1; reserved 2;"),
    "a service is added": ("int32 x = 1;", "int32 x = 1; } service S { rpc G (A) returns (A);"),
}


def _json(schema: Any) -> str:
    """Return the text of a JSON Schema; Apicurio's registry takes none without `$schema`."""
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema})


def _proto(fields: str, package: str = "p") -> str:
    return f'syntax = "proto3"; package {package}; message A {{ {fields} }}'


def pairs() -> list[Pair]:
    """Return every pair."""
    return [
        *(
            Pair(name, "AVRO", json.dumps(old), json.dumps(new))
            for name, (old, new) in AVRO.items()
        ),
        *(Pair(name, "JSON", _json(old), _json(new)) for name, (old, new) in JSON.items()),
        *(
            Pair(name, "PROTOBUF", _proto(old), _proto(new))
            for name, (old, new) in PROTOBUF.items()
        ),
        Pair("a package changes", "PROTOBUF", _proto("int32 x = 1;"), _proto("int32 x = 1;", "q")),
    ]
