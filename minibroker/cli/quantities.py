"""Quantities as a person reads them, the same in a report, on a terminal and in a preview.

A duration is read and written here, too, the same on the command line and in an option.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_KILO: Final = 1024
_DURATION: Final = r"(\d{1,15})\s*(ms|min|s|m|h|d)"
_UNIT_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
"""Units of a duration, the longest first; a minute is `min` in a text for persons."""


def milliseconds(text: str, *, without_unit: bool = False) -> int | None:
    """Return a duration such as `90s`, `1h30m`, `15 min` or `250ms`; None if the text is none.

    Args:
        text: numbers with units, added up.
        without_unit: a number alone counts, as milliseconds.
    """
    if without_unit and text.strip().isdecimal():
        return int(text)
    parts = re.findall(_DURATION, text)
    if not parts or re.sub(_DURATION, "", text).strip():
        return None
    return sum(int(count) * _UNIT_MS[unit.removesuffix("in")] for count, unit in parts)


def exact_duration(span_ms: int) -> str:
    """Return a duration as `milliseconds` reads it: `1h30m`."""
    return "".join(f"{count}{unit}" for count, unit in _counts(span_ms))


def _counts(span_ms: int) -> list[tuple[int, str]]:
    """Return how many of each unit a duration has, without those that it has none of."""
    counts = []
    for unit, unit_ms in _UNIT_MS.items():
        count, span_ms = divmod(span_ms, unit_ms)
        if count:
            counts.append((count, unit))
    return counts


def number(value: int) -> str:
    """Return `1,234,567`."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """Return `1 record`, `1,234 records`."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def percent(part: int, whole: int) -> str:
    """Return `71 %`; 0 and 100 only if the share is exactly that."""
    if whole == 0 or part == 0:
        return "0 %"
    value = 100 * part / whole
    if part == whole:
        return "100 %"
    if value < 0.1:
        return "less than 0.1 %"
    if value < 10 or value > 99:
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.0f} %"


def size(size_bytes: float) -> str:
    """Return `512 B`, `1.5 MiB`."""
    value, unit = float(size_bytes), 0
    while value >= _KILO and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / _KILO, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {_BYTE_UNITS[unit]}"


def rate(per_second: float) -> str:
    """Return `1,234 records/s`, with one more digit below ten."""
    return f"{per_second:,.0f} records/s" if per_second >= 10 else f"{per_second:.2g} records/s"


def duration(span_ms: int) -> str:
    """Return `250 ms`, `3 s`, `2 min 5 s`, `1 d 4 h`."""
    if span_ms < 1_000:
        return f"{span_ms} ms"
    counts = _counts(span_ms - span_ms % 1_000)
    return " ".join(f"{count} {'min' if unit == 'm' else unit}" for count, unit in counts[:2])


def moment(ms: int) -> str:
    """Return `2026-11-21 07:51:32` in UTC, with milliseconds if they are not 0."""
    try:
        when = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    text = when.strftime("%Y-%m-%d %H:%M:%S")
    return text if ms % 1000 == 0 else f"{text}.{ms % 1000:03d}"


def time_of_day(ms: int) -> str:
    """Return `07:51:32.250` in UTC; the whole moment where no calendar has it."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
