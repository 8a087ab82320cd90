"""An inspection as one HTML page with words, plots and tables; the page loads nothing.

Opens from a file, without a network, script or font of its own. Reads from 360 pixels of width up,
in light and dark, and prints.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from minibroker.cli.quantities import duration, moment, number, percent, size
from minibroker.pipeline.cli.html_page import figure, head_of, html_table
from minibroker.pipeline.cli.svg import Bar, Column, Tick, bars, columns
from minibroker.pipeline.verbs.inspect.words import SKEWED_FROM, findings, ratio, share

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.inspect.facts import Inspection, TopicFacts

_TICKS_MAX: Final = 16
"""Most partitions that are all numbered; of more only some are."""
_LABEL_CHARACTERS: Final = 28
_GROUPS_SHOWN: Final = 10
_PRODUCERS_SHOWN: Final = 50


def page(inspection: Inspection) -> str:
    """Return the whole page."""
    names = [topic.topic for topic in inspection.topics]
    title = f"Topics of {inspection.subject}" if len(names) != 1 else f"Topic {names[0]}"
    parts = [
        head_of(title),
        f'<p class="soft">{_origin(inspection)} {second(inspection.made_ms)} UTC. '
        "All times are UTC, sizes are those of keys and values.</p></header><main>",
    ]
    if not names:
        parts.append("<p>There are no topics.</p>")
    parts += [_topic(topic, with_heading=len(names) > 1) for topic in inspection.topics]
    return "\n".join([*parts, "</main></body></html>\n"])


def _origin(inspection: Inspection) -> str:
    subject = escape(inspection.subject)
    if inspection.from_files:
        return f"Read from the files in {subject},"
    return f"Read from the broker at {subject},"


def _topic(topic: TopicFacts, *, with_heading: bool) -> str:
    parts = ["<section>"]
    if with_heading:
        parts.append(f"<h2>{escape(topic.topic)}</h2>")
    parts.append(_figures(topic))
    sentences = "".join(
        f'<li class="warn">{escape(finding.text)}</li>'
        if finding.is_warning
        else f"<li>{escape(finding.text)}</li>"
        for finding in findings(topic)
    )
    parts.append(f'<ul class="said">{sentences}</ul>')
    if topic.records:
        plots = [_partitions_plot(topic), _rate_plot(topic), _sizes_plot(topic), _keys_plot(topic)]
        plots.append(_lag_plot(topic))
        parts.append(f'<div class="grid2">{"".join(plots)}</div>')
    parts += [_partitions_table(topic), _codecs_table(topic), _groups_table(topic)]
    return "\n".join([*parts, _producers_table(topic), "</section>"])


def _figures(topic: TopicFacts) -> str:
    figures = [
        ("Records", number(topic.records)),
        ("Bytes", size(topic.size_bytes)),
        ("Partitions", number(len(topic.partitions))),
    ]
    if topic.records:
        figures.append(("Different keys, about", number(topic.keys)))
        figures.append(("Median record", size(topic.median_bytes)))
    if topic.first_ms is not None and topic.last_ms is not None:
        figures.append(("Time covered", duration(topic.last_ms - topic.first_ms)))
    if topic.codecs:
        figures.append(("Stored", f"{size(topic.stored_bytes)}, {ratio(topic)} to 1"))
    inside = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f'<dl class="facts">{inside}</dl>'


def _partitions_plot(topic: TopicFacts) -> str:
    count = len(topic.partitions)
    fair = topic.records / count
    every = -(-count // _TICKS_MAX)
    ticks = [
        Tick((place + 0.5) / count, str(partition.partition))
        for place, partition in enumerate(topic.partitions)
        if place % every == 0
    ]
    drawing = columns(
        [
            Column(
                partition.records,
                f"partition {partition.partition}: {number(partition.records)} records, "
                f"{percent(partition.records, topic.records)}",
                count > 1 and share(partition, topic) >= SKEWED_FROM,
            )
            for partition in topic.partitions
        ],
        ticks,
        description=f"Records of each of {count} partitions",
        show=_short,
        line=(fair, f"- - fair share {_short(fair)}") if count > 1 else None,
    )
    return figure("Records in each partition", drawing)


def _rate_plot(topic: TopicFacts) -> str:
    if not topic.slices:
        return ""
    first, last, width = topic.slices[0].start_ms, topic.slices[-1].start_ms, topic.slice_ms
    count = (last - first) // width + 1
    by_start = {time_slice.start_ms: time_slice for time_slice in topic.slices}
    values = []
    for start in range(first, last + 1, width):
        time_slice = by_start.get(start)
        records = time_slice.records if time_slice else 0
        size_text = size(time_slice.size_bytes) if time_slice else "0 B"
        values.append(
            Column(
                records * 1000 / width, f"{moment(start)}: {number(records)} records, {size_text}"
            )
        )
    middle = first + (count // 2) * width
    ticks = [Tick(0.0, moment(first)), Tick(1.0, moment(last + width)[11:])]
    if last - first > 86_400_000:
        ticks = [
            Tick(0.0, moment(first)[:10]),
            Tick(0.5, moment(middle)[:10]),
            Tick(1.0, moment(last)[:10]),
        ]
    drawing = columns(
        values,
        ticks,
        description=f"Records per second from {moment(first)} to {moment(last + width)}",
        show=_short,
    )
    return figure(f"Records per second, in steps of {duration(width)}", drawing)


def _sizes_plot(topic: TopicFacts) -> str:
    if not topic.sizes:
        return ""
    counts = dict(topic.sizes)
    powers = range(min(counts), max(counts) + 1)
    values = [
        Column(counts.get(power, 0), f"{_between(power)}: {number(counts.get(power, 0))} records")
        for power in powers
    ]
    every = -(-len(powers) // 5)
    ticks = [
        Tick(place / len(powers), size(2**power).replace(".0 ", " ") if power >= 0 else "0 B")
        for place, power in enumerate([*powers, powers[-1] + 1])
        if place % every == 0
    ]
    drawing = columns(values, ticks, description="Records by size of key and value", show=_short)
    return figure("Records by size, each step twice as large", drawing)


def _between(power: int) -> str:
    return "0 bytes" if power < 0 else f"{number(2**power)} to {number(2 ** (power + 1) - 1)} bytes"


def _keys_plot(topic: TopicFacts) -> str:
    if not topic.frequent_keys or topic.frequent_keys[0].records == 1:
        return ""
    drawing = bars(
        [
            Bar(
                frequent_key.records,
                _cut(frequent_key.text),
                f"{'' if not frequent_key.missed else 'at least '}{number(frequent_key.records)} "
                f"({percent(frequent_key.records, topic.records)})",
                topic.keys > 1 and frequent_key.records >= topic.records / 4,
            )
            for frequent_key in topic.frequent_keys[:5]
        ],
        description="Records with each of the most frequent keys",
    )
    return figure("Most frequent keys", drawing)


def _lag_plot(topic: TopicFacts) -> str:
    if not any(group.lag for group in topic.groups):
        return ""
    drawing = bars(
        [
            Bar(group.lag, _cut(group.group), f"{number(group.lag)} behind")
            for group in topic.groups[:_GROUPS_SHOWN]
        ],
        description="How many offsets each group is behind the end",
    )
    return figure("Lag of groups", drawing)


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL_CHARACTERS else text[: _LABEL_CHARACTERS - 1] + "…"


def _short(value: float) -> str:
    """Return a short number: `950`, `1.2k`, `3.4M`."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + name
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _partitions_table(topic: TopicFacts) -> str:
    head = ["Partition", "Records", "Share", "Bytes", "First offset", "Last offset", "Keys"]
    head += ["No key", "Tombstones", "Out of order", "First record", "Last record"]
    rows = [
        [
            str(partition.partition),
            number(partition.records),
            f"{share(partition, topic):.2f}×",
            size(partition.size_bytes),
            number(partition.first_offset) if partition.records else "–",
            number(partition.last_offset) if partition.records else "–",
            number(partition.keys),
            number(partition.without_key),
            number(partition.tombstones),
            number(partition.out_of_order),
            second(partition.first_ms),
            second(partition.last_ms),
        ]
        for partition in topic.partitions
    ]
    return html_table("Partitions", head, rows)


