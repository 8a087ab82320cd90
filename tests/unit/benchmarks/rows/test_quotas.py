"""Figures from a throttled client's progress."""

from __future__ import annotations

import pytest

from benchmarks.rows.quotas import (
    WINDOW_S,
    Sample,
    complete,
    let_through,
    parse_detailed,
    parse_progress,
    rate_after_first_window,
)
from benchmarks.rows.session import RowError

MB = 1_000_000


def cycle(limit_mb: float, seconds: int) -> list[Sample]:
    """A burst of a whole window's bytes at the begin of each window, then nothing."""
    step_s = 0.1
    samples = []
    for step in range(int(seconds / step_s)):
        at_s = step * step_s
        bursts = int(at_s // WINDOW_S) + 1
        samples.append(Sample(100 + at_s, bursts * limit_mb * WINDOW_S * MB if step else 0.0))
    return samples


def test_the_rate_over_whole_windows_is_the_limit_wherever_the_bursts_fall() -> None:
    samples = cycle(2.0, 30)
    assert rate_after_first_window(samples) == pytest.approx(2.0)
    assert let_through(samples, 20) == pytest.approx(44.0)


def test_a_rate_needs_two_windows() -> None:
    with pytest.raises(RowError, match="less than two windows"):
        rate_after_first_window(cycle(2.0, 20))


def test_a_run_begins_with_nothing_and_ends_with_what_came_last() -> None:
    whole = complete([Sample(5.0, 10.0), Sample(6.0, 30.0)], 20)
    assert whole[0] == (4.9, 0.0)
    assert whole[-1] == (24.9, 30.0)
    assert complete(whole, 20) == whole


def test_progress_of_the_assigned_consumer() -> None:
    output = "at 100 0\nwarning\nat 1100000000 2000\nread 5 bytes in 6 ns\n"
    assert parse_progress(output) == [(1e-7, 0.0), (1.1, 2000.0)]


def test_progress_of_consumer_performance() -> None:
    output = (
        "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec\n"
        "010203500, 0, 0.5000, 5.0, 100, 1000.0, 0, 0, 0, 0\n"
        "235959000, 0, 2.0000, 5.0, 100, 1000.0, 0, 0, 0, 0\n"
        "a line, with, commas, in it\n"
    )
    assert parse_detailed(output) == [(3723.5, 524288.0), (86399.0, 2097152.0)]
