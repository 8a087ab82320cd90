"""Masks over the rows of an Arrow batch: keys and values as bytes, and headers.

    columns of bytes ─► masking.Masker, row by row ─► the same columns, found, reason

Spark calls it for rows of JSON (`operations.frames`), and `masked_columns` for what stays bytes
beside decoded columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.operations.masking import Masker

_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
_TYPES: Final = {"key": pa.binary(), "value": pa.binary(), "headers": pa.list_(_HEADER)}


def masked_rows(masker: Masker, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    """Return a struct of the masked columns, the place bits as `found`, and `reason`.

    Args:
        names: of the columns: some of `key`, `value` and `headers`.
        columns: of one batch, one at least.
    """
    by_column = dict(zip(names, (column.to_pylist() for column in columns), strict=True))
    missing = [None] * len(columns[0])
    results = [
        masker.apply(key, value, _pairs(headers))
        for key, value, headers in zip(
            by_column.get("key", missing),
            by_column.get("value", missing),
            by_column.get("headers", missing),
            strict=True,
        )
    ]
    arrays = [
        pa.array([_structs(getattr(result, name)) for result in results], _TYPES[name])
        if name == "headers"
        else pa.array([getattr(result, name) for result in results], _TYPES[name])
        for name in names
    ]
    arrays.append(pa.array([result.place_bits for result in results], pa.int64()))
    arrays.append(pa.array([result.reason for result in results], pa.string()))
    return pa.StructArray.from_arrays(arrays, [*names, "found", "reason"])


def _pairs(headers: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]] | None:
    return None if headers is None else [(header["key"], header["value"]) for header in headers]


def _structs(headers: list[tuple[str, bytes | None]] | None) -> list[dict[str, Any]] | None:
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
