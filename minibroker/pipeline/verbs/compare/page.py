"""A comparison as one HTML page, in the manner of `inspect.page`: it loads nothing."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from minibroker.cli.quantities import number
from minibroker.pipeline.cli.html_page import figure, head_of, html_table
from minibroker.pipeline.cli.svg import Bar, bars
from minibroker.pipeline.verbs.compare.facts import EQUAL, KINDS
from minibroker.pipeline.verbs.compare.text import shown_partitions
from minibroker.pipeline.verbs.compare.words import example, findings, offsets, times, verdict

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.compare.facts import Comparison, RecordKind


def page(comparison: Comparison) -> str:
    """Return the whole page."""
    ignored = (
        f" {' and '.join(comparison.ignored).capitalize()} did not count."
        if comparison.ignored
        else ""
    )
    sentences = [verdict(comparison), *findings(comparison)]
    items = "".join(
        f"<li>{escape(sentence)}</li>"
        if comparison.is_same
        else f'<li class="warn">{escape(sentence)}</li>'
        for sentence in sentences
    )
    parts = [
        head_of("Two sides compared"),
        f'<p class="soft">A is {escape(comparison.a)}, B is {escape(comparison.b)}.{ignored} '
        "All times are UTC.</p></header><main><section>",
        _figures(comparison),
        f'<ul class="said">{items}</ul>',
        _plot(comparison),
        _partitions(comparison),
        html_table(
            "Examples, as partition@offset",
            ["Difference", "In A", "In B", "Key", "Differs in"],
            [example(item) for item in comparison.examples],
            words=["Key", "Differs in"],
        ),
        "</section></main></body></html>\n",
    ]
    return "\n".join(parts)


def _figures(comparison: Comparison) -> str:
    figures = [
        ("Records of A", comparison.records("a")),
        ("Records of B", comparison.records("b")),
        *((_title(kind), comparison.total(kind.field)) for kind in KINDS),
    ]
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{number(value)}</dd></div>" for name, value in figures
    )
    return f'<dl class="facts">{cells}</dl>'


def _title(kind: RecordKind) -> str:
    return kind.words[0].upper() + kind.words[1:]


def _plot(comparison: Comparison) -> str:
    values = [
        Bar(
            comparison.total(kind.field),
            kind.words,
            number(comparison.total(kind.field)),
            is_marked=kind != EQUAL,
        )
        for kind in KINDS
    ]
    drawing = bars(values, description="Records that are equal, and those that differ")
    return f'<div class="grid2">{figure("Records", drawing)}</div>'


def _partitions(comparison: Comparison) -> str:
    head = ["Partition", "A", "B", *map(_title, KINDS)]
    head += ["Offsets of A", "Offsets of B", "Times of A", "Times of B"]
    rows = [
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
    return html_table("Partitions", head, rows)
