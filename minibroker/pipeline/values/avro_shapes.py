"""The columns of an Avro schema, and the functions from fastavro's values to them.

Types are those of Spark's `from_avro`, except that a union of several types is text: its JSON.
There a record has its full name in `@type`, which is no name of a field. bytes and fixed are
base64. Where several types of a union are text in JSON, all but `string` are objects of `@type` and
`value`.

Types that Connect and Debezium name are those of `connect_types`. Logical types that a table has no
column for (times of a day, durations) are the plain numbers. Decimals of more than 38 digits are
text.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from minibroker.pipeline.values.arrow_types import DEPTH_MAX
from minibroker.pipeline.values.connect_types import (
    DECIMAL_DIGITS_MAX,
    MEANINGS,
    TEXT,
    VARIABLE_SCALE_DECIMAL,
    WHOLE,
    decimal_text,
    variable_scale_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.pipeline.values.connect_types import Meaning

Convert = Callable[[Any], Any]

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
_WIDE_SCALE: Final = "minibroker.scale"
"""Attribute in place of a logical type: the scale of decimals that no column can hold."""
_WIDE_UNIONS: Final = (
    ({"int", "long"}, pa.int64()),
    ({"float", "double"}, pa.float64()),
)
_OF_VALUES: Final = {"int": WHOLE, "long": WHOLE, "string": TEXT}
_TYPE: Final = "@type"
_VALUE: Final = "value"


class Shape(NamedTuple):
    """The column that a schema becomes."""

    type: pa.DataType
    is_quick: bool = False
    """True if pyruhvro knows all of it."""
    convert: Convert | None = None
    """From fastavro's value to Arrow's; None: they are the same."""
    has_bytes: bool = True
    """True if every value takes a byte at least: a list of others could have no end."""
    to_json: Convert | None = None
    """From fastavro's value to that of `json.dumps`; None: they are the same."""
    name: str = ""
    """Name of the type in a union."""
    python: type = object
    """Class of fastavro's values, if it gives no name with them."""
    units: pa.DataType | None = None
    """Type between pyruhvro's array and `type`: its times have the unit of the values."""

    @property
    def first_type(self) -> pa.DataType:
        """Return the type to which pyruhvro's array is cast first."""
        return self.type if self.units is None else self.units


