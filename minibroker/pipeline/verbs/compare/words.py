"""A comparison in sentences, for the terminal and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.cli.quantities import counted, moment, number, percent
from minibroker.pipeline.verbs.compare.facts import DIFFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.verbs.compare.facts import Comparison, Example, SideFacts

_WORDS: Final = {kind.name: kind.words for kind in DIFFERENCES}


def verdict(comparison: Comparison) -> str:
    """Return the answer in one sentence."""
    if comparison.is_same:
        same = f"The same: both have {counted(comparison.records('a'), 'record')}"
        if comparison.ignored:
            same += f", apart from {' and '.join(comparison.ignored)}, which did not count"
        return f"{same}."
    counts = [
        f"{number(comparison.total(kind.field))} {kind.words}"
        for kind in DIFFERENCES
        if comparison.total(kind.field)
    ]
    return f"Different: {', '.join(counts) or 'the partitions'}."


def findings(comparison: Comparison) -> Iterator[str]:
    """Yield what helps to understand the differences."""
    if comparison.has_other_partitions:
        counts = [
            sum(getattr(part, side) is not None for part in comparison.partitions)
            for side in ("a", "b")
        ]
        yield (
            f"A has {counts[0]} partitions and B {counts[1]}: --ignore partition compares records "
            "wherever they are."
        )
    changed = comparison.total("changed")
    fields = sorted(comparison.changed_fields.items(), key=lambda field: (-field[1], field[0]))
    if changed:
        columns = ", ".join(f"{name} in {number(count)}" for name, count in fields)
        yield f"Of {number(changed)} changed records these columns differ: {columns}."
    if len(fields) == 1 and fields[0][0] in ("timestamp", "headers") and fields[0][1] == changed:
        yield f"Only the {fields[0][0]} differs in them: --ignore {fields[0][0]} leaves it out."
    if late := comparison.total("out_of_order"):
        yield (
            f"Out of order: {counted(late, 'record')} of B "
            f"({percent(late, comparison.records('b'))}), behind a record of the same key that A "
            "has later."
        )


def offsets(facts: SideFacts | None) -> str:
    """Return the first and the last offset."""
    if facts is None:
        return "no partition"
    if facts.first_offset is None:
        return "-"
    return f"{facts.first_offset}..{facts.last_offset}"


def times(facts: SideFacts | None) -> str:
    """Return the smallest and the largest timestamp."""
    if facts is None or facts.first_ms is None or facts.last_ms is None:
        return "-"
    first, last = moment(facts.first_ms), moment(facts.last_ms)
    day, _, time = last.partition(" ")
    return f"{first} to {time if first.startswith(f'{day} ') else last}"


def example(difference: Example) -> tuple[str, str, str, str, str]:
    """Return an example as cells: kind, place in A, place in B, key, what differs."""
    places = [
        "-" if place is None else f"{place[0]}@{place[1]}" for place in (difference.a, difference.b)
    ]
    key = "no key" if difference.key is None else difference.key
    return _WORDS[difference.kind], places[0], places[1], key, ", ".join(difference.fields)
