"""An inspection as one HTML page with words, plots and tables; the page loads nothing.

Opens from a file, without a network, script or font of its own. Reads from 360 pixels of width up,
in light and dark, and prints.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.cli.svg import Bar, Column, Tick, bars, columns
from minibroker.pipeline.quantities import duration, moment, number, percent, size
from minibroker.pipeline.verbs.inspect.words import SKEWED_FROM, findings, ratio, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.verbs.inspect.facts import Inspection, TopicFacts

_TICKS_MAX: Final = 16
"""Most partitions that are all numbered; of more only some are."""
_LABEL_CHARACTERS: Final = 28
_GROUPS_SHOWN: Final = 10
_PRODUCERS_SHOWN: Final = 50

_STYLE: Final = """
:root{--ink:#1c2430;--soft:#5a6675;--line:#dde3ea;--back:#fff;--card:#f6f8fa;--blue:#2f6fb5;
--mark:#c2540a;--markback:#fdf1e7}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3afbd;--line:#37414d;--back:#14181d;
--card:#1c2229;--blue:#6ea8e5;--mark:#f0944d;--markback:#3a2616}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:20px 16px 48px;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0}h2{font-size:20px;margin:40px 0 4px;overflow-wrap:anywhere}
h3{font-size:15px;margin:0 0 8px}p{margin:4px 0}
.soft{color:var(--soft)}
.facts{display:flex;flex-wrap:wrap;gap:8px 28px;margin:12px 0 16px;padding:0}
.facts div{min-width:90px}.facts dt{color:var(--soft);font-size:13px}
.facts dd{margin:0;font-size:19px;font-variant-numeric:tabular-nums}
ul.said{list-style:none;margin:0 0 20px;padding:0;max-width:820px}
ul.said li{padding:6px 10px;border-left:3px solid var(--line);margin:0 0 4px;overflow-wrap:anywhere}
ul.said li.warn{border-color:var(--mark);background:var(--markback)}
.grid2{display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}
@media(min-width:860px){.grid2{grid-template-columns:repeat(2,minmax(0,1fr))}}
figure{margin:0;padding:14px 14px 8px;background:var(--card);border:1px solid var(--line);
border-radius:6px}
figcaption{font-weight:600;margin-bottom:4px}
svg{display:block;overflow:visible}svg rect{fill:var(--blue)}svg rect.mark{fill:var(--mark)}
svg rect.track{fill:var(--line)}
svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}
svg .fair{stroke:var(--ink);stroke-dasharray:5 4}
svg text{font-size:12px;fill:var(--soft)}svg .name,svg .amount{font-size:13px;fill:var(--ink)}
svg.columns{width:calc(100% - 44px);margin-left:44px}
.wide{overflow-x:auto;margin-top:16px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;width:100%}
caption{text-align:left;font-weight:600;padding:6px 0}
th,td{text-align:right;padding:4px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:500}th:first-child,td:first-child,
.words{text-align:left}th:first-child,td:first-child{padding-left:0}
@media print{figure{break-inside:avoid}}
"""


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


def head_of(title: str) -> str:
    """Return the begin of a page, into its header and behind its title."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><header>",
            f"<h1>{escape(title)}</h1>",
        ]
    )


def _origin(inspection: Inspection) -> str:
    where = escape(inspection.subject)
    if inspection.from_files:
        return f"Read from the files in {where},"
    return f"Read from the broker at {where},"


def _topic(topic: TopicFacts, *, with_heading: bool) -> str:
    parts = ["<section>"]
    if with_heading:
        parts.append(f"<h2>{escape(topic.topic)}</h2>")
    parts.append(_figures(topic))
    said = "".join(
        f'<li class="warn">{escape(finding.text)}</li>'
        if finding.is_warning
        else f"<li>{escape(finding.text)}</li>"
        for finding in findings(topic)
    )
    parts.append(f'<ul class="said">{said}</ul>')
    if topic.records:
        plots = [_partitions_plot(topic), _rate_plot(topic), _sizes_plot(topic), _keys_plot(topic)]
        plots.append(_lag_plot(topic))
        parts.append(f'<div class="grid2">{"".join(plots)}</div>')
    parts += [_partitions_table(topic), _codecs_table(topic), _groups_table(topic)]
    return "\n".join([*parts, _producers_table(topic), "</section>"])


def _figures(topic: TopicFacts) -> str:
    told = [
        ("Records", number(topic.records)),
        ("Bytes", size(topic.size_bytes)),
        ("Partitions", number(len(topic.partitions))),
    ]
    if topic.records:
        told.append(("Different keys, about", number(topic.keys)))
        told.append(("Median record", size(topic.median_bytes)))
    if topic.first_ms is not None and topic.last_ms is not None:
        told.append(("Time covered", duration(topic.last_ms - topic.first_ms)))
    if topic.codecs:
        told.append(("Stored", f"{size(topic.stored_bytes)}, {ratio(topic)} to 1"))
    inside = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in told)
    return f'<dl class="facts">{inside}</dl>'


def figure(caption: str, drawing: str) -> str:
    """Return a drawing with its caption."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawing}</figure>"


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
    found = {time_slice.start_ms: time_slice for time_slice in topic.slices}
    values = []
    for start in range(first, last + 1, width):
        time_slice = found.get(start)
        records = time_slice.records if time_slice else 0
        taken = size(time_slice.size_bytes) if time_slice else "0 B"
        values.append(
            Column(records * 1000 / width, f"{moment(start)}: {number(records)} records, {taken}")
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
    found = dict(topic.sizes)
    powers = range(min(found), max(found) + 1)
    values = [
        Column(found.get(power, 0), f"{_between(power)}: {number(found.get(power, 0))} records")
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


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[str] = ()
) -> str:
    """Return a table with its caption, and nothing for no rows.

    Args:
        caption: above the table.
        head: titles of the columns.
        rows: cells, as many as titles.
        words: titles of columns that hold text and not numbers, beside the first one.
    """
    if not rows:
        return ""
    kinds = [' class="words"' if title in words else "" for title in head]
    titles = "".join(
        f'<th scope="col"{kind}>{escape(title)}</th>'
        for kind, title in zip(kinds, head, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )
