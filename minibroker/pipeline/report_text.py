"""An inspection as a terminal shows it: a table for each topic, sentences below."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.quantities import duration, moment, number, percent, size
from minibroker.pipeline.report_words import findings, ratio, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.report_facts import Inspection, TopicFacts


WIDTH: Final = 100
"""Characters of a line, at most; only a table of large numbers is wider."""


def text(inspection: Inspection) -> str:
    """The whole of it, ended by a newline."""
    parts = [_topic(topic) for topic in inspection.topics]
    if not parts:
        return f"{inspection.subject} holds no topics.\n"
    return "\n\n".join(parts) + "\n"


def _topic(topic: TopicFacts) -> str:
    lines = [*_wrapped(summary(topic)), ""]
    rows = [
        ("partition", "records", "share", "bytes", "offsets", "keys", "out of order", "last record")
    ]
    rows += [
        (
            str(one.partition),
            number(one.records),
            f"{share(one, topic):.2f}x",
            size(one.size_bytes),
            f"{one.first_offset}..{one.last_offset}" if one.records else "-",
            number(one.keys),
            number(one.out_of_order),
            "-" if one.last_ms is None else moment(one.last_ms),
        )
        for one in topic.partitions
    ]
    lines += table(rows)
    if topic.codecs:
        lines += ["", *table(_codecs(topic))]
    if topic.groups:
        lines += ["", *table(_groups(topic))]
    lines.append("")
    for one in findings(topic):
        lines += _wrapped(f"{'!' if one.is_warning else '-'} {one.text}")
    return "\n".join(lines)


def _wrapped(sentence: str) -> list[str]:
    """At words, so that a terminal does not cut them; what stands behind is indented."""
    return wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def summary(topic: TopicFacts) -> str:
    """One line: what it is, how much and from when to when."""
    said = [
        f"{topic.topic}: {number(topic.records)} records",
        f"{size(topic.size_bytes)} of keys and values",
        f"{len(topic.partitions)} partition{'s' if len(topic.partitions) != 1 else ''}",
    ]
    if topic.records:
        said.append(
            f"sizes {number(topic.smallest_bytes)} to {number(topic.largest_bytes)} bytes, "
            f"half of them up to {number(topic.median_bytes)}"
        )
    if topic.first_ms is not None and topic.last_ms is not None:
        said.append(f"{duration(topic.last_ms - topic.first_ms)} from {moment(topic.first_ms)} UTC")
    return ", ".join(said)


def _codecs(topic: TopicFacts) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("codec", "format", "batches", "records", "stored", "unfolded")]
    rows += [
        (
            one.codec,
            f"v{one.magic}",
            number(one.batches),
            number(one.records),
            size(one.size_bytes),
            size(one.record_bytes),
        )
        for one in topic.codecs
    ]
    if len(topic.codecs) > 1:
        rows.append(
            (
                "all",
                "",
                "",
                "",
                size(topic.stored_bytes),
                f"{size(topic.unfolded_bytes)} ({ratio(topic)}x)",
            )
        )
    return rows


def _groups(topic: TopicFacts) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("group", "state", "lag", "of the topic", "partitions never read")
    ]
    rows += [
        (
            one.group,
            one.state,
            number(one.lag),
            percent(one.lag, topic.records) if one.lag <= topic.records else "-",
            number(one.without_offset),
        )
        for one in topic.groups
    ]
    return rows


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as their widest cell; all but the first to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return lines
