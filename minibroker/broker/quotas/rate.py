"""A sampled rate and the delay that brings it back under a limit: arithmetic, no clock.

Time is cut into windows of `window_ms`; a sample holds the sum of one window. `count`
samples are looked at: the full ones and the one that is filling. The rate is their sum over the
time that they span, but never less than `count - 1` whole windows: a burst right after the start
does not look like a rate of thousands.

The delay spreads the same sum over a longer time: observed × window = limit × (window + delay).

Source: Kafka Rate, SampledStat, QuotaUtils.
"""

from __future__ import annotations

from array import array
from math import floor
from typing import Final

DELAY_MS_MAX: Final = 2**31 - 1
"""`throttle_time_ms` is an int32."""
_START, _LAST, _SUM, _FIELDS = 0, 1, 2, 3


class Rate:
    """Sum per window of one sensor: 24 bytes a sample, samples made as they are needed."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        # Per sample: when it began and was last added to (ms), the sum.
        self._samples = array("d")
        self._current = 0

    def record(self, value: float, now_ms: int, window_ms: int, count: int) -> None:
        """Add `value` (negative: take it back) to the sample of now."""
        samples = self._samples
        if not samples:
            samples.extend((now_ms, now_ms, 0.0))
        at = self._current
        if now_ms + window_ms < samples[at + _START]:  # the clock was set back
            del samples[:]
            samples.extend((now_ms, now_ms, 0.0))
            at = self._current = 0
        elif now_ms - samples[at + _START] >= window_ms:
            # One place more than is looked at: the oldest sample may lie half in the time spanned.
            at = (at + _FIELDS) % ((count + 1) * _FIELDS)
            if at >= len(samples):
                samples.extend((now_ms, now_ms, 0.0))
            else:
                _reset(samples, at, now_ms)
            self._current = at
        samples[at + _SUM] += value
        samples[at + _LAST] = now_ms

    def measure(self, now_ms: int, window_ms: int, count: int) -> tuple[float, int]:
        """Return the rate per second, and the time (ms) that it was measured over."""
        total, span_ms = self._total(now_ms, window_ms, count)
        missing_windows = count - 1 - span_ms // window_ms
        if missing_windows > 0:
            span_ms += missing_windows * window_ms
        span_ms = max(span_ms, 1)
        return total * 1000 / span_ms, span_ms

    def measure_simply(self, now_ms: int, window_ms: int, count: int) -> float:
        """Return the rate per second since the oldest sample began, or over one window if that is
        longer. Source: Kafka SimpleRate.
        """
        total, span_ms = self._total(now_ms, window_ms, count)
        return total * 1000 / max(span_ms, window_ms)

    def _total(self, now_ms: int, window_ms: int, count: int) -> tuple[float, int]:
        """Return the sum of the samples that count, and the ms since the oldest of them began."""
        samples = self._samples
        expired_ms = now_ms - count * window_ms
        total = 0.0
        oldest_ms = float(now_ms)
        for at in range(0, len(samples), _FIELDS):
            if samples[at + _LAST] <= expired_ms or samples[at + _START] > now_ms + window_ms:
                _reset(samples, at, now_ms)
                continue
            total += samples[at + _SUM]
            oldest_ms = min(oldest_ms, samples[at + _START])
        return total, now_ms - int(oldest_ms)


def _reset(samples: array[float], at: int, now_ms: int) -> None:
    samples[at + _START] = samples[at + _LAST] = now_ms
    samples[at + _SUM] = 0.0


def delay_ms(rate: float, limit: float, span_ms: int) -> int:
    """Return the pause in ms after which `rate`, measured over `span_ms`, is down at `limit`.

    0 if it is not over; both per second. A limit of 0 lets nothing through: the longest delay.
    """
    if rate <= limit:
        return 0
    if limit <= 0:
        return DELAY_MS_MAX
    return min(floor((rate - limit) / limit * span_ms + 0.5), DELAY_MS_MAX)
