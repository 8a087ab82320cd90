"""Plots as inline SVG, for the page of `page`: columns over an axis, and bars with words.

No library: a few rectangles and texts. Horizontal positions are percentages and text keeps its
size, so that one drawing fits a telephone and a wide screen. Each plot has a description for screen
readers; the page shows the numbers in a table as well.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEIGHT: Final = 190
_TOP: Final = 22
_BASE: Final = 162
_BAR_HEIGHT: Final = 14
_ROW_HEIGHT: Final = 44
_LABEL_Y: Final = 180
_WORDS_Y: Final = 12
"""Place of the words about a line: above the highest column, so that they are never on one."""
_GAP: Final = 0.16
"""Part of a column's width that stays empty."""
_SCALE_GAP: Final = 6
"""Space between the numbers of the scale, in the margin of the page, and the columns."""
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


def columns(
    values: Sequence[Column],
    ticks: Sequence[Tick],
    *,
    description: str,
    show: Callable[[float], str],
    line: tuple[float, str] | None = None,
) -> str:
    """Return columns side by side; `line` is a dashed line across at a value, with its words."""
    highest = max([value.value for value in values] + ([line[0]] if line else []), default=0) or 1
    top = nice_ceiling(highest)
    parts = [_open("columns", HEIGHT, description)]
    for fraction in (0.5, 1.0):
        y = _y(fraction)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="scale" x="{-_SCALE_GAP}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(show(top * fraction))}</text>"
        )
    width = 100 / max(len(values), 1)
    for place, bar in enumerate(values):
        # What is there must be seen, however small beside the others.
        height = max(bar.value / top * (_BASE - _TOP), 1.5 if bar.value else 0)
        kind = ' class="mark"' if bar.is_marked else ""
        parts.append(
            f'<rect{kind} x="{place * width + width * _GAP / 2:.3f}%" y="{_BASE - height:.1f}" '
            f'width="{width * (1 - _GAP):.3f}%" height="{height:.1f}">'
            f"<title>{escape(bar.label)}</title></rect>"
        )
    parts.append(f'<line class="axis" x1="0" x2="100%" y1="{_BASE}" y2="{_BASE}"/>')
    if line is not None:
        y = _y(line[0] / top)
        parts.append(f'<line class="fair" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
        parts.append(_text(100, _WORDS_Y, line[1], "end", "words"))
    for tick in ticks:
        anchor = {0.0: "start", 1.0: "end"}.get(tick.place, "middle")
        parts.append(_text(tick.place * 100, _LABEL_Y, tick.label, anchor, "tick"))
    return "".join(parts) + "</svg>"


class Bar(NamedTuple):
    """One bar: `label` is above it, `value_label` to its right."""

    value: float
    label: str
    value_label: str
    is_marked: bool = False


def bars(values: Sequence[Bar], *, description: str) -> str:
    """Return bars below each other, the longest as wide as the plot."""
    longest = max((value.value for value in values), default=0) or 1
    parts = [_open("bars", _ROW_HEIGHT * len(values), description)]
    for row, bar in enumerate(values):
        y = row * _ROW_HEIGHT
        width = max(bar.value / longest * 100, 0.5 if bar.value else 0)
        kind = ' class="mark"' if bar.is_marked else ""
        parts.append(_text(0, y + 14, bar.label, "start", "name"))
        parts.append(_text(100, y + 14, bar.value_label, "end", "amount"))
        parts.append(
            f'<rect class="track" x="0" y="{y + 20}" width="100%" height="{_BAR_HEIGHT}"/>'
            f'<rect{kind} x="0" y="{y + 20}" width="{width:.2f}%" height="{_BAR_HEIGHT}"/>'
        )
    return "".join(parts) + "</svg>"


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


def _open(kind: str, height: int, description: str) -> str:
    label = escape(description, quote=True)
    return f'<svg class="{kind}" role="img" aria-label="{label}" width="100%" height="{height}">'


def _y(fraction: float) -> float:
    return round(_BASE - fraction * (_BASE - _TOP), 1)


def _text(place: float, y: float, content: str, anchor: str, kind: str) -> str:
    return (
        f'<text class="{kind}" x="{place:.3f}%" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(content)}</text>"
    )
