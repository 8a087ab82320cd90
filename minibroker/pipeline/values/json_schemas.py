"""The columns of a JSON Schema.

`properties` become a struct, `items` a list, `additionalProperties` with a schema a map. `integer`
is int64, `number` is float64, `string` is a string, whatever its `format`. A type that may also be
null is that type. Any other schema (none, several types, `oneOf` of more than one) is text: the
JSON of the value. Constraints (`minimum`, `pattern`, `required`) are the producer's: a value is
checked against the types only. A field whose `title` is a name of Connect's has the type that
`connect_types` gives it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from minibroker.pipeline.values.arrow_types import DEPTH_MAX
from minibroker.pipeline.values.connect_types import (
    DECIMAL,
    MEANINGS,
    TEXT,
    VARIABLE_SCALE_DECIMAL,
    WHOLE,
    decimal_of,
)
from minibroker.pipeline.values.json_values import ANY, mark_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIMPLE: Final = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}

_VALUES: Final = {"integer": WHOLE, "string": TEXT}


def type_of(
    schema: str, references: Mapping[str, str] | None = None, *, as_numbers: bool = False
) -> pa.DataType:
    """Return the type of the values of a JSON Schema.

    Args:
        schema: JSON.
        references: name of a reference → text of the schema that it means.
        as_numbers: whether what Connect names stays numbers and text.

    Raises ValueError: it is no JSON Schema, or no columns can hold its values.
    """
    try:
        plain = json.loads(schema)
        others = {name: json.loads(text) for name, text in (references or {}).items()}
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error})") from error
    field = _Schemas(plain, others, as_numbers=as_numbers).field("value", plain, 0)
    if not pa.types.is_struct(field.type):
        raise ValueError("it is no schema of an object with properties")
    return field.type


class _Schemas:
    """A schema, and those that it refers to."""

    def __init__(self, root: Any, references: Mapping[str, Any], *, as_numbers: bool) -> None:
        self._root = root
        self._as_numbers = as_numbers
        self._references = references

    def field(self, name: str, schema: Any, depth: int) -> pa.Field:
        """Return the column of a schema. Raises ValueError."""
        if depth > DEPTH_MAX:
            raise ValueError(f"its field {name} is too deep for a table, or inside itself")
        if not isinstance(schema, dict):
            return _any(name)
        if "$ref" in schema:
            return self.field(name, self._target(str(schema["$ref"])), depth + 1)
        schema = _without_null(schema)
        for key in ("allOf", "oneOf", "anyOf"):
            if len(schema.get(key) or ()) == 1 and "type" not in schema:
                return self.field(name, schema[key][0], depth + 1)
        if not self._as_numbers and (meant := _meant(name, schema)) is not None:
            return meant
        kind = schema.get("type")
        if kind is None and isinstance(schema.get("properties"), dict):
            kind = "object"
        if kind == "object":
            return self._object(name, schema, depth)
        if kind == "array" and isinstance(schema.get("items"), dict):
            item = self.field("element", schema["items"], depth + 1)
            return pa.field(name, pa.list_(item))
        if isinstance(kind, str) and kind in _SIMPLE:
            return pa.field(name, _SIMPLE[kind])
        if kind is None and _is_of_texts(schema.get("enum")):
            return pa.field(name, pa.string())
        return _any(name)

    def _object(self, name: str, schema: Any, depth: int) -> pa.Field:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            fields = [self.field(key, properties[key], depth + 1) for key in properties]
            return pa.field(name, pa.struct(fields))
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and more:
            item = self.field("value", more, depth + 1)
            return pa.field(name, pa.map_(pa.string(), item))
        return _any(name)

    def _target(self, reference: str) -> Any:
        document, _, pointer = reference.partition("#")
        target = self._references.get(document) if document else self._root
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        if target is None:
            raise ValueError(f"it refers to {reference}, which is not there")
        return target


def _meant(name: str, schema: Mapping[str, Any]) -> pa.Field | None:
    """Return the column of a schema that Connect names, None if it names none."""
    title = schema.get("title")
    if title == VARIABLE_SCALE_DECIMAL:
        return pa.field(name, pa.string(), metadata=mark_of(title))
    if title == DECIMAL:
        parameters = schema.get("connect.parameters") or {}
        try:
            digits = parameters.get("connect.decimal.precision")
            scale = int(parameters.get("scale", 0))
            kind = decimal_of(None if digits is None else int(digits), scale)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"its field {name} is no decimal of Connect ({error})") from error
        return pa.field(name, kind, metadata=mark_of(title, scale))
    if not isinstance(title, str) or (meaning := MEANINGS.get(title)) is None:
        return None
    if _VALUES.get(str(schema.get("type"))) != meaning.of:
        return None
    return pa.field(name, meaning.type, metadata=mark_of(title))


def _any(name: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata=ANY)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without the permission to be null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        others = [name for name in kind if name != "null"]
        schema = {**schema, "type": others[0] if len(others) == 1 else others}
    for key in ("oneOf", "anyOf"):
        options = schema.get(key)
        if isinstance(options, list):
            choices = [option for option in options if option != {"type": "null"}]
            schema = {**schema, key: choices}
    return schema


def _is_of_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
