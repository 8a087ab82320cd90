"""Types of columns over the time of a table: the union of two, and what a table can take in.

A table never loses a column. A later schema adds fields, also inside structs, lists and maps, and
widens numbers. Arrow's own cast does the rest: it adds the missing fields as nulls.
"""

from __future__ import annotations

from datetime import date
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

DEPTH_MAX: Final = 32
"""Structs, lists and maps inside each other, at most."""

WIDER: Final = (
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
)
"""A narrow type and a wide one that holds all its values, for every table format."""


class _Bounds(NamedTuple):
    """The times of a column, as the numbers that Arrow keeps."""

    number: pa.DataType
    least: int
    most: int


_DAY_US: Final = 86_400_000_000
_FIRST_DAY: Final = date.min.toordinal() - date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal() - date(1970, 1, 1).toordinal()
_BOUNDS: Final = {
    pa.timestamp("us").id: _Bounds(pa.int64(), _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1),
    pa.date32().id: _Bounds(pa.int32(), _FIRST_DAY, _LAST_DAY),
}
"""Times in microseconds and dates, the only ones of decoded columns."""


class TypeConflictError(ValueError):
    """Two types that no column can hold together; the text names the field."""


def united(old: pa.DataType, new: pa.DataType, path: str = "value") -> pa.DataType:
    """Return a type that holds the values of both.

    Args:
        old: of the column; its fields keep their order and names.
        path: name of the column, for the error.

    Raises:
        TypeConflictError: there is none.
    """
    if old.equals(new):
        return old
    for narrow, wide in WIDER:
        if {old, new} == {narrow, wide}:
            return wide
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return _united_struct(old, new, path)
    if pa.types.is_list(old) and pa.types.is_list(new):
        item = united(old.value_type, new.value_type, f"{path}[]")
        return pa.list_(pa.field("element", item))
    if pa.types.is_map(old) and pa.types.is_map(new) and old.key_type.equals(new.key_type):
        return pa.map_(old.key_type, united(old.item_type, new.item_type, f"{path}{{}}"))
    if _is_decimal(old) and _is_decimal(new) and old.scale == new.scale:
        return pa.decimal128(max(old.precision, new.precision), old.scale)
    raise TypeConflictError(_conflict(old, new, path))


def widened(old: pa.DataType, new: pa.DataType, path: str = "value") -> list[str]:
    """Return a phrase for each field whose type in `new` is another than in `old`."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return [
            name
            for field in old
            for name in widened(field.type, new.field(field.name).type, f"{path}.{field.name}")
        ]
    if pa.types.is_list(old) and pa.types.is_list(new):
        return widened(old.value_type, new.value_type, f"{path}[]")
    if pa.types.is_map(old) and pa.types.is_map(new):
        return widened(old.item_type, new.item_type, f"{path}{{}}")
    return [] if old.equals(new) else [_conflict(old, new, path)]


def check_times(values: pa.Array, path: str = "") -> None:
    """Raise ValueError for a time outside of the years 1 to 9999; the text names its field."""
    kind = values.type
    if pa.types.is_struct(kind):
        for index, field in enumerate(kind):
            if has_times(field.type):
                name = f"{path}.{field.name}" if path else field.name
                check_times(pc.struct_field(values, [index]), name)
    elif pa.types.is_list(kind):
        check_times(values.flatten(), f"{path}[]")
    elif pa.types.is_map(kind):
        check_times(values.items, f"{path}{{}}")
    elif bounds := _BOUNDS.get(kind.id):
        span = pc.min_max(values.cast(bounds.number)).as_py()
        if (
            span["min"] is not None
            and not bounds.least <= span["min"] <= span["max"] <= bounds.most
        ):
            raise ValueError(f"has a time outside of the years 1 to 9999 in {path or 'it'}")


def has_times(kind: pa.DataType) -> bool:
    """Return whether values of a type have times or dates."""
    if pa.types.is_struct(kind):
        return any(has_times(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_times(kind.value_type)
    if pa.types.is_map(kind):
        return has_times(kind.item_type)
    return kind.id in _BOUNDS


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a table's type without what only its format needs: ids, large offsets, names."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def words_of(kind: pa.DataType) -> str:
    """Return a type in words for people."""
    if pa.types.is_struct(kind):
        return "a record"
    if pa.types.is_list(kind):
        return "a list"
    return "a map" if pa.types.is_map(kind) else f"{kind}"


def _conflict(old: pa.DataType, new: pa.DataType, path: str) -> str:
    return f"{path} is {words_of(new)} there and {words_of(old)} in the table"


def _united_struct(old: pa.DataType, new: pa.DataType, path: str) -> pa.DataType:
    fields = []
    for field in old:
        index = new.get_field_index(field.name)
        type_ = field.type
        if index >= 0:
            type_ = united(field.type, new.field(index).type, f"{path}.{field.name}")
        fields.append(pa.field(field.name, type_))
    names = {field.name for field in old}
    lower = {name.lower(): name for name in names}
    for field in new:
        if field.name in names:
            continue
        _check_case(field.name, lower, path)
        check_names(field.type, f"{path}.{field.name}")
        fields.append(pa.field(field.name, field.type))
    return pa.struct(fields)


def check_names(kind: pa.DataType, path: str = "value") -> None:
    """Raise TypeConflictError for two fields of a struct that no table can tell apart."""
    if pa.types.is_struct(kind):
        lower: dict[str, str] = {}
        for field in kind:
            _check_case(field.name, lower, path)
            check_names(field.type, f"{path}.{field.name}")
    elif pa.types.is_list(kind):
        check_names(kind.value_type, f"{path}[]")
    elif pa.types.is_map(kind):
        check_names(kind.item_type, f"{path}{{}}")


def _check_case(name: str, lower: dict[str, str], path: str) -> None:
    """Add a name to those in lower case. Raises TypeConflictError if it is there already."""
    other = lower.setdefault(name.lower(), name)
    if other != name:
        raise TypeConflictError(
            f"{path}.{name} differs from {path}.{other} by upper and lower case only"
        )


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind))
