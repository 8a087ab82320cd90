"""The sampled rate and its delay, with numbers worked out by Kafka's rules."""

from __future__ import annotations

import pytest

from minibroker.broker.quotas.connection_rates import UNLIMITED, ConnectionRates
from minibroker.broker.quotas.rate import DELAY_MS_MAX, Rate, delay_ms
from minibroker.broker.quotas.token_bucket import TokenBucket, refill_ms

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


# The bucket of controller_mutation_rate.


NOW_MS = 1_700_000_000_000
RATE, BURST = 5.0, 55.0


def test_begins_full_and_goes_below_zero_at_once() -> None:
    bucket = TokenBucket()
    assert bucket.tokens(NOW_MS, RATE, BURST) == BURST
    assert bucket.take(60, NOW_MS, RATE, BURST) == -5.0


def test_fills_steadily_up_to_the_burst() -> None:
    bucket = TokenBucket()
    bucket.take(60, NOW_MS, RATE, BURST)
    assert bucket.tokens(NOW_MS + 500, RATE, BURST) == pytest.approx(-2.5)
    assert bucket.tokens(NOW_MS + 1000, RATE, BURST) == pytest.approx(0.0)
    assert bucket.tokens(NOW_MS + 60_000, RATE, BURST) == BURST


def test_a_smaller_limit_cuts_what_is_there() -> None:
    bucket = TokenBucket()
    bucket.tokens(NOW_MS, RATE, BURST)
    assert bucket.tokens(NOW_MS, 1.0, 11.0) == 11.0


def test_kip_599_worked_example() -> None:
    # Quota 5, burst 500: 560 at once leave -60, which take 12 seconds.
    bucket = TokenBucket()
    assert refill_ms(bucket.take(560, NOW_MS, 5.0, 500.0), 5.0) == 12_000


@pytest.mark.parametrize(
    ("tokens", "rate", "wait_ms"),
    [(0.0, 5.0, 0), (3.0, 5.0, 0), (-0.0025, 1.0, 3), (-1.0, 0.0, DELAY_MS_MAX)],
)
def test_time_back_to_zero(tokens: float, rate: float, wait_ms: int) -> None:
    assert refill_ms(tokens, rate) == wait_ms


# Limits of new connections per second.


@pytest.fixture
def rates() -> ConnectionRates:
    return ConnectionRates(11, 1000)


def test_no_limit_no_delay(rates: ConnectionRates) -> None:
    assert rates.address_delay_ms("10.0.0.1", NOW_MS) == 0
    assert rates.delay_ms(rates.of_broker, UNLIMITED, NOW_MS) == 0


@pytest.mark.parametrize(
    ("entity", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("<default>", "10.9.9.9"),
        ("%3A%3A1", "0:0:0:0:0:0:0:1"),
        ("%3A%3Affff%3A10.0.0.1", "10.0.0.1"),
        ("0%3A0%3A0%3A0%3A0%3A0%3A0%3A1", "0:0:0:0:0:0:0:1"),
    ],
)
def test_an_entity_meets_its_address(rates: ConnectionRates, entity: str, address: str) -> None:
    rates.set(entity, 1)
    delays = [rates.address_delay_ms(address, NOW_MS) for _ in range(12)]
    # The eleventh is over, the delay (10 s and more by the rate) is one window at most.
    assert delays == [0] * 10 + [1000, 1000]
    rates.set(entity, None)
    assert rates.address_delay_ms(address, NOW_MS) == 0


def test_refused_connections_do_not_count(rates: ConnectionRates) -> None:
    rates.set("10.0.0.1", 1)
    for _ in range(1000):
        rates.address_delay_ms("10.0.0.1", NOW_MS)
    assert rates.address_delay_ms("10.0.0.1", NOW_MS + 11_000) == 0


def test_its_own_limit_stands_over_the_default(rates: ConnectionRates) -> None:
    rates.set("<default>", 1)
    rates.set("10.0.0.1", 100)
    assert [rates.address_delay_ms("10.0.0.1", NOW_MS) for _ in range(50)] == [0] * 50


def test_the_broker_waits_and_counts_the_wait(rates: ConnectionRates) -> None:
    delays = [rates.delay_ms(rates.of_broker, 1, NOW_MS) for _ in range(11)]
    assert delays == [0] * 10 + [1000]
    rates.take_back(rates.of_broker, NOW_MS)
    rates.take_back(rates.of_broker, NOW_MS)
    assert rates.delay_ms(rates.of_broker, 1, NOW_MS) == 0


def test_a_limit_that_is_set_later_knows_the_connections_before_it(rates: ConnectionRates) -> None:
    for _ in range(20):
        assert rates.delay_ms(rates.of_broker, UNLIMITED, NOW_MS) == 0
    assert rates.delay_ms(rates.of_broker, 1, NOW_MS) == 1000
