"""A bucket of tokens that fills steadily: the quota for changes of topics. No clock.

It fills at `rate` tokens a second up to `burst`. A client may take more than there is; then the
bucket is exhausted until it is back at zero. A sampled rate would hold a client back until the
window of its burst is over, even if it was over by little.

Source: KIP-599; Kafka TokenBucket, ControllerMutationQuotaManager.
"""

from __future__ import annotations

from math import floor

from minibroker.broker.quotas.rate import DELAY_MS_MAX


class TokenBucket:
    """The tokens of one sensor; it begins full."""

    __slots__ = ("_filled_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens = 0.0
        self._filled_ms = 0

    def tokens(self, now_ms: int, rate: float, burst: float) -> float:
        """Return the tokens in the bucket now; a clock that was set back changes nothing."""
        tokens = self._tokens + rate * max(0, now_ms - self._filled_ms) / 1000
        self._tokens = min(burst, tokens)
        self._filled_ms = now_ms
        return self._tokens

    def take(self, count: float, now_ms: int, rate: float, burst: float) -> float:
        """Take `count` tokens, there or not; return the tokens left."""
        self._tokens = min(burst, self.tokens(now_ms, rate, burst) - count)
        return self._tokens


def refill_ms(tokens: float, rate: float) -> int:
    """Return the ms until a bucket with `tokens` is back at zero; 0 if it is not below."""
    if tokens >= 0:
        return 0
    if rate <= 0:
        return DELAY_MS_MAX
    return min(floor(-tokens / rate * 1000 + 0.5), DELAY_MS_MAX)
