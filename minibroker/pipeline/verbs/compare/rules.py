"""Rules of `compare`: what has to be the same in two records, beside key and value."""

from __future__ import annotations

from typing import Final, NamedTuple

IGNORED: Final = ("timestamp", "partition", "headers", "order")
"""Words for the columns, and the order, that a comparison may leave out."""


class CompareRules(NamedTuple):
    """Each field says whether it counts."""

    partition: bool = True
    timestamp: bool = True
    headers: bool = True
    order: bool = True
    """The order of the records of a key, and of those without a key in a partition."""
    offset: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns in which a record that was changed may differ."""
        counted = [name for name in ("headers", "timestamp", "offset") if getattr(self, name)]
        return ("value", *counted)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Return what does not count, `offset` aside."""
        return tuple(name for name in IGNORED if not getattr(self, name))