def second(ms: int | None) -> str:
    """Return a moment without milliseconds, which would make a table too wide; a dash for none."""
    return "–" if ms is None else moment(ms // 1000 * 1000)


def _codecs_table(topic: TopicFacts) -> str:
    rows = [
        [
            codec.codec,
            f"v{codec.magic}",
            number(codec.batches),
            number(codec.records),
            size(codec.size_bytes),
            size(codec.record_bytes),
            f"{codec.record_bytes / codec.size_bytes:.1f}" if codec.size_bytes else "–",
        ]
        for codec in topic.codecs
    ]
    head = ["Codec", "Format", "Batches", "Records", "Stored", "Unfolded", "Ratio"]
    return html_table("Storage", head, rows)


def _groups_table(topic: TopicFacts) -> str:
    rows = [
        [group.group, group.state, number(group.lag), number(group.without_offset)]
        for group in topic.groups
    ]
    return html_table(
        "Groups", ["Group", "State", "Lag", "Partitions never read"], rows, words=["State"]
    )


def _producers_table(topic: TopicFacts) -> str:
    worst = sorted(topic.producers, key=lambda producer: -(producer.missing + producer.repeated))
    rows = [
        [
            str(producer.producer_id),
            str(producer.partition),
            number(producer.epochs),
            number(producer.batches),
            number(producer.records),
            number(producer.repeated),
            number(producer.missing),
            number(producer.aborted_batches),
        ]
        for producer in worst[:_PRODUCERS_SHOWN]
    ]
    head = ["Producer id", "Partition", "Epochs", "Batches", "Records", "Twice", "Missing"]
    caption = "Idempotent producers"
    if len(worst) > _PRODUCERS_SHOWN:
        caption += f" ({_PRODUCERS_SHOWN} of {number(len(worst))})"
    return html_table(caption, [*head, "Aborted batches"], rows)
