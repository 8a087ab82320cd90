"""Moments in words, and quantities with no more digits than are true."""

from __future__ import annotations

import pytest

from minibroker.cli.errors import UsageError
from minibroker.cli.moments import Moment, moment_of
from minibroker.cli.quantities import (
    counted,
    duration,
    milliseconds,
    moment,
    percent,
    rate,
    size,
    time_of_day,
)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "0 %"),
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 10_000, "less than 0.1 %"),
        (9_999, 10_000, "99.9 %"),
        (995, 1_000, "99.5 %"),
        (71, 100, "71 %"),
        (15, 1_000, "1.5 %"),
    ],
)
def test_percentages_never_round_to_all_or_nothing(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


def test_numbers_as_people_read_them() -> None:
    assert [counted(value, "record") for value in (0, 1, 1_234)] == [
        "0 records",
        "1 record",
        "1,234 records",
    ]
    assert [size(value) for value in (0, 1023, 1536, 5 << 30, 1 << 50)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 GiB",
        "1024.0 TiB",
    ]
    assert [duration(ms) for ms in (0, 999, 3_400, 60_000, 125_000, 90_061_000)] == [
        "0 ms",
        "999 ms",
        "3 s",
        "1 min",
        "2 min 5 s",
        "1 d 1 h",
    ]
    assert [rate(per_second) for per_second in (12_345.6, 0.25)] == [
        "12,346 records/s",
        "0.25 records/s",
    ]
    assert [moment(ms) for ms in (0, 1, 10**18)] == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.001",
        f"{10**18} ms",
    ]


def test_a_duration_is_numbers_with_units() -> None:
    texts = ("90s", "1h30m", "15 min", "250ms", "1d", "0s")
    assert [milliseconds(text) for text in texts] == [
        90_000,
        5_400_000,
        900_000,
        250,
        86_400_000,
        0,
    ]
    assert [milliseconds(text) for text in ("", "5", "soon", "5 weeks", "-1s")] == [None] * 5
    assert milliseconds(" 5 ", without_unit=True) == 5


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


def test_a_time_of_day_is_a_moment_where_no_calendar_has_it() -> None:
    """A producer may claim any time."""
    assert time_of_day(1_795_849_892_250) == "07:11:32.250"
    assert time_of_day(2**62) == f"{2**62} ms"
