"""Figures from a round's blocks; and the row runs against a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.metrics import METRICS, SUBJECT
from benchmarks.peers import all_peers
from benchmarks.plan import FULL, QUICK
from benchmarks.results import Results
from benchmarks.rows import scrapes

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {metric.name for metric in METRICS if metric.row == "scrapes"}


def value(results: Results, metric: str) -> float:
    return results.values(metric)[SUBJECT]


def test_costs_are_those_of_a_round_whatever_the_machine_does_between_rounds() -> None:
    moods = [1.0, 50.0, 3.0, 9.0, 1.5, 7.0, 20.0]
    results = Results([SUBJECT])
    scrapes.report(
        {
            "scrapes_alone": moods,
            "scrapes_live": [mood * 1.01 for mood in moods],
            "scrapes_during": [mood * 1.05 for mood in moods],
        },
        SUBJECT,
        results,
    )
    assert value(results, "scrapes_control") == pytest.approx(1)
    assert value(results, "scrapes_cost") == pytest.approx(5)
    assert value(results, "scrapes_cost_least") == pytest.approx(5)
    assert value(results, "scrapes_cost_most") == pytest.approx(5)
    assert value(results, "scrapes_alone") == 7.0
    for metric in METRICS:
        if metric.row == "scrapes" and metric.must:
            assert metric.verdict(results.values(metric.name)) == "must"


def test_a_cost_that_may_be_above_the_bar_is_short_of_it() -> None:
    results = Results([SUBJECT])
    during = [1.05, 1.2, 1.05, 1.05, 0.9, 1.0]
    p99s_ms = {"scrapes_alone": [1.0] * 6, "scrapes_live": [1.0] * 6, "scrapes_during": during}
    scrapes.report(p99s_ms, SUBJECT, results)
    verdicts = {metric.name: metric.verdict(results.values(metric.name)) for metric in METRICS}
    assert (verdicts["scrapes_cost"], verdicts["scrapes_cost_most"]) == ("must", "SHORT")


@pytest.mark.parametrize(
    ("rounds", "scatter", "is_enough"),
    [(49, 0.0, False), (50, 0.02, True), (50, 0.2, False), (149, 0.2, False), (150, 0.2, True)],
)
def test_rounds_go_on_until_the_interval_is_narrow_or_time_is_up(
    rounds: int, scatter: float, is_enough: bool
) -> None:
    during = [1.0 + scatter * (number % 2 * 2 - 1) for number in range(rounds)]
    p99s_ms = {"scrapes_alone": [1.0] * rounds, "scrapes_during": during}
    assert scrapes.is_enough(p99s_ms, FULL) == is_enough


def test_it_measures_minibroker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes, "BLOCK_REQUESTS", 100)
    monkeypatch.setattr(scrapes, "BLOCK_SCRAPES", 2)
    monkeypatch.setattr(scrapes, "TOPICS", 2)
    results = Results([SUBJECT])
    peer = next(peer for peer in all_peers() if peer.name == SUBJECT)
    scrapes.measure(peer, tmp_path, results, QUICK._replace(scrapes=4, scrapes_most=4))
    assert {name for name in NAMES if results.values(name)} == NAMES
    assert value(results, "scrapes_alone") > 0
