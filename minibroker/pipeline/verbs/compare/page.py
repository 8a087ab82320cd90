"""A comparison as one HTML page, in the manner of `inspect.page`: it loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.cli.quantities import number
from minibroker.pages.page import render
from minibroker.pages.plot import Bar, bars
from minibroker.pipeline.verbs.compare.facts import EQUAL, KINDS
from minibroker.pipeline.verbs.compare.text import shown_partitions
from minibroker.pipeline.verbs.compare.words import example, findings, offsets, times, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from minibroker.pipeline.verbs.compare.facts import Comparison, RecordKind


def page(comparison: Comparison) -> str:
    """Return the whole page."""
    return render(
        "pipeline/verbs/compare/page.html",
        a=comparison.a,
        b=comparison.b,
        ignored=" and ".join(comparison.ignored).capitalize(),
        figures=_figures(comparison),
        statements=[
            (sentence, not comparison.is_same)
            for sentence in (verdict(comparison), *findings(comparison))
        ],
        plot=_plot(comparison),
        partitions_head=[
            *("Partition", "A", "B", *map(_title, KINDS)),
            *("Offsets of A", "Offsets of B", "Times of A", "Times of B"),
        ],
        partitions=_partitions(comparison),
        examples=[example(item) for item in comparison.examples],
    )


def _figures(comparison: Comparison) -> list[tuple[str, str]]:
    return [
        ("Records of A", number(comparison.records("a"))),
        ("Records of B", number(comparison.records("b"))),
        *((_title(kind), number(comparison.total(kind.field))) for kind in KINDS),
    ]


def _title(kind: RecordKind) -> str:
    return kind.words[0].upper() + kind.words[1:]


def _plot(comparison: Comparison) -> Markup:
    values = [
        Bar(
            comparison.total(kind.field),
            kind.words,
            number(comparison.total(kind.field)),
            is_marked=kind != EQUAL,
        )
        for kind in KINDS
    ]
    return bars(values, description="Records that are equal, and those that differ")


def _partitions(comparison: Comparison) -> list[Sequence[str]]:
    return [
        [
            str(part.partition),
            number(part.a.records) if part.a else "–",
            number(part.b.records) if part.b else "–",
            *(number(getattr(part, kind.field)) for kind in KINDS),
            offsets(part.a),
            offsets(part.b),
            times(part.a),
            times(part.b),
        ]
        for part in shown_partitions(comparison)
    ]
