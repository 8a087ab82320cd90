"""Types of an Avro schema ─► texts: canonical and normalized.

Canonical is the text of Avro's Java, which Confluent's registry keeps and compares: keys in a fixed
order, a type defined where it is first used, the other properties behind them in their order.
Documentation, aliases, defaults and properties count: two schemas that differ there are two.

Normalized removes the differences without a meaning: the order of properties and aliases.

A type of a referenced schema appears by its name in both. Java defines one that stands inside
another type of it once more, and then cannot read its own text of a record.

Source: org.apache.avro.Schema.toString(referenced schemas); AvroSchema.normalize of Confluent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.registry.formats.avro_types import (
    PRIMITIVES,
    TYPES_WITH_A_NAME,
    AvroField,
    AvroType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOGICAL_TYPES: Final = {
    "date": {"int"},
    "decimal": {"bytes", "fixed"},
    "duration": {"fixed"},
    "local-timestamp-micros": {"long"},
    "local-timestamp-millis": {"long"},
    "local-timestamp-nanos": {"long"},
    "time-micros": {"long"},
    "time-millis": {"int"},
    "timestamp-micros": {"long"},
    "timestamp-millis": {"long"},
    "timestamp-nanos": {"long"},
    "uuid": {"string", "fixed"},
}
"""Logical type → the types that it may stand on."""
_LOGICAL_KEYS: Final = ("logicalType", "precision", "scale")


class SchemaWriter:
    """The JSON of one text. Each named type is defined once and named later."""

    def __init__(self, names: Iterable[str], *, normalize: bool = False) -> None:
        """Args:
        names: of types that appear by their names.
        normalize: leave out differences without a meaning.
        """
        self._names = set(names)
        self._normalize = normalize

    def json(self, node: AvroType, namespace: str = "") -> Any:
        """Return the JSON of a type that stands in a namespace."""
        if node.kind == "union":
            return [self.json(branch, namespace) for branch in node.schemas]
        if node.kind in TYPES_WITH_A_NAME:
            return self._type_with_a_name(node, namespace)
        result: dict[str, Any] = {"type": node.kind}
        if node.schemas:
            key = "items" if node.kind == "array" else "values"
            result[key] = self.json(node.schemas[0], namespace)
        result |= self._properties(node.properties, node)
        return node.kind if result.keys() == {"type"} else result

    def _type_with_a_name(self, node: AvroType, namespace: str) -> Any:
        if node.fullname in self._names:
            return _qualified(node.fullname, namespace)
        self._names.add(node.fullname)
        kind = node.type if self._normalize else node.kind
        result: dict[str, Any] = {"type": kind, "name": node.name}
        if node.namespace != namespace:
            result["namespace"] = node.namespace
        if node.doc is not None and (node.doc or not self._normalize):
            result["doc"] = node.doc
        if node.kind == "fixed":
            result["size"] = node.size
        elif node.kind == "enum":
            result["symbols"] = list(node.symbols)
            if node.enum_default is not None:
                result["default"] = node.enum_default
        else:
            result["fields"] = [self._field(field, node.namespace) for field in node.fields]
        result |= self._properties(node.properties, node)
        if node.aliases:
            result["aliases"] = [
                _qualified(alias, node.namespace) for alias in self._sorted(node.aliases)
            ]
        return result

    def _field(self, field: AvroField, namespace: str) -> dict[str, Any]:
        result: dict[str, Any] = {"name": field.name, "type": self.json(field.type, namespace)}
        if field.doc is not None:
            result["doc"] = field.doc
        if field.has_default:
            result["default"] = field.default
            if self._normalize and field.type.kind in {"float", "double"}:
                result["default"] = float(field.default)
        if field.order != "ascending":
            result["order"] = field.order
        if field.aliases:
            result["aliases"] = list(self._sorted(field.aliases))
        return result | self._properties(field.properties, None)

    def _properties(self, properties: dict[str, Any], node: AvroType | None) -> dict[str, Any]:
        if not self._normalize:
            return properties
        first = _LOGICAL_KEYS if node is not None and _is_logical(node) else ()
        keys = [
            *(key for key in first if key in properties),
            *sorted(properties.keys() - first),
        ]
        return {key: properties[key] for key in keys}

    def _sorted(self, aliases: tuple[str, ...]) -> Iterable[str]:
        return sorted(aliases) if self._normalize else aliases


def _qualified(name: str, namespace: str) -> str:
    space, _, simple = name.rpartition(".")
    return simple if space == namespace and simple not in _TYPE_WORDS else name


_TYPE_WORDS: Final = {*PRIMITIVES, "record", "enum", "array", "map", "union", "fixed"}
"""A name like a type keeps its namespace."""


def _is_logical(node: AvroType) -> bool:
    """Return whether a type has a logical type that may stand there."""
    name = node.properties.get("logicalType")
    if not isinstance(name, str) or node.kind not in _LOGICAL_TYPES.get(name, ()):
        return False
    if name != "decimal":
        return True
    precision, scale = node.properties.get("precision"), node.properties.get("scale", 0)
    return (
        isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision
    ) and precision > 0
