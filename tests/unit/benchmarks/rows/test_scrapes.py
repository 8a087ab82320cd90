"""What a round's blocks say, and that the row runs against a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.metrics import METRICS, SUBJECT
from benchmarks.peers import all_peers
from benchmarks.plan import QUICK
from benchmarks.results import Results
from benchmarks.rows import scrapes

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {one.name for one in METRICS if one.row == "scrapes"}


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
    verdicts = {one.name: one.verdict(results.values(one.name)) for one in METRICS}
    assert (verdicts["scrapes_cost"], verdicts["scrapes_cost_most"]) == ("must", "SHORT")


def test_it_measures_minibroker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes, "BLOCK_REQUESTS", 100)
    monkeypatch.setattr(scrapes, "BLOCK_SCRAPES", 2)
    monkeypatch.setattr(scrapes, "TOPICS", 2)
    results = Results([SUBJECT])
    peer = next(one for one in all_peers() if one.name == SUBJECT)
    scrapes.measure(peer, tmp_path, results, QUICK._replace(scrapes=4))
    assert {name for name in NAMES if results.values(name)} == NAMES
    assert value(results, "scrapes_alone") > 0
