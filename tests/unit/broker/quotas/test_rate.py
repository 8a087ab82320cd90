"""The sampled rate and its delay, with numbers worked out by Kafka's rules."""

from __future__ import annotations

import pytest

from minibroker.broker.quotas.rate import DELAY_MS_MAX, Rate, delay_ms

WINDOW_MS, COUNT = 1000, 11
START_MS = 1_700_000_000_000


def recorded(*values: tuple[int, float]) -> Rate:
    """A rate with (ms after the start, value) recorded."""
    rate = Rate()
    for at_ms, value in values:
        rate.record(value, START_MS + at_ms, WINDOW_MS, COUNT)
    return rate


def measured(rate: Rate, at_ms: int) -> tuple[float, int]:
    return rate.measure(START_MS + at_ms, WINDOW_MS, COUNT)


def test_a_first_burst_is_spread_over_ten_whole_windows() -> None:
    assert measured(recorded((0, 5000)), 0) == (500.0, 10_000)


def test_the_window_that_is_filling_counts_as_far_as_it_is() -> None:
    rate, span_ms = measured(recorded((0, 5000), (1500, 1000)), 1500)
    assert span_ms == 10_500  # 1.5 s, and the nine windows that are missing
    assert rate == pytest.approx(6000 / 10.5)


def test_the_span_grows_to_the_windows_looked_at_and_no_further() -> None:
    rate = recorded(*((second * 1000, 100.0) for second in range(30)))
    assert measured(rate, 29_500) == (pytest.approx(1100 / 10.5), 10_500)


def test_samples_older_than_all_windows_are_forgotten() -> None:
    rate = recorded((0, 5000))
    assert measured(rate, 10_999)[0] > 0
    assert measured(rate, 11_000) == (0.0, 10_000)


def test_taking_back_leaves_what_was_there() -> None:
    rate = recorded((0, 5000), (10, 800), (10, -800))
    assert measured(rate, 10)[0] == pytest.approx(5000 / 10.010)


def test_nothing_recorded_is_no_rate() -> None:
    assert measured(Rate(), 0) == (0.0, 10_000)


def test_one_window_of_no_length_is_a_millisecond() -> None:
    rate = Rate()
    rate.record(7, START_MS, WINDOW_MS, 1)
    assert rate.measure(START_MS, WINDOW_MS, 1) == (7000.0, 1)


@pytest.mark.parametrize(
    ("rate", "limit", "delay"),
    [
        (500.0, 1000.0, 0),
        (1000.0, 1000.0, 0),
        (1500.0, 1000.0, 5000),
        (1000.0625, 1000.0, 1),  # 0.625 ms
        (10.0**12, 1.0, DELAY_MS_MAX),
        (1.0, 0.0, DELAY_MS_MAX),
    ],
)
def test_the_delay_is_what_brings_the_rate_down_to_the_limit(
    rate: float, limit: float, delay: int
) -> None:
    assert delay_ms(rate, limit, 10_000) == delay


def test_after_the_delay_the_rate_is_at_the_limit() -> None:
    rate = recorded((0, 15_000))
    observed, span_ms = measured(rate, 0)
    wait_ms = delay_ms(observed, 1000.0, span_ms)
    assert wait_ms == 5000
    # Ten windows and the wait: what came fills them exactly.
    assert observed * span_ms == pytest.approx(1000.0 * (span_ms + wait_ms))
