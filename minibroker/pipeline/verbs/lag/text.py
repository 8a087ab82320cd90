"""The lag of readers as a table for a terminal, and as a line of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.cli.quantities import counted, duration, moment, number
from minibroker.cli.text_table import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag

_NAMES: Final = (12, 40)
"""Longest name in the narrowest table, and in the widest."""
_OTHER_COLUMNS: Final = 62
"""About the width of what is no name."""
_FRAME_LINES: Final = 6
"""Lines of the table that are no readers."""


class Look(NamedTuple):
    """The readers at one time."""

    at_ms: int
    readers: Sequence[ReaderLag]
    oldest_ms: Mapping[PartitionLag, int] = {}
    """Position → time of its next record, as far as it is known."""


class TopicRow(NamedTuple):
    """A reader's sums in one topic."""

    reader: str
    state: str
    topic: str
    partitions: int
    done: int
    """The sum of its offsets."""
    lag: int
    oldest_ms: int | None


def rows_of(look: Look) -> list[TopicRow]:
    """Return a row for each reader and topic, the one with the largest lag first."""
    rows = []
    for reader in look.readers:
        of_topics: dict[str, list[PartitionLag]] = {}
        for part in reader.partitions:
            of_topics.setdefault(part.topic, []).append(part)
        for topic, parts in of_topics.items():
            times = [look.oldest_ms[part] for part in parts if part in look.oldest_ms]
            rows.append(
                TopicRow(
                    reader.name,
                    reader.state,
                    topic,
                    len(parts),
                    sum(part.offset for part in parts),
                    sum(part.lag for part in parts),
                    min(times, default=None),
                )
            )
    return sorted(rows, key=lambda row: (-row.lag, row.reader, row.topic))


def page(
    look: Look, last_look: Look | None, *, brokers: str, columns: int, lines: int, has_age: bool
) -> str:
    """Return the table as it fits on a terminal.

    Args:
        look: the readers now.
        last_look: the look before it, for rates; None: this is the first.
        columns: width of the terminal.
        lines: height of the terminal.
        has_age: whether the time of the oldest unread record is shown.
    """
    rows = rows_of(look)
    total, behind = sum(row.lag for row in rows), sum(row.lag > 0 for row in rows)
    title = (
        f"{brokers}  {moment(look.at_ms - look.at_ms % 1000)} UTC  "
        f"lag {counted(total, 'offset')}  {number(behind)} of {number(len(rows))} behind"
    )
    first_rows = rows[: max(1, lines - _FRAME_LINES)]
    name_max = min(max(_NAMES[0], (columns - _OTHER_COLUMNS) // 2), _NAMES[1])
    head = ["reader", "state", "topic", "parts", "lag", "read/s", "to go"]
    cells = [tuple(head + (["oldest"] if has_age else []))]
    done = {} if last_look is None else {(row.reader, row.topic): row for row in rows_of(last_look)}
    span_s = 0.0 if last_look is None else (look.at_ms - last_look.at_ms) / 1000
    rates = [(row, done.get((row.reader, row.topic))) for row in first_rows]
    for row, earlier in rates:
        names = (shortened(row.reader, name_max), row.state, shortened(row.topic, name_max))
        age = (_age(row, look.at_ms),) if has_age else ()
        cells.append((*names, *_numbers(row, earlier, span_s), *age))
    text = [title, ""]
    text += table(cells, left_columns=3) if rows else ["  no group has committed an offset here"]
    if len(rows) > len(first_rows):
        text.append(f"  and {number(len(rows) - len(first_rows))} more with less lag")
    return "\n".join(line[:columns] for line in text) + "\n"


def _numbers(row: TopicRow, last_row: TopicRow | None, span_s: float) -> tuple[str, ...]:
    """Return partitions, lag, rate and time to go, from this look and the one before."""
    rate, to_go = "-", "-" if row.lag else ""
    if last_row is not None and span_s > 0:
        rate = f"{max(0, row.done - last_row.done) / span_s:,.0f}"
        falls = (last_row.lag - row.lag) / span_s
        if row.lag and falls > 0:
            to_go = duration(round(1000 * row.lag / falls))
        elif falls < 0:
            to_go = "growing"
    return number(row.partitions), number(row.lag), rate, to_go


def _age(row: TopicRow, now_ms: int) -> str:
    if row.oldest_ms is None:
        return "?" if row.lag else ""
    return duration(max(0, now_ms - row.oldest_ms))


def shortened(name: str, letters_max: int) -> str:
    """Return a name for a terminal: at most so long, and without letters that control it."""
    text = "".join(letter if letter.isprintable() else "?" for letter in name)
    half = (letters_max - 1) // 2
    return text if len(text) <= letters_max else f"{text[:half]}…{text[-half:]}"


def json_line(look: Look) -> str:
    """Return all that is known, in one line."""
    return json.dumps(
        {
            "at_ms": look.at_ms,
            "lag": sum(reader.lag for reader in look.readers),
            "readers": [
                {
                    "name": reader.name,
                    "state": reader.state,
                    "lag": reader.lag,
                    "partitions": list(_partitions(reader.partitions, look.oldest_ms)),
                }
                for reader in look.readers
            ],
        }
    )


def _partitions(
    parts: Iterable[PartitionLag], oldest_ms: Mapping[PartitionLag, int]
) -> Iterable[dict[str, Any]]:
    for part in parts:
        age = {"oldest_ms": oldest_ms[part]} if part in oldest_ms else {}
        yield {**part._asdict(), "lag": part.lag, **age}
