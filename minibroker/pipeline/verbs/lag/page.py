"""The lag of readers as one HTML page: lines over time, and a table of the last look.

The watch writes the page anew at each look. It has as many looks as a plot can show: of a long
watch every second one goes, again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import duration, moment, number
from minibroker.pages.page import render
from minibroker.pages.plot import Bar, Series, Tick, bars, lines, short
from minibroker.pipeline.verbs.lag.text import rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from minibroker.pipeline.verbs.lag.text import Look, TopicRow

POINTS_MAX: Final = 600
_READERS_OF_A_POINT: Final = 20
"""Readers whose lag is remembered of each look: those with the most."""
_LINES_MAX: Final = 6
_BARS_MAX: Final = 10
_ROWS_MAX: Final = 1_000


class _Point(NamedTuple):
    """The lag at one time."""

    at_ms: int
    total: int
    of_readers: Mapping[str, int]


class History:
    """The lag so far, at most `POINTS_MAX` times of it. Belongs to the thread of the watch."""

    def __init__(self) -> None:
        self._points: list[_Point] = []
        self._every = 1
        """Only one look of so many is remembered."""
        self._looks = 0
        self.last: Look | None = None

    def add(self, look: Look) -> None:
        """Remember a look."""
        self.last = look
        self._looks += 1
        if (self._looks - 1) % self._every:
            return
        lags = {reader.name: reader.lag for reader in look.readers}
        worst = sorted(lags, key=lambda name: (-lags[name], name))[:_READERS_OF_A_POINT]
        total = sum(lags.values())
        self._points.append(_Point(look.at_ms, total, {name: lags[name] for name in worst}))
        if len(self._points) > POINTS_MAX:
            del self._points[1::2]
            self._every *= 2

    @property
    def points(self) -> Sequence[_Point]:
        """Return the remembered times, oldest first."""
        return self._points


def page(history: History, *, brokers: str, has_age: bool) -> str:
    """Return the whole page.

    Args:
        history: with one look or more.
        brokers: the cluster, for the title.
        has_age: whether the time of the oldest unread record is shown.
    """
    look = history.last
    assert look is not None
    rows = rows_of(look)
    head = ["Reader", "State", "Topic", "Partitions", "Lag"]
    return render(
        "pipeline/verbs/lag/page.html",
        brokers=brokers,
        looked_at=moment(look.at_ms - look.at_ms % 1000),
        figures=[
            ("Lag", number(sum(row.lag for row in rows))),
            ("Readers behind", f"{len({row.reader for row in rows if row.lag})}"),
            ("Readers", number(len(look.readers))),
        ],
        over_time=_over_time(history.points),
        now=_now(rows),
        head=[*head, "Oldest unread"] if has_age else head,
        rows=[_cells(row, look.at_ms, has_age=has_age) for row in rows[:_ROWS_MAX]],
    )


def _over_time(points: Sequence[_Point]) -> Markup | None:
    """Return a line for each of the readers that were behind most, None for a single look."""
    if len(points) < 2:
        return None
    most: dict[str, int] = {}
    for point in points:
        for name, lag in point.of_readers.items():
            most[name] = max(most.get(name, 0), lag)
    names = sorted(most, key=lambda name: (-most[name], name))[:_LINES_MAX]
    series = [
        Series(
            name,
            [(point.at_ms, point.of_readers[name]) for point in points if name in point.of_readers],
        )
        for name in names
    ]
    first_ms, last_ms = (point.at_ms // 1000 * 1000 for point in (points[0], points[-1]))
    return lines(
        series,
        [Tick(0.0, moment(first_ms)), Tick(1.0, moment(last_ms)[11:])],
        description=f"Lag of readers from {moment(first_ms)} to {moment(last_ms)}",
        show=short,
        is_area=len(series) == 1,
    )


def _now(rows: Sequence[TopicRow]) -> Markup | None:
    """Return bars of the largest lags, None if nobody is behind."""
    behind = [row for row in rows if row.lag][:_BARS_MAX]
    if not behind:
        return None
    return bars(
        [Bar(row.lag, f"{row.reader}, {row.topic}", f"{number(row.lag)} behind") for row in behind],
        description="How many offsets each reader is behind the end of a topic",
    )


def _cells(row: TopicRow, now_ms: int, *, has_age: bool) -> list[str]:
    cells = [row.reader, row.state, row.topic, number(row.partitions), number(row.lag)]
    if has_age:
        oldest_ms = row.oldest_ms
        cells.append("–" if oldest_ms is None else duration(max(0, now_ms - oldest_ms)))
    return cells
