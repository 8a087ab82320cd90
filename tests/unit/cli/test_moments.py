"""Moments in words: zones, relative ones, milliseconds, and what is none."""

from __future__ import annotations

import pytest

from minibroker.cli.errors import UsageError
from minibroker.cli.moments import Moment, moment_of

NOW_MS = 1_795_500_000_123


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-11-24", 1_795_478_400_000),
        ("2026-11-24T17:30", 1_795_541_400_000),
        ("2026-11-24 17:30:05.250", 1_795_541_405_250),
        ("2026-11-24T17:30Z", 1_795_541_400_000),
        ("2026-11-24T17:30+01:00", 1_795_537_800_000),
        (" 2026-11-24T17:30:00.001-02:30", 1_795_550_400_001),
        ("now", NOW_MS),
        ("now-15m", NOW_MS - 900_000),
        ("now + 1h30m", NOW_MS + 5_400_000),
        ("-2h", NOW_MS - 7_200_000),
        ("1795262400000", 1_795_262_400_000),
    ],
)
def test_words_for_a_moment(text: str, ms: int) -> None:
    assert moment_of(text, NOW_MS) == Moment(text.strip(), ms)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01", "2026", "20261124", "1795262400", "-2", "-2x", "1969-12-31"],
)
def test_other_words_are_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r" is no moment: expected for instance 2026"):
        moment_of(text, NOW_MS)


def test_seconds_are_no_milliseconds() -> None:
    with pytest.raises(UsageError, match="a number is milliseconds since the epoch"):
        moment_of("1795262400", NOW_MS)
