"""The places that records have, beside those that masks and selected fields name. Pure.

A mask for a place that no record has is mostly a wrong name, and then the right one would be
written unmasked. So a job looks at its first batch before it writes any of it:

    records ─► MetPlaces ─► all places are there ─► the batch is written
                       └──► one is missing ─► JobUsageError with the names that are near

A place with a `?` may be missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from minibroker.pipeline.errors import JobUsageError, near_places
from minibroker.pipeline.operations.mask_rules import HEADERS, KEY, VALUE, FieldPath
from minibroker.pipeline.operations.masking import Header, Masker

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from minibroker.pipeline.operations.rows import RowOperations

NAMES_MAX: Final = 10_000
"""Names that are kept for proposals."""


class MetPlaces:
    """The places that some records have."""

    def __init__(self, operations: RowOperations, secret: bytes) -> None:
        """Take `secret` of the hashes."""
        self._masker = Masker(operations.rules, operations.fields, secret)
        self.place_bits = 0
        """Bits of the rules and selected fields, as of `masking.Masked.place_bits`."""
        self.names: set[str] = set()
        """Names of the places that there are, as a person writes them."""

    def take(self, key: bytes | None, value: bytes | None, headers: list[Header] | None) -> None:
        """Look at one record."""
        if len(self.names) < NAMES_MAX:
            self.names.update(places_of(key, value, headers))
        self.place_bits |= self._masker.apply(key, value, headers).place_bits


def places_of(
    key: bytes | None, value: bytes | None, headers: list[Header] | None
) -> Iterator[str]:
    """Yield the places of a record, as a person writes them."""
    for name, _ in headers or ():
        yield FieldPath(HEADERS, (name,)).place
    for target, text in ((KEY, key), (VALUE, value)):
        try:
            plain = json.loads(text or b"null")
        except (ValueError, RecursionError):
            continue
        yield from (FieldPath(target, names).place for names in _names_in(plain, ()))


def lacking(operations: RowOperations, place_bits: int) -> list[tuple[FieldPath, str]]:
    """Return the places that are not there and may not be missing, each with its option.

    Args:
        place_bits: bits of the places that are there.
    """
    places = [(rule.path, f"--mask {rule}") for rule in operations.rules]
    places += [(path, f"--select {path}") for path in operations.fields]
    return [
        (path, option)
        for index, (path, option) in enumerate(places)
        if not (place_bits >> index & 1 or path.is_optional)
    ]


def check(operations: RowOperations, place_bits: int, names: Set[str]) -> None:
    """Raise JobUsageError for the first of `lacking`; `names` are places that there are."""
    for path, option in lacking(operations, place_bits):
        raise JobUsageError(
            f"{option}: no record of the first batch has {path.place}"
            f"{near_places(path.place, names)}; nothing was written; correct the name, or write "
            f"{path.place}? for a place that may be missing"
        )


def _names_in(plain: Any, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the names of all fields inside a value."""
    if isinstance(plain, list):
        for item in plain:
            yield from _names_in(item, prefix)
    elif isinstance(plain, dict):
        for name, inner in plain.items():
            yield (*prefix, name)
            yield from _names_in(inner, (*prefix, name))
