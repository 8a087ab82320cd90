"""Quantities say what they are, and no more digits than are true."""

from __future__ import annotations

import pytest

from minibroker.cli.quantities import (
    counted,
    duration,
    milliseconds,
    moment,
    percent,
    rate,
    size,
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
