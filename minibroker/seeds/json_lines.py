"""A seed of JSON lines: one item a line, empty lines are left out. UTF-8.

file ─read_items─► items.Item, one after the other
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Final

from minibroker.seeds.errors import LinePlace, SeedError, text_of
from minibroker.seeds.items import item_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.seeds.items import Item

LINE_BYTES_MAX: Final = 32 << 20
"""Bytes of a line: brokers take records of 1 MB by default, and JSON may take forty times the
memory of its text."""


def read_items(file: IO[bytes], name: str, now_ms: int) -> Iterator[Item]:
    """Yield the items of a file.

    Args:
        file: the lines, at their start.
        name: of the file, for messages.
        now_ms: the broker's time, for relative timestamps.

    Raises:
        SeedError: a line is longer than `LINE_BYTES_MAX`, no JSON, or no item.
        OSError: the file cannot be read.
    """
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        place = LinePlace(name, number)
        if len(line) > LINE_BYTES_MAX:
            raise SeedError(
                f"{place}: the line is longer than {LINE_BYTES_MAX >> 20} MB: expected one item "
                "of a seed, as JSON, in each line"
            )
        if line.isspace():
            continue
        yield item_of(fields_of_line(line, place), place, now_ms)


def fields_of_line(line: bytes, place: LinePlace) -> dict[str, Any]:
    """Return the fields of a line. Raises SeedError."""
    try:
        fields = _decode(line.decode().strip())
    except UnicodeDecodeError as error:
        raise SeedError(
            f"{place}: byte {error.start} is not UTF-8: expected JSON in UTF-8"
        ) from None
    except RecursionError:
        raise SeedError(
            f"{place}: the JSON is too deep: expected fewer objects in objects"
        ) from None
    except ValueError as error:
        raise SeedError(f"{place}: it is no JSON ({error}): expected one item of a seed") from None
    if not isinstance(fields, dict):
        raise SeedError(f"{place}: {text_of(fields)} is no JSON object: expected an item of a seed")
    return fields


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields. Raises ValueError for a name that it has twice."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has {twice[:100]!r} twice")
    return fields


_decode: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique).decode
