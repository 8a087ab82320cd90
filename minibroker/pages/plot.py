"""Plots as inline SVG: columns over an axis, bars with words, lines over time.

This module computes places; `plots.html` has the markup. Horizontal positions are percentages and
text keeps its size, so that one drawing fits a telephone and a wide screen. Each plot has a
description for screen readers; its page shows the numbers in a table as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from markupsafe import Markup

from minibroker.pages.page import macro

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TEMPLATE: Final = "pages/plots.html"
_HEIGHT: Final = 190
_TOP: Final = 22
_BASE: Final = 162
_ROW_HEIGHT: Final = 44
_GAP: Final = 0.16
"""Part of a column's width that stays empty."""
_UNITS: Final = 1000
"""Width of the drawing of lines, which the browser stretches."""
_STEPS: Final = (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10)


class Column(NamedTuple):
    """One column: `label` is the tooltip's text, `is_marked` gives it the warning colour."""

    value: float
    label: str
    is_marked: bool = False


class Tick(NamedTuple):
    """A label below the axis; `place` is 0 to 1 from the left, a label at an end stays inside."""

    place: float
    label: str

    @property
    def anchor(self) -> str:
        """Return the end of the text that stands at its place, as SVG calls it."""
        return {0.0: "start", 1.0: "end"}.get(self.place, "middle")


class Bar(NamedTuple):
    """One bar: `label` is above it, `value_label` to its right."""

    value: float
    label: str
    value_label: str
    is_marked: bool = False


class Series(NamedTuple):
    """One line: its name, and points (x, y) in the order of x."""

    label: str
    points: Sequence[tuple[float, float]]


class _Mark(NamedTuple):
    """A height with its label."""

    y: float
    label: str


class _Box(NamedTuple):
    """A column in its place: `x` and `width` in percent, `y` and `height` in pixels."""

    x: float
    y: float
    width: float
    height: float
    label: str
    is_marked: bool


class _Row(NamedTuple):
    """A bar in its place: `y` in pixels, `width` in percent."""

    y: int
    width: float
    label: str
    value_label: str
    is_marked: bool


class _Path(NamedTuple):
    """A line in its place, in units of the inner drawing."""

    label: str
    points: str
    first_x: str
    last_x: str


def columns(
    values: Sequence[Column],
    ticks: Sequence[Tick],
    *,
    description: str,
    show: Callable[[float], str],
    line: tuple[float, str] | None = None,
) -> Markup:
    """Return columns side by side; `line` is a dashed line across at a value, with its words."""
    highest = max([value.value for value in values] + ([line[0]] if line else []), default=0) or 1
    top = nice_ceiling(highest)
    width = 100 / max(len(values), 1)
    boxes = []
    for place, column in enumerate(values):
        # A column must be visible, however small beside the others.
        height = max(column.value / top * (_BASE - _TOP), 1.5 if column.value else 0)
        boxes.append(
            _Box(
                place * width + width * _GAP / 2,
                _BASE - height,
                width * (1 - _GAP),
                height,
                column.label,
                column.is_marked,
            )
        )
    return _drawn(
        "columns",
        description=description,
        height=_HEIGHT,
        boxes=boxes,
        grid=_grid(top, show),
        base=_BASE,
        ticks=ticks,
        line=None if line is None else _Mark(_y(line[0] / top), line[1]),
    )


def bars(values: Sequence[Bar], *, description: str) -> Markup:
    """Return bars below each other, the longest as wide as the plot."""
    longest = max((value.value for value in values), default=0) or 1
    rows = [
        _Row(
            number * _ROW_HEIGHT,
            max(bar.value / longest * 100, 0.5 if bar.value else 0),
            bar.label,
            bar.value_label,
            bar.is_marked,
        )
        for number, bar in enumerate(values)
    ]
    return _drawn("bars", description=description, height=_ROW_HEIGHT * len(values), rows=rows)


def lines(
    series: Sequence[Series],
    ticks: Sequence[Tick],
    *,
    description: str,
    show: Callable[[float], str],
    is_area: bool = False,
) -> Markup:
    """Return lines over one axis of x, from 0 up; `is_area` fills the space below each."""
    all_points = [point for one_line in series for point in one_line.points]
    top = nice_ceiling(max((y for _, y in all_points), default=0) or 1)
    first = min((x for x, _ in all_points), default=0.0)
    span = max((x for x, _ in all_points), default=0.0) - first or 1.0
    depth = _BASE - _TOP
    paths = []
    for one_line in series:
        places = [
            (f"{(x - first) / span * _UNITS:.1f}", f"{depth - y / top * depth:.1f}")
            for x, y in one_line.points
        ]
        if places:
            points = " ".join(map(",".join, places))
            paths.append(_Path(one_line.label, points, places[0][0], places[-1][0]))
    return _drawn(
        "lines",
        description=description,
        height=_HEIGHT,
        top=_TOP,
        depth=depth,
        paths=paths,
        grid=_grid(top, show),
        base=_BASE,
        ticks=ticks,
        is_area=is_area,
    )


def nice_ceiling(value: float) -> float:
    """Return the next of 1, 1.2, 1.6, 2, 3 … times a power of ten: half of it is a short number
    too.
    """
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * step for step in _STEPS if power * step >= value)


def short(value: float) -> str:
    """Return a short number for a scale: `950`, `1.2k`, `3.4M`."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + name
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _drawn(kind: str, **values: Any) -> Markup:
    return macro(_TEMPLATE, kind, **values)


def _grid(top: float, show: Callable[[float], str]) -> list[_Mark]:
    return [_Mark(_y(fraction), show(top * fraction)) for fraction in (0.5, 1.0)]


def _y(fraction: float) -> float:
    return round(_BASE - fraction * (_BASE - _TOP), 1)
