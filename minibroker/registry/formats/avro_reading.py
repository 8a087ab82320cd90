"""JSON ─► types of an Avro schema, with the checks of Avro's specification.

A name may be used before its definition, as in Avro 1.12: names become types at the end.

Source: Avro 1.12's specification; org.apache.avro.Schema.Parser with STRICT_VALIDATOR, which
Confluent's registry uses for a new schema.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from minibroker.kafka.java_numbers import parse_double
from minibroker.registry.formats.avro_types import (
    NO_DEFAULT,
    PRIMITIVES,
    RECORDS,
    TYPES_WITH_A_NAME,
    AvroField,
    AvroType,
)
from minibroker.registry.formats.parsed_schema import InvalidSchemaError

BRANCHES_MAX: Final = 1000
"""Types in a union: two unions are compared branch by branch."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERS: Final = ("ascending", "descending", "ignore")
_TYPE_KEYS: Final = frozenset(
    ["aliases", "doc", "fields", "items", "name", "namespace", "size", "symbols", "type", "values"]
)
_FIELD_KEYS: Final = frozenset(["aliases", "default", "doc", "name", "order", "type"])
_REFERENCE: Final = "reference"
"""Kind of a name whose type is not known yet: `fullname` is as it is used, `doc` its namespace."""


class TypeReader:
    """Types of one schema and of those that it refers to. Belongs to one call of `parse`."""

    def __init__(self) -> None:
        self.names: dict[str, AvroType] = {}
        """Full name → definition."""
        self.types: list[AvroType] = []
        """Every type but references, in the order in which they begin."""

    def read(self, value: Any) -> AvroType:
        """Return the type of a schema's JSON. Raises InvalidSchemaError."""
        first = len(self.types)
        schema = self._resolve(self._type(value, ""))
        for node in self.types[first:]:
            node.schemas[:] = map(self._resolve, node.schemas)
            for field in node.fields:
                field.type = self._resolve(field.type)
            if node.kind == "union":
                _check_branches(node)
        return schema

    def _type(self, value: Any, namespace: str) -> AvroType:
        if isinstance(value, str):
            if value in PRIMITIVES:
                return self._add(AvroType(value))
            return AvroType(_REFERENCE, value, namespace)
        if isinstance(value, list):
            if len(value) > BRANCHES_MAX:
                _fail(f"a union of {len(value)} types; {BRANCHES_MAX} are allowed")
            union = self._add(AvroType("union"))
            union.schemas.extend(self._type(item, namespace) for item in value)
            return union
        if not isinstance(value, dict):
            _fail(f"no type: {_short(value)}")
        return self._object(value, namespace)

    def _object(self, value: dict[str, Any], namespace: str) -> AvroType:
        kind = value.get("type")
        if not isinstance(kind, str):
            _fail(f"no type: {_short(value)}")
        if kind in TYPES_WITH_A_NAME:
            return self._type_with_a_name(kind, value, namespace)
        if kind in {"array", "map"}:
            key = "items" if kind == "array" else "values"
            if key not in value:
                _fail(f"an {kind} without {key}: {_short(value)}")
            container = self._add(AvroType(kind, properties=_others(value, _TYPE_KEYS)))
            container.schemas.append(self._type(value[key], namespace))
            return container
        if kind in PRIMITIVES:
            return self._add(AvroType(kind, properties=_others(value, _TYPE_KEYS)))
        return AvroType(_REFERENCE, kind, namespace)

    def _type_with_a_name(self, kind: str, value: dict[str, Any], namespace: str) -> AvroType:
        name = _full_name(value, namespace)
        node = AvroType(kind, name, _text_or_none(value.get("doc")))
        own_namespace = node.namespace
        node.aliases = tuple(
            dict.fromkeys(
                alias if "." in alias or not own_namespace else f"{own_namespace}.{alias}"
                for alias in _aliases(value)
            )
        )
        for alias in node.aliases:
            _check_full_name(alias)
        reserved = {*_TYPE_KEYS, "default"} if kind == "enum" else _TYPE_KEYS
        node.properties = _others(value, reserved)
        if kind == "fixed":
            node.size = _size(value, name)
        elif kind == "enum":
            _read_symbols(node, value)
        other = self.names.get(name)
        if other is not None:
            if kind in RECORDS or not _is_same(node, other):
                _fail(f"the name {name} is defined twice")
            return other
        self.names[name] = self._add(node)
        if kind in RECORDS:
            self._read_fields(node, value)
        return node

    def _read_fields(self, record: AvroType, value: dict[str, Any]) -> None:
        items = value.get("fields")
        if not isinstance(items, list):
            _fail(f"the record {record.fullname} has no list of fields")
        for item in items:
            if not isinstance(item, dict) or "type" not in item:
                _fail(f"no field with a name and a type: {_short(item)}")
            name = _check_name(item.get("name"), "field")
            if name in record.fields_dict:
                _fail(f"the record {record.fullname} has two fields {name}")
            field = _field(item, self._type(item["type"], record.namespace))
            record.fields.append(field)
            record.fields_dict[name] = field

    def _resolve(self, node: AvroType) -> AvroType:
        if node.kind != _REFERENCE:
            return node
        name, namespace = node.fullname, node.doc
        if namespace and "." not in name and (local := self.names.get(f"{namespace}.{name}")):
            return local
        return self.names.get(name) or _fail(f"no type is called {name}")

    def _add(self, node: AvroType) -> AvroType:
        self.types.append(node)
        return node


