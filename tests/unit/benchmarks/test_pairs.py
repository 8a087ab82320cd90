"""The interval of a median, checked against binomial tables and by drawing."""

from __future__ import annotations

import random
from statistics import median

import pytest

from benchmarks.pairs import changes, median_interval


def test_a_change_is_of_its_own_pair() -> None:
    assert changes([1.0, 10.0, 4.0], [2.0, 11.0, 3.0]) == pytest.approx([1.0, 0.1, -0.25])


@pytest.mark.parametrize(
    ("count", "lowest"), [(6, 1), (8, 1), (9, 2), (20, 6), (25, 8), (50, 18), (100, 40)]
)
def test_its_ends_are_those_of_the_sign_test(count: int, lowest: int) -> None:
    """Ranks out of the tables of the sign test, two-sided 5 %."""
    values = [float(value) for value in range(1, count + 1)]
    random.Random(count).shuffle(values)
    assert median_interval(values) == (lowest, count + 1 - lowest)


@pytest.mark.parametrize("values", [[3.0], [2.0, 1.0], [5.0, 1.0, 2.0, 4.0, 3.0]])
def test_of_few_values_it_is_their_range(values: list[float]) -> None:
    assert median_interval(values) == (min(values), max(values))


def test_it_holds_the_median_of_skewed_values_as_often_as_it_says() -> None:
    chance = random.Random(1)
    true_median = median(chance.expovariate(1) for _ in range(100_000))
    drawn = [median_interval([chance.expovariate(1) for _ in range(50)]) for _ in range(2_000)]
    held = sum(least <= true_median <= most for least, most in drawn)
    assert 0.94 < held / len(drawn) < 0.985
