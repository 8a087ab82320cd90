"""A moment as a person writes it, for `--since` and `--until`, in milliseconds since the epoch.

| text | moment |
|---|---|
| `2026-11-24`, `2026-11-24T17:30`, `2026-11-24 17:30:05.250` | in UTC |
| `2026-11-24T17:30Z`, `2026-11-24T17:30+01:00` | in the zone that it names |
| `now`, `now-15m`, `now+1h`, `-2h` | from the moment of the call |
| `1795262400000` | milliseconds since the epoch |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from minibroker.cli.errors import UsageError
from minibroker.cli.quantities import milliseconds

_SIGNED: Final = re.compile(r"(?:now)?\s*([+-])\s*(.+)")
_MILLISECONDS_DIGITS: Final = range(12, 16)
"""Digits of milliseconds since the epoch, of the years 1973 to 33658; fewer would be seconds."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """A moment, and the words for it."""

    text: str
    ms: int


def moment_of(text: str, now_ms: int) -> Moment:
    """Return the moment that `text` names.

    Args:
        text: see the table of this module.
        now_ms: what `now` means.

    Raises:
        UsageError: it names no moment, or one before 1970.
    """
    words = text.strip()
    ms = _relative_ms(words, now_ms)
    if ms is None:
        ms = int(words) if _is_milliseconds(words) else _iso_ms(words)
    if ms is None or ms < 0:
        hint = "; a number is milliseconds since the epoch" if words.isdecimal() else ""
        raise UsageError(
            f"{text!r} is no moment: expected for instance 2026-11-24, "
            f"2026-11-24T17:30+01:00, -2h, now-15m or 1795262400000{hint}"
        )
    return Moment(words, ms)


def _relative_ms(words: str, now_ms: int) -> int | None:
    if words == "now":
        return now_ms
    match = _SIGNED.fullmatch(words)
    distance_ms = None if match is None else milliseconds(match[2])
    if match is None or distance_ms is None:
        return None
    return now_ms - distance_ms if match[1] == "-" else now_ms + distance_ms


def _is_milliseconds(words: str) -> bool:
    return words.isascii() and words.isdecimal() and len(words) in _MILLISECONDS_DIGITS


def _iso_ms(words: str) -> int | None:
    if words.isdecimal():
        return None  # `20261124` is ISO, too, and is more often a number by mistake
    try:
        when = datetime.fromisoformat(words)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _EPOCH) // timedelta(milliseconds=1)
