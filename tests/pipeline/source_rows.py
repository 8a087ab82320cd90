"""Rows of the data source in one order, with values that compare."""

from __future__ import annotations

from typing import Any

Rows = list[tuple[Any, ...]]


def sorted_rows(source_rows: Any) -> Rows:
    """Return rows by topic, partition and offset; bytes as bytes, headers as pairs."""
    rows = [tuple(_plain(value) for value in row) for row in source_rows]
    return sorted(rows, key=lambda row: (row[2], row[3], row[4]))


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [tuple(_plain(part) for part in pair) for pair in value]
    return value
