"""The result of `compare` as values: the job makes it, text, JSON and page show it.

compare.job ─► Comparison ─┬► text ─► a table for a terminal, or JSON
                            └► page ─► a page
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class RecordKind(NamedTuple):
    """One kind of records in a comparison."""

    name: str
    """In rows of `compare.differences`, and of an example."""
    field: str
    """The name of its number in `PartitionComparison` and in JSON."""
    words: str
    """Words for people."""


EQUAL: Final = RecordKind("equal", "equal", "equal")
DIFFERENCES: Final = (
    RecordKind("missing", "missing", "missing in B"),
    RecordKind("only", "only", "only in B"),
    RecordKind("changed", "changed", "changed"),
    RecordKind("late", "out_of_order", "out of order"),
)
KINDS: Final = (EQUAL, *DIFFERENCES)
"""Every kind, in the order in which they are shown."""


PARTITIONS_MAX: Final = 40
"""Partitions that are told one by one even if they are the same."""


class SideFacts(NamedTuple):
    """The records of one partition on one side."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None


class PartitionComparison(NamedTuple):
    """One partition; None for a side that does not have it."""

    partition: int
    a: SideFacts | None
    b: SideFacts | None
    missing: int = 0
    only: int = 0
    changed: int = 0
    out_of_order: int = 0

    @property
    def equal(self) -> int:
        """Return the records of A that B has just so."""
        return (self.a.records if self.a else 0) - self.missing - self.changed

    @property
    def is_same(self) -> bool:
        """Return whether nothing was found in this partition."""
        return not (self.missing or self.only or self.changed or self.out_of_order)

    @property
    def is_on_one_side(self) -> bool:
        """Return whether one side does not have this partition."""
        return self.a is None or self.b is None


class Example(NamedTuple):
    """One record that differs."""

    kind: str
    """The name of one of `DIFFERENCES`."""
    a: tuple[int, int] | None
    """Partition and offset in A, None if it is not there."""
    b: tuple[int, int] | None
    key: str | None
    """Text of the key, cut; None for none."""
    fields: tuple[str, ...] = ()
    """Columns in which a changed record differs."""


class Comparison(NamedTuple):
    """The whole comparison."""

    a: str
    b: str
    ignored: tuple[str, ...]
    partitions: tuple[PartitionComparison, ...]
    changed_fields: dict[str, int]
    """Column → changed records in which it differs."""
    examples: tuple[Example, ...]
    seconds: float

    @property
    def is_same(self) -> bool:
        """Return whether both sides have the same records, and as many partitions."""
        return all(part.is_same for part in self.partitions) and not self.has_other_partitions

    @property
    def has_other_partitions(self) -> bool:
        """Return whether one side has partitions that the other has not, and that counts."""
        if "partition" in self.ignored:
            return False
        return any(part.is_on_one_side for part in self.partitions)

    @property
    def told_partitions(self) -> list[PartitionComparison]:
        """Return the partitions to tell one by one: all, or of very many those that differ."""
        if len(self.partitions) <= PARTITIONS_MAX:
            return list(self.partitions)
        with_sides = "partition" not in self.ignored
        return [
            part
            for part in self.partitions
            if not part.is_same or (with_sides and part.is_on_one_side)
        ]

    def total(self, name: str) -> int:
        """Return the sum of a number of all partitions: equal, missing, only, …"""
        return sum(getattr(part, name) for part in self.partitions)

    def records(self, side: str) -> int:
        """Return the number of records of a side, `a` or `b`."""
        sides = [getattr(part, side) for part in self.partitions]
        return sum(facts.records for facts in sides if facts is not None)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for JSON; a topic of 2,500 equal partitions would fill 0.8 MB."""
        return {
            "a": self.a,
            "b": self.b,
            "same": self.is_same,
            "ignored": list(self.ignored),
            "records_a": self.records("a"),
            "records_b": self.records("b"),
            **{kind.field: self.total(kind.field) for kind in KINDS},
            "changed_fields": self.changed_fields,
            "partition_count": len(self.partitions),
            "partitions": [
                {
                    "partition": part.partition,
                    "a": None if part.a is None else part.a._asdict(),
                    "b": None if part.b is None else part.b._asdict(),
                    **{kind.field: getattr(part, kind.field) for kind in KINDS},
                }
                for part in self.told_partitions
            ],
            "examples": [example._asdict() for example in self.examples],
            "seconds": round(self.seconds, 3),
        }
