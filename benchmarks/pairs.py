"""What two ways of measuring differ by, when the machine's mood changes more than they do.

They are measured in pairs, right after each other; of each pair counts how much more the second
was than the first, and of these the median.
"""

import math
from collections.abc import Sequence

CERTAINTY = 0.95


def changes(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Of each pair: by which part of the first the second is larger."""
    return [new / old - 1 for old, new in zip(before, after, strict=True)]


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of all such values lies, with `CERTAINTY`, whatever their distribution.

    Each value is as likely below that median as above it, so how many are is a matter of coins (the
    sign test). Less than six values are too few for it; these give their whole range.
    """
    ordered = sorted(values)
    count = len(ordered)
    beyond, chance = 0, 1 / 2**count
    while chance <= (1 - CERTAINTY) / 2:
        beyond += 1
        chance += math.comb(count, beyond) / 2**count
    outermost = max(0, beyond - 1)
    return ordered[outermost], ordered[-1 - outermost]