def without_unknown(schema: Any) -> Any:
    """Return a schema without the logical types that have no type in a table."""
    if isinstance(schema, list):
        return [without_unknown(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {
        key: without_unknown(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
    }
    kind, logical = copy.get("type"), copy.get("logicalType")
    is_known = isinstance(kind, str) and (kind, logical) in _LOGICAL
    if logical == _DECIMAL and kind in ("bytes", "fixed"):
        is_known = copy.get("precision", 0) <= DECIMAL_DIGITS_MAX
        if not is_known:
            copy[_WIDE_SCALE] = copy.get("scale", 0)
    if logical is not None and not is_known:
        del copy["logicalType"]
    return copy


class Shapes:
    """The shapes of a schema and of the named types in it."""

    def __init__(self, *, as_numbers: bool = False, has_names: bool = False) -> None:
        """Args:
        as_numbers: whether types that only Connect and Debezium name stay numbers and bytes.
        has_names: whether fastavro tells the names of named types in unions.
        """
        self._as_numbers = as_numbers
        self._has_names = has_names
        self._shapes: dict[str, Shape] = {}
        self.has_choice = False
        """True once there was a union of several types: names are needed."""

    def shape(self, schema: Any, space: str, around: tuple[str, ...], path: str) -> Shape:
        """Return what becomes of a schema. Raises ValueError if no column can hold it.

        Args:
            schema: parsed JSON.
            space: namespace around it.
            around: full names of the records that it is in.
            path: name of the field, for the error.
        """
        if len(around) > DEPTH_MAX:
            raise ValueError(f"its field {path} is too deep for a table")
        if isinstance(schema, list):
            return self._union(schema, space, around, path)
        if isinstance(schema, str):
            return self._by_name(schema, space, around, path)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, space, around, path)
        if kind == "enum":
            return self._remember(schema, space, Shape(pa.string(), is_quick=True))
        if kind == "fixed":
            fixed = self._decimal(schema) or Shape(pa.binary(), to_json=_base64)
            has_bytes = schema["size"] > 0
            return self._remember(schema, space, fixed._replace(has_bytes=has_bytes))
        if kind == "array":
            return self._list(schema, space, (*around, ""), path)
        if kind == "map":
            return self._map(schema, space, (*around, ""), path)
        if isinstance(kind, (dict, list)):
            return self.shape(kind, space, around, path)
        return self._logical(schema, space, around, path)

    def _by_name(self, name: str, space: str, around: tuple[str, ...], path: str) -> Shape:
        if name in _PRIMITIVES:
            is_quick = name not in ("bytes", "null")
            python = _PYTHON.get(name, object)
            has_bytes, to_json = name != "null", _TO_JSON.get(name)
            return Shape(_PRIMITIVES[name], is_quick, None, has_bytes, to_json, name, python)
        full = name if "." in name or not space else f"{space}.{name}"
        if full in around or name in around:
            raise ValueError(f"its field {path} has {full} inside itself, which no column can")
        if full not in self._shapes and name in self._shapes:
            full = name
        return self._shapes[full]._replace(is_quick=False)

    def _logical(self, schema: Any, space: str, around: tuple[str, ...], path: str) -> Shape:
        kind, logical = schema["type"], schema.get("logicalType")
        if (kind, logical) in _LOGICAL:
            is_quick, python = (kind, logical) in _QUICK, date if kind == "int" else datetime
            arrow_type = _LOGICAL[kind, logical]
            return Shape(arrow_type, is_quick, to_json=_iso, name=logical, python=python)
        if kind == "bytes" and (decimal := self._decimal(schema)) is not None:
            return decimal
        meaning = MEANINGS.get(str(schema.get("connect.name")))
        if meaning is not None and meaning.of == _OF_VALUES.get(kind) and not self._as_numbers:
            return _of_meaning(meaning, kind)
        return self._by_name(kind, space, around, path)

    def _decimal(self, schema: Any) -> Shape | None:
        if schema.get("logicalType") == _DECIMAL:
            arrow_type = pa.decimal128(schema["precision"], schema.get("scale", 0))
            return Shape(arrow_type, to_json=_text, name=_DECIMAL, python=Decimal)
        if _WIDE_SCALE not in schema or self._as_numbers:
            return None
        scale = schema[_WIDE_SCALE]
        convert = _where_there(lambda value: decimal_text(value, scale))
        return Shape(pa.string(), False, convert, to_json=convert, name=_DECIMAL, python=bytes)

    def _record(self, schema: Any, space: str, around: tuple[str, ...], path: str) -> Shape:
        full, space = _full_name(schema, space)
        if full in around:
            raise ValueError(f"its field {path} has {full} inside itself, which no column can")
        shapes = {
            # A record may name itself: then its name is among those around it.
            field["name"]: self.shape(
                field["type"], space, (*around, full), f"{path}.{field['name']}"
            )
            for field in schema["fields"]
        }
        columns = {
            name: shape for name, shape in shapes.items() if not pa.types.is_null(shape.type)
        }
        if not columns:
            raise ValueError(f"its record {path} has no fields, and a column needs one")
        if full == VARIABLE_SCALE_DECIMAL and not self._as_numbers:
            text = variable_scale_text
            return self._remember(schema, space, Shape(pa.string(), False, text, to_json=text))
        converts = {name: shape.convert for name, shape in columns.items() if shape.convert}
        writers = {name: shape.to_json for name, shape in shapes.items() if shape.to_json}
        units = pa.struct([(name, shape.first_type) for name, shape in columns.items()])
        record = Shape(
            pa.struct([(name, shape.type) for name, shape in columns.items()]),
            all(shape.is_quick for shape in shapes.values()),
            _of_record(converts) if converts else None,
            any(shape.has_bytes for shape in shapes.values()),
            _of_record(writers) if writers else None,
            units=units,
        )
        return self._remember(schema, space, record)

    def _list(self, schema: Any, space: str, around: tuple[str, ...], path: str) -> Shape:
        item = self.shape(schema["items"], space, around, f"{path}[]")
        if not item.has_bytes:
            raise ValueError(f"the values of its list {path} have no bytes: it has no bound")
        return Shape(
            pa.list_(pa.field("element", item.type)),
            item.is_quick,
            None if item.convert is None else _of_list(item.convert),
            to_json=None if item.to_json is None else _of_list(item.to_json),
            name="array",
            python=list,
            units=pa.list_(pa.field("element", item.first_type)),
        )

    def _map(self, schema: Any, space: str, around: tuple[str, ...], path: str) -> Shape:
        item = self.shape(schema["values"], space, around, f"{path}{{}}")
        if pa.types.is_null(item.type):
            raise ValueError(f"the values of its map {path} are all null")
        return Shape(
            pa.map_(pa.string(), item.type),
            item.is_quick,
            _of_map(item.convert),
            to_json=None if item.to_json is None else _of_each(item.to_json),
            name="map",
            python=dict,
            units=pa.map_(pa.string(), item.first_type),
        )

    def _union(self, schema: list[Any], space: str, around: tuple[str, ...], path: str) -> Shape:
        others = [branch for branch in schema if branch != "null"]
        if not others:
            return Shape(pa.null(), has_bytes=False)
        branches = [self.shape(branch, space, around, path) for branch in others]
        if len(branches) == 1:
            is_quick = branches[0].is_quick and len(schema) <= 2
            convert, to_json = branches[0].convert, branches[0].to_json
            if self._has_names:
                convert, to_json = _without_name(convert), _without_name(to_json)
            return branches[0]._replace(
                is_quick=is_quick, has_bytes=True, convert=convert, to_json=to_json
            )
        for names, wide in _WIDE_UNIONS:
            if all(isinstance(branch, str) and branch in names for branch in others):
                return Shape(wide)
        self.has_choice = True
        to_json = _of_choice(branches)
        return Shape(
            pa.string(), convert=_where_there(lambda value: _json(to_json(value))), to_json=to_json
        )

    def _remember(self, schema: Any, space: str, shape: Shape) -> Shape:
        full = _full_name(schema, space)[0]
        self._shapes[full] = shape = shape._replace(name=full)
        return shape


def _full_name(schema: Any, space: str) -> tuple[str, str]:
    """Return the full name of a named type and its namespace."""
    name = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    space = schema.get("namespace", space)
    return (f"{space}.{name}" if space else name), space


def _of_meaning(meaning: Meaning, kind: str) -> Shape:
    convert = _where_there(meaning.convert)

    def to_json(value: Any) -> Any:
        return None if value is None else _iso(pa.scalar(convert(value), meaning.type).as_py())

    return Shape(
        meaning.type,
        meaning.unit is not None,
        convert,
        to_json=to_json,
        name=kind,
        python=_PYTHON[kind],
        units=meaning.unit,
    )


def _where_there(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _without_name(convert: Convert | None) -> Convert:
    """Return a function that also takes the pairs of name and value that fastavro makes."""

    def changed(value: Any) -> Any:
        plain = value[1] if isinstance(value, tuple) else value
        return plain if convert is None else convert(plain)

    return changed


def _of_record(converts: Mapping[str, Convert]) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        return {
            name: converts[name](item) if name in converts else item for name, item in value.items()
        }

    return convert


def _of_list(convert: Convert) -> Convert:
    return lambda value: None if value is None else [convert(item) for item in value]


def _of_each(convert: Convert) -> Convert:
    return lambda value: (
        None if value is None else {key: convert(item) for key, item in value.items()}
    )


def _of_map(convert: Convert | None) -> Convert:
    """Return a function from a dict to the pairs that Arrow takes."""
    if convert is None:
        return lambda value: None if value is None else list(value.items())
    return lambda value: (
        None if value is None else [(key, convert(item)) for key, item in value.items()]
    )


def _of_choice(branches: Sequence[Shape]) -> Convert:
    """Return the function from a value of a union to JSON that tells its type."""
    by_name = {branch.name: branch for branch in branches}
    by_class = {branch.python: branch for branch in branches}  # Avro allows one of each type
    texts = [branch for branch in branches if _is_text(branch)]

    def to_json(value: Any) -> Any:
        if value is None:
            return None
        name, item = value if isinstance(value, tuple) else (None, value)
        branch = by_name[name] if name is not None else by_class[type(item)]
        plain = item if branch.to_json is None else branch.to_json(item)
        if name is not None and pa.types.is_struct(branch.type):
            return {_TYPE: branch.name, **plain}
        if branch.name != "string" and isinstance(plain, str) and len(texts) > 1:
            return {_TYPE: branch.name, _VALUE: plain}
        return plain

    return to_json


def _is_text(branch: Shape) -> bool:
    """Return whether the values of a type are texts in JSON."""
    others = (pa.types.is_struct, pa.types.is_list, pa.types.is_map, pa.types.is_boolean)
    is_number = pa.types.is_integer(branch.type) or pa.types.is_floating(branch.type)
    return not is_number and not any(is_of(branch.type) for is_of in others)


def _json(value: Any) -> str:
    return json.dumps(value)


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _text(value: Any) -> str | None:
    return None if value is None else f"{value:f}"


def _iso(value: date | datetime | None) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")


def _number(value: float | None) -> float | str | None:
    """Return a number, or the name of one that JSON has not: NaN and the infinities."""
    return value if value is None or math.isfinite(value) else str(value)


_TO_JSON: Final[dict[str, Convert]] = {"bytes": _base64, "float": _number, "double": _number}
_PYTHON: Final[dict[str, type]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
}
