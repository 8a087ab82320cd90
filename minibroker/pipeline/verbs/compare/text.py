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


def text(found: Comparison) -> str:
    """Return the whole text, with a newline at the end."""
    lines = [f"A: {found.a}", f"B: {found.b}", verdict(found), "", *_table(found)]
    for sentence in findings(found):
        lines += ["", *wrap(sentence, WIDTH, break_on_hyphens=False)]
    if found.examples:
        head = ("difference", "in A", "in B", "key", "differs in")
        rows = [head, *(example(shown) for shown in found.examples)]
        lines += ["", "Examples, as partition@offset:", "", *table(rows, words=head[3:])]
    records = found.records("a") + found.records("b")
    lines += [
        "",
        f"{number(records)} records in {found.seconds:.1f} s, "
        f"{rate(records / max(found.seconds, 0.001))}",
    ]
    return "\n".join(lines) + "\n"


def _table(found: Comparison) -> list[str]:
    shown = shown_partitions(found)
    head = ("partition", "A", "B", *(kind.words for kind in KINDS))
    rows: list[tuple[str, ...]] = [(*head, "offsets A", "offsets B")]
    rows += [
        (str(part.partition), *_counts(part), offsets(part.a), offsets(part.b)) for part in shown
    ]
    if len(found.partitions) > 1:
        both = (number(found.records("a")), number(found.records("b")))
        totals = (number(found.total(kind.field)) for kind in KINDS)
        rows.append(("all", *both, *totals, "", ""))
    lines = table(rows)
    if len(lines[0]) > WIDTH:
        lines = [*table([row[:-2] for row in rows]), "  offsets are in the JSON and on the page"]
    if len(shown) < len(found.partitions):
        lines.append(f"  {_not_shown(found, shown)}")
    return lines


def _not_shown(found: Comparison, shown: Sequence[PartitionComparison]) -> str:
    differ = max(0, len(found.told_partitions) - len(shown))
    same = len(found.partitions) - len(shown) - differ
    told = [f"{number(same)} the same"] if same else []
    told += [f"{number(differ)} different, in the JSON"] if differ else []
    return f"partitions not shown: {', '.join(told)}"


def _counts(part: PartitionComparison) -> tuple[str, ...]:
    return (
        number(part.a.records) if part.a else "-",
        number(part.b.records) if part.b else "-",
        *(number(getattr(part, kind.field)) for kind in KINDS),
    )


def shown_partitions(found: Comparison) -> list[PartitionComparison]:
    """Return the partitions for a table: all, or of very many some that differ, or the first."""
    return (found.told_partitions or list(found.partitions))[:PARTITIONS_MAX]