def _field(item: dict[str, Any], node: AvroType) -> AvroField:
    order = item.get("order", "ascending")
    if not isinstance(order, str) or order.lower() not in _ORDERS:
        _fail(f"the order of a field is one of {', '.join(_ORDERS)}, not {_short(order)}")
    default = item.get("default", NO_DEFAULT)
    if isinstance(default, str) and node.kind in {"float", "double"}:
        try:
            default = parse_double(default)
        except ValueError:
            _fail(f"the default of the field {item['name']} is no number: {_short(default)}")
    return AvroField(
        name=item["name"],
        type=node,
        doc=_text_or_none(item.get("doc")),
        default=default,
        order=order.lower(),
        aliases=tuple(dict.fromkeys(_aliases(item))),
        properties=_others(item, _FIELD_KEYS),
    )


def _read_symbols(node: AvroType, value: dict[str, Any]) -> None:
    symbols = value.get("symbols")
    if not isinstance(symbols, list):
        _fail(f"the enum {node.fullname} has no list of symbols")
    for symbol in symbols:
        _check_name(symbol, "symbol")
    node.symbols = tuple(symbols)
    if len(set(symbols)) < len(symbols):
        _fail(f"the enum {node.fullname} has a symbol twice")
    default = value.get("default")
    if isinstance(default, str):
        if default not in symbols:
            _fail(f"the default {default} of the enum {node.fullname} is none of its symbols")
        node.enum_default = default


def _is_same(node: AvroType, other: AvroType) -> bool:
    """Return whether an enum or a fixed is defined a second time in the same way."""
    return (node.kind, node.symbols, node.enum_default, node.size, node.properties) == (
        other.kind,
        other.symbols,
        other.enum_default,
        other.size,
        other.properties,
    )


def _check_branches(union: AvroType) -> None:
    names = set()
    for branch in union.schemas:
        if branch.kind == "union":
            _fail("a union stands inside a union")
        if branch.branch_name in names:
            _fail(f"a union has {branch.branch_name} twice")
        names.add(branch.branch_name)


def _full_name(value: dict[str, Any], namespace: str) -> str:
    name = value.get("name")
    if not isinstance(name, str):
        _fail(f"no name: {_short(value)}")
    if "." not in name:
        own = value.get("namespace")
        own = own if isinstance(own, str) else namespace
        name = f"{own}.{name}" if own else name
    name = name.removeprefix(".")
    _check_full_name(name)
    if name in PRIMITIVES:
        _fail(f"a type is named after a primitive: {name}")
    return name


def _check_full_name(name: str) -> None:
    for part in name.split("."):
        _check_name(part, f"part of the name {_short(name)}" if part != name else "name")


def _check_name(name: Any, role: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        _fail(f"no {role} of Avro: {_short(name)} (letters, digits and _, no digit first)")
    return name


def _aliases(value: dict[str, Any]) -> list[str]:
    aliases = value.get("aliases") or []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        _fail(f"aliases are a list of names, not {_short(aliases)}")
    return aliases


def _size(value: dict[str, Any], name: str) -> int:
    size = value.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 1 << 31:
        _fail(f"the size of the fixed {name} is no count of bytes: {_short(size)}")
    return size


def _others(value: dict[str, Any], reserved: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in reserved}


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _fail(reason: str) -> NoReturn:
    raise InvalidSchemaError(reason)
