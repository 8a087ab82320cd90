"""An inspection as text for a terminal: a table for each topic, with sentences below."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from minibroker.cli.quantities import counted, duration, moment, number, percent, size
from minibroker.cli.text_table import WIDTH, table
from minibroker.pipeline.verbs.inspect.words import findings, ratio, share

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.inspect.facts import Inspection, TopicFacts


def text(inspection: Inspection) -> str:
    """Return the whole text, with a newline at the end."""
    parts = [_topic(topic) for topic in inspection.topics]
    if not parts:
        return f"{inspection.subject} holds no topics.\n"
    return "\n\n".join(parts) + "\n"


def _topic(topic: TopicFacts) -> str:
    lines = [*_wrapped(summary(topic)), ""]
    rows = [
        (
            "partition",
            "records",
            "share",
            "bytes",
            "offsets",
            "keys",
            "out of order",
            "last record, UTC",
        )
    ]
    rows += [
        (
            str(partition.partition),
            number(partition.records),
            f"{share(partition, topic):.2f}x",
            size(partition.size_bytes),
            f"{partition.first_offset}..{partition.last_offset}" if partition.records else "-",
            number(partition.keys),
            number(partition.out_of_order),
            "-" if partition.last_ms is None else moment(partition.last_ms),
        )
        for partition in topic.partitions
    ]
    lines += table(rows)
    if topic.codecs:
        lines += ["", *table(_codecs(topic))]
    if topic.groups:
        lines += ["", *table(_groups(topic))]
    lines.append("")
    for finding in findings(topic):
        lines += _wrapped(f"{'!' if finding.is_warning else '-'} {finding.text}")
    return "\n".join(lines)


def _wrapped(sentence: str) -> list[str]:
    """Return a sentence wrapped at words; its later lines are indented."""
    return wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def summary(topic: TopicFacts) -> str:
    """Return one line about a topic: its name, its size, its first and last time."""
    parts = [
        f"{topic.topic}: {counted(topic.records, 'record')}",
        f"{size(topic.size_bytes)} of keys and values",
        counted(len(topic.partitions), "partition"),
    ]
    if topic.smallest_bytes == topic.largest_bytes:
        parts += [f"each of {size(topic.largest_bytes)}"] if topic.records > 1 else []
    elif topic.records:
        parts.append(
            f"sizes {number(topic.smallest_bytes)} to {number(topic.largest_bytes)} bytes, "
            f"half of them up to {number(topic.median_bytes)}"
        )
    if topic.first_ms is not None and topic.last_ms is not None:
        span_ms = topic.last_ms - topic.first_ms
        parts.append(f"{duration(span_ms)} from " if span_ms else "of ")
        parts[-1] += f"{moment(topic.first_ms)} UTC"
    return ", ".join(parts)


def _codecs(topic: TopicFacts) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("codec", "format", "batches", "records", "stored", "unfolded")]
    rows += [
        (
            codec.codec,
            f"v{codec.magic}",
            number(codec.batches),
            number(codec.records),
            size(codec.size_bytes),
            size(codec.record_bytes),
        )
        for codec in topic.codecs
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
            group.group,
            group.state,
            number(group.lag),
            percent(group.lag, topic.records) if group.lag <= topic.records else "-",
            number(group.without_offset),
        )
        for group in topic.groups
    ]
    return rows
