"""JSON values → Arrow: by PyArrow's reader where it can, else one by one.

PyArrow reads many objects in one call and is strict about types. It gets each value in a line with
the number of its row, and the numbers have to come back as they were: no value can pass for two, or
for a part of another one. Maps, and fields whose schema has no type, are read by Python.

    {"i":0,"v":<value>}
    {"i":1,"v":<value>}

A field that the type does not have is left out. A missing field is null.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

if TYPE_CHECKING:
    from collections.abc import Callable

ANY: Final = {b"minibroker.json": b"any"}
"""Metadata of a text field that holds the JSON of any value."""

_OPENINGS_MAX: Final = 1000
"""Braces and brackets of a value that PyArrow reads: its parser calls itself for each level."""
_LONG_BITS: Final = 64
_INT: Final = {pa.int32(): (-(2**31), 2**31 - 1), pa.int64(): (-(2**63), 2**63 - 1)}


class JsonReader:
    """Reads JSON objects of one type."""

    def __init__(self, found: pa.DataType) -> None:
        """Take the type of the values; text fields with the metadata `ANY` take any JSON."""
        self.type = found
        self._convert = converter(found)
        self._quick: pa.Schema | None = None
        if pa.types.is_struct(found) and _is_quick(found):
            self._quick = pa.schema([("i", pa.int64()), ("v", found)])

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
        found = table["v"].combine_chunks()
        if found.null_count:
            raise ValueError("a value is null")
        return found

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
        found = json.loads(value.decode())
        if found is None:
            raise ValueError("it is null")
        return self._converted(found)

    def _converted(self, value: Any) -> Any:
        return self._convert(value, "value")


def table_type(found: pa.DataType) -> pa.DataType:
    """Return the type of JSON values for one of Spark's. Raises ValueError: JSON has no such."""
    if pa.types.is_struct(found):
        return pa.struct([pa.field(field.name, table_type(field.type)) for field in found])
    if pa.types.is_list(found):
        return pa.list_(pa.field("element", table_type(found.value_type)))
    if pa.types.is_map(found) and pa.types.is_string(found.key_type):
        return pa.map_(pa.string(), table_type(found.item_type))
    if pa.types.is_integer(found):
        return pa.int64() if found.bit_width == _LONG_BITS else pa.int32()
    if found.equals(pa.timestamp("us")):
        raise ValueError("a TIMESTAMP_NTZ is no JSON value: expected TIMESTAMP")
    simple = (pa.types.is_floating, pa.types.is_string, pa.types.is_boolean, pa.types.is_binary)
    if any(is_of(found) for is_of in (*simple, pa.types.is_date, pa.types.is_timestamp)):
        return found
    raise ValueError(f"{found} is no type of a JSON value here")


def converter(found: pa.DataType, *, is_any: bool = False) -> Callable[[Any, str], Any]:
    """Return the function from parsed JSON and its name to what Arrow takes for this type.

    The function raises ValueError for JSON of another type.
    """
    if is_any:
        return lambda value, where: None if value is None else json.dumps(value)
    if pa.types.is_struct(found):
        return _of_struct(found)
    if pa.types.is_list(found):
        item = converter(found.value_type, is_any=_is_any(found.value_field))
        return _of_list(item)
    if pa.types.is_map(found):
        return _of_map(converter(found.item_type, is_any=_is_any(found.item_field)))
    if found in _INT:
        return _of_int(found)
    if pa.types.is_floating(found):
        return lambda value, where: None if value is None else float(_checked(value, where, found))
    return lambda value, where: None if value is None else _scalar(value, where, found)


def _is_quick(found: pa.DataType) -> bool:
    if pa.types.is_struct(found):
        return found.num_fields > 0 and all(
            not _is_any(field) and _is_quick(field.type) for field in found
        )
    if pa.types.is_list(found):
        return not _is_any(found.value_field) and _is_quick(found.value_type)
    return found in _INT or found in (pa.float32(), pa.float64(), pa.string(), pa.bool_())


def _is_any(field: pa.Field) -> bool:
    return bool(field.metadata and field.metadata.get(b"minibroker.json") == b"any")


def _of_struct(found: pa.DataType) -> Callable[[Any, str], Any]:
    fields = {field.name: converter(field.type, is_any=_is_any(field)) for field in found}

    def convert(value: Any, where: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {_kind(value)} and has to be an object")
        return {
            name: fields[name](item, f"{where}.{name}")
            for name, item in value.items()
            if name in fields
        }

    return convert


def _of_list(convert_item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def convert(value: Any, where: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise ValueError(f"{where} is {_kind(value)} and has to be an array")
        return [convert_item(item, f"{where}[]") for item in value]

    return convert


def _of_map(convert_item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def convert(value: Any, where: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {_kind(value)} and has to be an object")
        return [(name, convert_item(item, f"{where}.{name}")) for name, item in value.items()]

    return convert


def _of_int(found: pa.DataType) -> Callable[[Any, str], Any]:
    least, most = _INT[found]

    def convert(value: Any, where: str) -> Any:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{where} is {_kind(value)} and has to be a whole number")
        if not least <= value <= most:
            raise ValueError(f"{where} is {value}, which is no {found}")
        return value

    return convert


def _checked(value: Any, where: str, found: pa.DataType) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{where} is {_kind(value)} and has to be a number")
    return value


def _scalar(value: Any, where: str, found: pa.DataType) -> Any:
    """Return a text, a boolean, a time or bytes as Arrow takes it."""
    if pa.types.is_boolean(found):
        if not isinstance(value, bool):
            raise ValueError(f"{where} is {_kind(value)} and has to be true or false")
        return value
    if not isinstance(value, str):
        raise ValueError(f"{where} is {_kind(value)} and has to be a string")
    if pa.types.is_string(found):
        value.encode()  # half of a surrogate pair is no text
        return value
    try:
        if pa.types.is_date(found):
            return date.fromisoformat(value)
        if pa.types.is_timestamp(found):
            when = datetime.fromisoformat(value)
            return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        if pa.types.is_binary(found):
            return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"{where} is {value[:40]!r}, which is no {found}") from error
    return pa.scalar(value).cast(found).as_py()


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "an array", str: "a string", type(None): "null"}
    return names.get(type(value), "a number")
