"""JSON values → Arrow: by PyArrow's reader where it can, else one by one.

PyArrow reads many objects in one call and is strict about types. It gets each value in a line with
the number of its row, and the numbers have to come back as they were: no value can pass for two, or
for a part of another one. Maps, and fields whose schema has no type, are read by Python.

    {"i":0,"v":<value>}
    {"i":1,"v":<value>}

A field that the type does not have is left out. A missing field is null. A row of a type that a
person gave has one of its fields at least. A decimal is a number or
the text of one. It has to fit its column without a digit lost.

A value may know more than its JSON says (`json_events`): then a column of its meaning gets that.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from minibroker.pipeline.values.connect_types import (
    DECIMAL,
    DECIMAL_DIGITS_MAX,
    MEANINGS,
    VARIABLE_SCALE_DECIMAL,
    decimal_text,
    number_text,
    variable_scale_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ANY: Final = {b"minibroker.json": b"any"}
"""Metadata of a text field that holds the JSON of any value."""
_MARK: Final = b"minibroker.json"
_SCALE: Final = b"minibroker.scale"

_OPENINGS_MAX: Final = 1000
"""Braces and brackets of a value that PyArrow reads: its parser calls itself for each level."""
_LONG_BITS: Final = 64
_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_EXACT: Final = Context(prec=DECIMAL_DIGITS_MAX, traps=[Inexact, InvalidOperation])
_INT: Final = {pa.int32(): (-(2**31), 2**31 - 1), pa.int64(): (-(2**63), 2**63 - 1)}


def mark_of(name: str, scale: int = 0) -> dict[bytes, bytes]:
    """Return the metadata of a field whose values have a meaning by name (`connect_types`)."""
    return {_MARK: name.encode(), _SCALE: str(scale).encode()}


class MeantNumber(int):
    """A whole number that is a date or a time."""

    meaning: pa.DataType
    moment: Any
    """For Arrow, in a column of that type."""


class MeantText(str):
    """A text of bytes that are a decimal."""

    number: str


class MeantRow(dict[str, Any]):
    """An object that is a decimal."""

    number: str


class JsonReader:
    """Reads JSON objects of one type."""

    def __init__(self, kind: pa.DataType) -> None:
        """Take the type of the values; text fields with the metadata `ANY` take any JSON."""
        self.type = kind
        self._convert = converter(kind)
        self._number = Decimal if _has_decimals(pa.field("value", kind)) else None
        self._quick: pa.Schema | None = None
        if pa.types.is_struct(kind) and _is_quick(kind):
            self._quick = pa.schema([("i", pa.int64()), ("v", kind)])

    def read(self, values: pa.Array) -> pa.Array:
        if self._quick is None:
            return pa.array([self._one(value.as_py()) for value in values], self.type)
        text = values.cast(pa.string())
        openings = pc.add(pc.count_substring(text, "{"), pc.count_substring(text, "["))
        if pc.max(openings).as_py() > _OPENINGS_MAX:
            raise ValueError("a value may be nested too deeply")
        rows = pa.array(range(len(values)), pa.int64())
        parts = ('{"i":', rows.cast(pa.string()), ',"v":', text, "}\n", "")
        lines = pc.binary_join_element_wise(*parts)
        buffer = pa.concat_arrays([lines]).buffers()[2]
        table = pj.read_json(
            pa.BufferReader(buffer),
            parse_options=pj.ParseOptions(
                explicit_schema=self._quick, unexpected_field_behavior="ignore"
            ),
            read_options=pj.ReadOptions(use_threads=False, block_size=max(buffer.size, 1)),
        )
        if table.num_rows != len(values) or not table["i"].combine_chunks().equals(rows):
            raise ValueError("a value is more or less than one JSON value")
        column = table["v"].combine_chunks()
        if column.null_count:
            raise ValueError("a value is null")
        if self._number is not None:
            column.validate(full=True)  # PyArrow reads a decimal of more digits than its column has
        return column

    def read_alone(self, value: bytes) -> pa.Array:
        try:
            return pa.array([self._one(value)], self.type)
        except RecursionError as error:
            raise ValueError("is JSON that is nested too deeply") from error
        except UnicodeDecodeError as error:
            raise ValueError("is not UTF-8") from error
        except json.JSONDecodeError as error:
            raise ValueError(f"is no JSON ({error})") from error
        except (ValueError, pa.ArrowException, OverflowError) as error:
            raise ValueError(f"does not match its schema: {error}") from error

    def _one(self, value: bytes) -> Any:
        plain = json.loads(value.decode(), parse_float=self._number)
        if plain is None:
            raise ValueError("it is null")
        return self._converted(plain)

    def _converted(self, value: Any) -> Any:
        return self._convert(value, "value")


class RowReader(JsonReader):
    """Reads rows of a type that a person gave. A value without any of its fields is no row of it:
    it is of another schema, and would be a row of nulls.
    """

    def read(self, values: pa.Array) -> pa.Array:
        column = super().read(values)
        if self._quick is not None:
            is_empty = reduce(pc.and_, (field.is_null() for field in column.flatten()))
            for value in values.filter(is_empty):
                self._one(value.as_py())
        return column

    def _converted(self, value: Any) -> Any:
        row = super()._converted(value)
        check_row(row, self.type)
        return row


def check_row(row: Mapping[str, Any], kind: pa.DataType) -> None:
    """Raise ValueError for a row that has none of the fields of its type."""
    if not row:
        raise ValueError(f"it has none of the fields {', '.join(field.name for field in kind)}")


def table_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of JSON values for one of Spark's. Raises ValueError: JSON has no such."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, table_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", table_type(kind.value_type)))
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return pa.map_(pa.string(), table_type(kind.item_type))
    if pa.types.is_integer(kind):
        return pa.int64() if kind.bit_width == _LONG_BITS else pa.int32()
    if kind.equals(pa.timestamp("us")):
        raise ValueError("a TIMESTAMP_NTZ is no JSON value: expected TIMESTAMP")
    simple = (pa.types.is_floating, pa.types.is_string, pa.types.is_boolean, pa.types.is_binary)
    others = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal128)
    if any(is_of(kind) for is_of in (*simple, *others)):
        return kind
    raise ValueError(f"{kind} is no type of a JSON value here")


def converter(kind: pa.DataType, field: pa.Field | None = None) -> Callable[[Any, str], Any]:
    """Return the function from parsed JSON and its name to what Arrow takes for this type.

    Args:
        field: of the type, whose metadata may say more of the values.

    The function raises ValueError for JSON of another type.
    """
    if field is not None and (mark := _mark(field)):
        return _of_any if mark == ANY[_MARK] else _of_meaning(mark.decode(), field)
    if pa.types.is_struct(kind):
        return _of_struct(kind)
    if pa.types.is_list(kind):
        return _of_list(converter(kind.value_type, kind.value_field))
    if pa.types.is_map(kind):
        return _of_map(converter(kind.item_type, kind.item_field))
    if kind in _INT:
        return _of_int(kind)
    if pa.types.is_floating(kind):
        return lambda value, path: None if value is None else float(_checked(value, path))
    if pa.types.is_decimal(kind):
        return _of_decimal(kind)
    return lambda value, path: None if value is None else _scalar(value, path, kind)


def _is_quick(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(
            not _mark(field) and _is_quick(field.type) for field in kind
        )
    if pa.types.is_list(kind):
        return not _mark(kind.value_field) and _is_quick(kind.value_type)
    simple = (pa.float32(), pa.float64(), pa.string(), pa.bool_())
    return kind in _INT or kind in simple or pa.types.is_decimal(kind)


def _has_decimals(field: pa.Field) -> bool:
    kind = field.type
    if pa.types.is_struct(kind):
        return any(map(_has_decimals, kind))
    if pa.types.is_list(kind):
        return _has_decimals(kind.value_field)
    if pa.types.is_map(kind):
        return _has_decimals(kind.item_field)
    return pa.types.is_decimal(kind) or _mark(field) == DECIMAL.encode()


def _mark(field: pa.Field) -> bytes:
    return bytes((field.metadata or {}).get(_MARK, b""))


def _of_any(value: Any, path: str) -> Any:
    return None if value is None else json.dumps(value, default=float)


def _of_meaning(name: str, field: pa.Field) -> Callable[[Any, str], Any]:
    """Return the function for values that a JSON Schema of Connect names."""
    plain = converter(field.type)
    scale = int(field.metadata[_SCALE])

    def convert(value: Any, path: str) -> Any:
        if name == VARIABLE_SCALE_DECIMAL:
            return variable_scale_text(value)
        if name == DECIMAL and isinstance(value, str):
            value = decimal_text(base64.b64decode(value, validate=True), scale)
        elif name == DECIMAL and pa.types.is_string(field.type) and value is not None:
            value = number_text(Decimal(_checked(value, path)))
        elif (meaning := MEANINGS.get(name)) is not None and type(value) is int:
            return meaning.convert(value)
        return plain(value, path)

    return convert


def _of_struct(kind: pa.DataType) -> Callable[[Any, str], Any]:
    fields = {field.name: converter(field.type, field) for field in kind}

    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{path} is {_kind(value)} and has to be an object")
        return {
            name: fields[name](item, f"{path}.{name}")
            for name, item in value.items()
            if name in fields
        }

    return convert


def _of_list(convert_item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise ValueError(f"{path} is {_kind(value)} and has to be an array")
        return [convert_item(item, f"{path}[]") for item in value]

    return convert


def _of_map(convert_item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{path} is {_kind(value)} and has to be an object")
        return [(name, convert_item(item, f"{path}.{name}")) for name, item in value.items()]

    return convert


def _of_int(kind: pa.DataType) -> Callable[[Any, str], Any]:
    least, most = _INT[kind]

    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{path} is {_kind(value)} and has to be a whole number")
        if not least <= value <= most:
            raise ValueError(f"{path} is {value}, which is no {kind}")
        return value

    return convert


def _of_decimal(kind: pa.DataType) -> Callable[[Any, str], Any]:
    places = Decimal((0, (1,), -kind.scale))

    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        number = value if type(value) is str else _checked(value, path)
        if isinstance(number, str) and not _DECIMAL.fullmatch(number):
            raise ValueError(f"{path} is {number[:40]!r}, which is no {kind}")
        try:
            exact = Decimal(number).quantize(places, context=_EXACT)
        except ArithmeticError as error:
            raise ValueError(f"{path} is {str(value)[:40]}, which is no {kind}") from error
        if exact and exact.adjusted() >= kind.precision - kind.scale:
            raise ValueError(f"{path} is {str(value)[:40]}, which is no {kind}")
        return exact

    return convert


def _checked(value: Any, path: str) -> Any:
    """Return a number, or the text of a decimal."""
    if isinstance(value, MeantText | MeantRow):
        return value.number
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError(f"{path} is {_kind(value)} and has to be a number")
    return value


def _scalar(value: Any, path: str, kind: pa.DataType) -> Any:
    """Return a text, a boolean, a time or bytes as Arrow takes it."""
    if pa.types.is_boolean(kind):
        if not isinstance(value, bool):
            raise ValueError(f"{path} is {_kind(value)} and has to be true or false")
        return value
    if isinstance(value, MeantNumber) and value.meaning.id == kind.id:
        return value.moment
    if isinstance(value, MeantText | MeantRow) and pa.types.is_string(kind):
        return value.number
    if not isinstance(value, str):
        raise ValueError(f"{path} is {_kind(value)} and has to be a string")
    if pa.types.is_string(kind):
        value.encode()  # half of a surrogate pair is no text
        return value
    try:
        if pa.types.is_date(kind):
            return date.fromisoformat(value)
        if pa.types.is_timestamp(kind):
            when = datetime.fromisoformat(value)
            return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        if pa.types.is_binary(kind):
            return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"{path} is {value[:40]!r}, which is no {kind}") from error
    return pa.scalar(value).cast(kind).as_py()


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    names = ((dict, "an object"), (list, "an array"), (str, "a string"))
    return next((name for kind, name in names if isinstance(value, kind)), "a number")
