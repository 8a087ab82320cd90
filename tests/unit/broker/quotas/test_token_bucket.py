"""The bucket of controller_mutation_rate."""

from __future__ import annotations

import pytest

from minibroker.broker.quotas.rate import DELAY_MS_MAX
from minibroker.broker.quotas.token_bucket import TokenBucket, refill_ms

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
