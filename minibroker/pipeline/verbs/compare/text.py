"""A comparison as text for a terminal: an answer, a table of partitions, examples."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from minibroker.cli.quantities import number, rate
from minibroker.cli.text_table import WIDTH, table
from minibroker.pipeline.verbs.compare.facts import KINDS, PARTITIONS_MAX
from minibroker.pipeline.verbs.compare.words import example, findings, offsets, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.verbs.compare.facts import Comparison, PartitionComparison


def text(comparison: Comparison) -> str:
    """Return the whole text, with a newline at the end."""
    lines = [
        f"A: {comparison.a}",
        f"B: {comparison.b}",
        verdict(comparison),
        "",
        *_table(comparison),
    ]
    for sentence in findings(comparison):
        lines += ["", *wrap(sentence, WIDTH, break_on_hyphens=False)]
    if comparison.examples:
        head = ("difference", "in A", "in B", "key", "differs in")
        rows = [head, *(example(item) for item in comparison.examples)]
        lines += ["", "Examples, as partition@offset:", "", *table(rows, words=head[3:])]
    records = comparison.records("a") + comparison.records("b")
    lines += [
        "",
        f"{number(records)} records in {comparison.seconds:.1f} s, "
        f"{rate(records / max(comparison.seconds, 0.001))}",
    ]
    return "\n".join(lines) + "\n"


def _table(comparison: Comparison) -> list[str]:
    parts = shown_partitions(comparison)
    head = ("partition", "A", "B", *(kind.words for kind in KINDS))
    rows: list[tuple[str, ...]] = [(*head, "offsets A", "offsets B")]
    rows += [
        (str(part.partition), *_counts(part), offsets(part.a), offsets(part.b)) for part in parts
    ]
    if len(comparison.partitions) > 1:
        both = (number(comparison.records("a")), number(comparison.records("b")))
        totals = (number(comparison.total(kind.field)) for kind in KINDS)
        rows.append(("all", *both, *totals, "", ""))
    lines = table(rows)
    if len(lines[0]) > WIDTH:
        lines = [*table([row[:-2] for row in rows]), "  offsets are in the JSON and on the page"]
    if len(parts) < len(comparison.partitions):
        lines.append(f"  {_not_shown(comparison, parts)}")
    return lines


def _not_shown(comparison: Comparison, parts: Sequence[PartitionComparison]) -> str:
    differ = max(0, len(comparison.told_partitions) - len(parts))
    same = len(comparison.partitions) - len(parts) - differ
    texts = [f"{number(same)} the same"] if same else []
    texts += [f"{number(differ)} different, in the JSON"] if differ else []
    return f"partitions not shown: {', '.join(texts)}"


def _counts(part: PartitionComparison) -> tuple[str, ...]:
    return (
        number(part.a.records) if part.a else "-",
        number(part.b.records) if part.b else "-",
        *(number(getattr(part, kind.field)) for kind in KINDS),
    )


def shown_partitions(comparison: Comparison) -> list[PartitionComparison]:
    """Return the partitions for a table: all, or of very many some that differ, or the first."""
    return (comparison.told_partitions or list(comparison.partitions))[:PARTITIONS_MAX]
