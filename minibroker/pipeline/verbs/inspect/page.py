"""An inspection as one HTML page with words, plots and tables; the page loads nothing.

Opens from a file, without a network, script or font of its own. Reads from 360 pixels of width up,
in light and dark, and prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import duration, moment, number, percent, size
from minibroker.pages.page import render
from minibroker.pages.plot import Bar, Column, Tick, bars, columns, short
from minibroker.pipeline.verbs.inspect.words import SKEWED_FROM, findings, ratio, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from minibroker.pipeline.verbs.inspect.facts import Inspection, TopicFacts

_TICKS_MAX: Final = 16
"""Most partitions that are all numbered; of more only some are."""
_LABEL_CHARACTERS: Final = 28
_GROUPS_SHOWN: Final = 10
_PRODUCERS_SHOWN: Final = 50


class _Plot(NamedTuple):
    """A drawing with its caption."""

    caption: str
    drawing: Markup


class _Table(NamedTuple):
    """A table of the page; `words` are its columns of text beside the first one."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()


class _Section(NamedTuple):
    """Everything that the page says of one topic."""

    topic: str
    figures: Sequence[tuple[str, str]]
    sentences: Sequence[tuple[str, bool]]
    plots: Sequence[_Plot]
    tables: Sequence[_Table]


def page(inspection: Inspection) -> str:
    """Return the whole page."""
    names = [topic.topic for topic in inspection.topics]
    return render(
        "pipeline/verbs/inspect/page.html",
        title=f"Topics of {inspection.subject}" if len(names) != 1 else f"Topic {names[0]}",
        subject=inspection.subject,
        is_of_files=inspection.from_files,
        made_at=second(inspection.made_ms),
        sections=[_section(topic) for topic in inspection.topics],
    )


def _section(topic: TopicFacts) -> _Section:
    makers = (_partitions_plot, _rate_plot, _sizes_plot, _keys_plot, _lag_plot)
    plots = [make(topic) for make in makers] if topic.records else []
    return _Section(
        topic.topic,
        _figures(topic),
        [(finding.text, finding.is_warning) for finding in findings(topic)],
        [plot for plot in plots if plot is not None],
        [
            _partitions_table(topic),
            _codecs_table(topic),
            _groups_table(topic),
            _producers_table(topic),
        ],
    )


def _figures(topic: TopicFacts) -> list[tuple[str, str]]:
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
    return figures


def _partitions_plot(topic: TopicFacts) -> _Plot:
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
        show=short,
        line=(fair, f"- - fair share {short(fair)}") if count > 1 else None,
    )
    return _Plot("Records in each partition", drawing)


def _rate_plot(topic: TopicFacts) -> _Plot | None:
    if not topic.slices:
        return None
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
        show=short,
    )
    return _Plot(f"Records per second, in steps of {duration(width)}", drawing)


def _sizes_plot(topic: TopicFacts) -> _Plot | None:
    if not topic.sizes:
        return None
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
    drawing = columns(values, ticks, description="Records by size of key and value", show=short)
    return _Plot("Records by size, each step twice as large", drawing)


def _between(power: int) -> str:
    return "0 bytes" if power < 0 else f"{number(2**power)} to {number(2 ** (power + 1) - 1)} bytes"


def _keys_plot(topic: TopicFacts) -> _Plot | None:
    if not topic.frequent_keys or topic.frequent_keys[0].records == 1:
        return None
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
    return _Plot("Most frequent keys", drawing)


def _lag_plot(topic: TopicFacts) -> _Plot | None:
    if not any(group.lag for group in topic.groups):
        return None
    drawing = bars(
        [
            Bar(group.lag, _cut(group.group), f"{number(group.lag)} behind")
            for group in topic.groups[:_GROUPS_SHOWN]
        ],
        description="How many offsets each group is behind the end",
    )
    return _Plot("Lag of groups", drawing)


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL_CHARACTERS else text[: _LABEL_CHARACTERS - 1] + "…"


def _partitions_table(topic: TopicFacts) -> _Table:
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
    return _Table("Partitions", head, rows)


def second(ms: int | None) -> str:
    """Return a moment without milliseconds, which would make a table too wide; a dash for none."""
    return "–" if ms is None else moment(ms // 1000 * 1000)


def _codecs_table(topic: TopicFacts) -> _Table:
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
    return _Table("Storage", head, rows)


def _groups_table(topic: TopicFacts) -> _Table:
    rows = [
        [group.group, group.state, number(group.lag), number(group.without_offset)]
        for group in topic.groups
    ]
    return _Table("Groups", ["Group", "State", "Lag", "Partitions never read"], rows, ["State"])


def _producers_table(topic: TopicFacts) -> _Table:
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
    return _Table(caption, [*head, "Aborted batches"], rows)
