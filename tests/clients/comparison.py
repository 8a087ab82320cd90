"""Two runs of one suite, test by test: what is equal, what differs, and what no run decides."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

Results = dict[str, str]
"""Test → its result."""
NO_RESULT = "-"


class Verdict(NamedTuple):
    """The tests of a suite by how they end on both sides."""

    tests: int
    passed: int
    """Tests that pass in the first run without the proxy."""
    steadied: Results
    """Tests that differed in the first run and never again → their results on both sides."""
    unsteady: Results
    """Tests that differed and have several results without the proxy, too."""
    differing: Results
    """Tests that differed again, and without the proxy always end alike."""

    @property
    def equal(self) -> int:
        """Return how many tests end alike on both sides, in the first run or in every later one."""
        return self.tests - len(self.unsteady) - len(self.differing)


def unlike(directly: Results, through: Results) -> list[str]:
    """Return the tests with different results, in order of their names."""
    names = directly.keys() | through.keys()
    return sorted(
        name for name in names if directly.get(name, NO_RESULT) != through.get(name, NO_RESULT)
    )


def verdict(directly: Results, through: Results, repeats: list[tuple[Results, Results]]) -> Verdict:
    """Judge a pair of runs, and the tests that differ there by their later runs.

    Without later runs each of them differs.
    """
    lists: tuple[Results, Results, Results] = ({}, {}, {})
    for name in unlike(directly, through):
        pairs = [(directly, through), *repeats]
        one_side, other_side = (
            Counter(pair[side].get(name, NO_RESULT) for pair in pairs) for side in (0, 1)
        )
        later = {pair[side].get(name, NO_RESULT) for pair in repeats for side in (0, 1)}
        kind = 0 if len(later) == 1 else 1 if len(one_side) > 1 else 2
        lists[kind][name] = f"directly {_text_of(one_side)}, through {_text_of(other_side)}"
    passed = sum(result.startswith("PASS") for result in directly.values())
    return Verdict(len(directly.keys() | through.keys()), passed, *lists)


def _text_of(results: Counter[str]) -> str:
    return " ".join(f"{result} x {count}" for result, count in results.items())
