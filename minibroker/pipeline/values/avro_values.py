"""Avro values → Arrow: by pyruhvro where it knows every type of a schema, else by fastavro.

pyruhvro reads an array of values in one call, about fifty times faster than fastavro makes dicts.
It does not know bytes, fixed, decimals and unions of several types. fastavro reads these schemas,
and gives the reason for a value that pyruhvro does not read.

Types are those of Spark's `from_avro`, except that a union of several types is text: its JSON.
Logical types that a table has no column for (times of a day, durations) are the plain numbers.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import fastavro
import pyarrow as pa
import pyruhvro

from minibroker.pipeline.values.arrow_types import DEPTH_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PRIMITIVES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "null": pa.null(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_QUICK: Final = (("int", "date"), ("long", "timestamp-millis"), ("long", "timestamp-micros"))
"""Logical types that pyruhvro reads."""
_DECIMAL: Final = "decimal"
_DECIMAL_DIGITS_MAX: Final = 38
_WIDE_UNIONS: Final = (
    ({"int", "long"}, pa.int64()),
    ({"float", "double"}, pa.float64()),
)


class AvroReader:
    """Reads the values of one schema."""

    def __init__(self, schema: str, named: Sequence[str] = ()) -> None:
        """Take the text of a schema.

        Args:
            schema: JSON.
            named: texts of the schemas that it refers to, each after those that it needs itself.

        Raises ValueError: it is no schema, or a table has no columns for it.
        """
        names: dict[str, Any] = {}
        try:
            others = [_without_unknown(json.loads(text)) for text in named]
            for other in others:
                fastavro.parse_schema(other, named_schemas=names)
            plain = _without_unknown(json.loads(schema))
            self._parsed = fastavro.parse_schema(plain, named_schemas=names)
        except Exception as error:
            raise ValueError(f"it is no Avro schema ({type(error).__name__}: {error})") from error
        shapes = _Shapes()
        for other in others:
            shapes.shape(other, "", (), "value")
        found = shapes.shape(plain, "", (), "value")
        self.type: pa.DataType = found.type
        self._convert = found.convert
        is_quick = found.is_quick and not named and pa.types.is_struct(found.type)
        self._quick = json.dumps(plain) if is_quick else None

    def read(self, values: pa.Array) -> pa.Array:
        if self._quick is None:
            return pa.array([self._one(value.as_py()) for value in values], self.type)
        batch = pyruhvro.deserialize_array(values.to_pylist(), self._quick)
        batch.validate(full=True)  # pyruhvro does not look whether a text is UTF-8
        return batch.to_struct_array().cast(self.type)

    def read_alone(self, value: bytes) -> pa.Array:
        try:
            return pa.array([self._one(value)], self.type)
        except Exception as error:
            detail = f": {error}" if str(error) else ""
            raise ValueError(
                f"is no Avro of this schema ({type(error).__name__}{detail})"
            ) from error

    def _one(self, value: bytes) -> Any:
        found = fastavro.schemaless_reader(io.BytesIO(value), self._parsed, None)
        return found if self._convert is None else self._convert(found)


class _Shape(NamedTuple):
    """The column that a schema becomes."""

    type: pa.DataType
    is_quick: bool = False
    """True if pyruhvro knows all of it."""
    convert: Callable[[Any], Any] | None = None
    """From fastavro's value to Arrow's; None: they are the same."""
    has_bytes: bool = True
    """True if every value takes a byte at least: a list of others could have no end."""


class _Shapes:
    """The shapes of a schema and of the named types in it."""

    def __init__(self) -> None:
        self._named: dict[str, _Shape] = {}

    def shape(self, schema: Any, space: str, around: tuple[str, ...], where: str) -> _Shape:
        """Return what becomes of a schema. Raises ValueError if no column can hold it.

        Args:
            schema: parsed JSON.
            space: namespace around it.
            around: full names of the records that it is in.
            where: name of the field, for the error.
        """
        if len(around) > DEPTH_MAX:
            raise ValueError(f"its field {where} is too deep for a table")
        if isinstance(schema, list):
            return self._union(schema, space, around, where)
        if isinstance(schema, str):
            return self._by_name(schema, space, around, where)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, space, around, where)
        if kind == "enum":
            return self._remember(schema, space, _Shape(pa.string(), is_quick=True))
        if kind == "fixed":
            size = schema["size"]
            found = self._decimal(schema) or pa.binary()
            return self._remember(schema, space, _Shape(found, has_bytes=size > 0))
        if kind == "array":
            return self._list(schema, space, (*around, ""), where)
        if kind == "map":
            return self._map(schema, space, (*around, ""), where)
        if isinstance(kind, (dict, list)):
            return self.shape(kind, space, around, where)
        return self._logical(schema, space, around, where)

    def _by_name(self, name: str, space: str, around: tuple[str, ...], where: str) -> _Shape:
        if name in _PRIMITIVES:
            return _Shape(_PRIMITIVES[name], name not in ("bytes", "null"), None, name != "null")
        full = name if "." in name or not space else f"{space}.{name}"
        if full in around or name in around:
            raise ValueError(f"its field {where} has {full} inside itself, which no column can")
        if full not in self._named and name in self._named:
            full = name
        return self._named[full]._replace(is_quick=False)

    def _logical(self, schema: Any, space: str, around: tuple[str, ...], where: str) -> _Shape:
        kind, logical = schema["type"], schema.get("logicalType")
        if (kind, logical) in _LOGICAL:
            return _Shape(_LOGICAL[kind, logical], (kind, logical) in _QUICK)
        if kind == "bytes" and (decimal := self._decimal(schema)) is not None:
            return _Shape(decimal)
        return self._by_name(kind, space, around, where)

    def _decimal(self, schema: Any) -> pa.DataType | None:
        if schema.get("logicalType") != _DECIMAL:
            return None
        return pa.decimal128(schema["precision"], schema.get("scale", 0))

    def _record(self, schema: Any, space: str, around: tuple[str, ...], where: str) -> _Shape:
        full, space = _full_name(schema, space)
        if full in around:
            raise ValueError(f"its field {where} has {full} inside itself, which no column can")
        fields, converts, is_quick, has_bytes = [], {}, bool(schema["fields"]), False
        for field in schema["fields"]:
            name = field["name"]
            # A record may name itself: then its name is among those around it.
            found = self.shape(field["type"], space, (*around, full), f"{where}.{name}")
            has_bytes |= found.has_bytes
            is_quick &= found.is_quick
            if pa.types.is_null(found.type):
                continue  # no table has a column for it
            fields.append(pa.field(name, found.type))
            if found.convert is not None:
                converts[name] = found.convert
        if not fields:
            raise ValueError(f"its record {where} has no fields, and a column needs one")
        convert = _of_record(converts) if converts else None
        made = _Shape(pa.struct(fields), is_quick, convert, has_bytes)
        return self._remember(schema, space, made)

    def _list(self, schema: Any, space: str, around: tuple[str, ...], where: str) -> _Shape:
        item = self.shape(schema["items"], space, around, f"{where}[]")
        if not item.has_bytes:
            raise ValueError(f"the values of its list {where} have no bytes: it has no bound")
        convert = None if item.convert is None else _of_list(item.convert)
        return _Shape(pa.list_(pa.field("element", item.type)), item.is_quick, convert)

    def _map(self, schema: Any, space: str, around: tuple[str, ...], where: str) -> _Shape:
        item = self.shape(schema["values"], space, around, f"{where}{{}}")
        if pa.types.is_null(item.type):
            raise ValueError(f"the values of its map {where} are all null")
        return _Shape(pa.map_(pa.string(), item.type), item.is_quick, _of_map(item.convert))

    def _union(self, schema: list[Any], space: str, around: tuple[str, ...], where: str) -> _Shape:
        others = [branch for branch in schema if branch != "null"]
        if not others:
            return _Shape(pa.null(), has_bytes=False)
        found = [self.shape(branch, space, around, where) for branch in others]
        if len(found) == 1:
            is_quick = found[0].is_quick and len(schema) <= 2
            return found[0]._replace(is_quick=is_quick, has_bytes=True)
        for names, wide in _WIDE_UNIONS:
            if all(isinstance(branch, str) and branch in names for branch in others):
                return _Shape(wide)
        return _Shape(pa.string(), convert=_json)

    def _remember(self, schema: Any, space: str, made: _Shape) -> _Shape:
        self._named[_full_name(schema, space)[0]] = made
        return made


def _full_name(schema: Any, space: str) -> tuple[str, str]:
    """Return the full name of a named type and its namespace."""
    name = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    space = schema.get("namespace", space)
    return (f"{space}.{name}" if space else name), space


def _without_unknown(schema: Any) -> Any:
    """Return a schema without the logical types that have no type in a table."""
    if isinstance(schema, list):
        return [_without_unknown(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: _without_unknown(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
    }
    kind, logical = found.get("type"), found.get("logicalType")
    is_decimal = logical == _DECIMAL and (
        kind in ("bytes", "fixed") and found.get("precision", 0) <= _DECIMAL_DIGITS_MAX
    )
    is_known = isinstance(kind, str) and (kind, logical) in _LOGICAL
    if logical is not None and not is_decimal and not is_known:
        del found["logicalType"]
    return found


def _of_record(converts: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        return {
            name: converts[name](found) if name in converts else found
            for name, found in value.items()
        }

    return convert


def _of_list(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else [convert(item) for item in value]


def _of_map(convert: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Return a function from a dict to the pairs that Arrow takes."""
    if convert is None:
        return lambda value: None if value is None else list(value.items())
    return lambda value: (
        None if value is None else [(key, convert(item)) for key, item in value.items()]
    )


def _json(value: Any) -> Any:
    return None if value is None else json.dumps(value, default=str)
