"""The difference of two measurements on a machine whose speed varies more than they differ.

They run in pairs, right after each other. Each pair gives the change from the first to the second;
the result is the median of these.
"""

import math
from collections.abc import Sequence

CERTAINTY = 0.95


def changes(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return for each pair the change from the first to the second, as a part of the first."""
    return [new / old - 1 for old, new in zip(first, second, strict=True)]


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median with `CERTAINTY`, for any distribution.

    Each value is as likely below that median as above it, like a coin (the sign test). Less than
    six values are too few for it; they give their whole range.
    """
    ordered = sorted(values)
    count = len(ordered)
    beyond, chance = 0, 1 / 2**count
    while chance <= (1 - CERTAINTY) / 2:
        beyond += 1
        chance += math.comb(count, beyond) / 2**count
    outermost = max(0, beyond - 1)
    return ordered[outermost], ordered[-1 - outermost]
