"""Reading of many values at once when some of them are bad.

A reader takes an array of values in one call, and fails as a whole. Then the array is halved until
the bad values stand alone. So a few bad values among many cost a few calls more, and every good
value is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

from minibroker.pipeline.values.arrow_types import check_times, has_times

if TYPE_CHECKING:
    from collections.abc import Mapping

_FEW: Final = 16
"""So many values are read one by one, without halving them again."""
BYTES_MAX: Final = 64 << 20
"""Bytes of values that a reader gets in one call, unless one value alone has more."""


class ValueReader(Protocol):
    """A reader of the values of one schema; used by one thread."""

    type: pa.DataType
    """Type of the arrays that `read` returns."""

    def read(self, values: pa.Array) -> pa.Array:
        """Return the values of an array of bytes, without nulls, in their order.

        Raises Exception if one of them cannot be read; which one is not said.
        """

    def read_alone(self, value: bytes) -> pa.Array:
        """Return an array of one value.

        Raises ValueError with the reason, as the rest of a sentence that begins with the value.
        """


class Salvaged(NamedTuple):
    """The values of an array, and the reasons for those that could not be read."""

    array: pa.Array
    """As long as the array of bytes; null where a value could not be read."""
    reasons: Mapping[int, str]
    """Index → reason."""


def salvaged(reader: ValueReader, values: pa.Array, *, has_bounds: bool = False) -> Salvaged:
    """Return what can be read of an array of bytes without nulls.

    Args:
        has_bounds: whether a value with a time outside of the years 1 to 9999 is bad.
    """
    if has_bounds and has_times(reader.type):
        reader = _Bounded(reader)
    reasons: dict[int, str] = {}
    parts = _parts(reader, values, 0, reasons)
    if len(parts) == 1:
        return Salvaged(parts[0], reasons)
    return Salvaged(pa.concat_arrays(parts or [pa.nulls(0, reader.type)]), reasons)


class _Bounded:
    """A reader that refuses times which a table cannot keep."""

    def __init__(self, reader: ValueReader) -> None:
        self.type = reader.type
        self._reader = reader

    def read(self, values: pa.Array) -> pa.Array:
        array = self._reader.read(values)
        check_times(array)
        return array

    def read_alone(self, value: bytes) -> pa.Array:
        array = self._reader.read_alone(value)
        check_times(array)
        return array


def _parts(
    reader: ValueReader, values: pa.Array, start: int, reasons: dict[int, str]
) -> list[pa.Array]:
    if not len(values):
        return []
    if len(values) == 1 or values.nbytes <= BYTES_MAX:
        try:
            return [reader.read(values)]
        except Exception:
            if len(values) <= _FEW:
                return [
                    _alone(reader, value.as_py(), start + index, reasons)
                    for index, value in enumerate(values)
                ]
    half = len(values) // 2
    first = _parts(reader, values.slice(0, half), start, reasons)
    return first + _parts(reader, values.slice(half), start + half, reasons)


def _alone(reader: ValueReader, value: bytes, index: int, reasons: dict[int, str]) -> pa.Array:
    try:
        return reader.read_alone(value)
    except ValueError as error:
        reasons[index] = str(error)
        return pa.nulls(1, reader.type)
