"""The row runs, and only where there is a fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.metrics import KFAKE, METRICS, SUBJECT
from benchmarks.peers import all_peers
from benchmarks.plan import QUICK
from benchmarks.results import Results
from benchmarks.rows import fixture

if TYPE_CHECKING:
    from pathlib import Path


def test_it_measures_minibroker_alone(tmp_path: Path) -> None:
    results = Results([SUBJECT, KFAKE])
    for peer in all_peers():
        if peer.name in results.brokers:
            fixture.measure(peer, tmp_path, results, QUICK._replace(fixtures=2))
    for metric in METRICS:
        if metric.row == "fixture":
            found = results.values(metric.name)
            assert list(found) == [SUBJECT]
            assert found[SUBJECT] > 0
    assert results.notes[KFAKE]["fixture"].startswith("not to be had")
