"""The comparison of two commits: turns of the sides, ratios, the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import diff, scale_wire
from benchmarks.diff import Measured, Side

BASE, HERE = Side("base", Path()), Side("here", Path())


def test_the_sides_take_turns_and_each_round_gives_a_ratio(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    values = {"base": iter([2.0, 4.0]), "here": iter([1.0, 4.0])}

    def measure(side: Side, _: Path) -> Measured:
        calls.append(side.name)
        return {"CPU": next(values[side.name])}

    monkeypatch.setitem(diff.ROWS, "row", measure)
    assert diff.compare(BASE, HERE, ["row"], rounds=2) == {"CPU": [0.5, 1.0]}
    assert calls == ["base", "here", "here", "base"]


def test_the_table_has_cpu_first_and_medians_with_their_range() -> None:
    lines = diff.table({"start, s": [1.0], "start, CPU s": [0.9, 1.2, 1.0]}, "abc").splitlines()
    assert lines[0] == "| figure | here / abc, median | range |"
    assert lines[2:] == [
        "| start, CPU s | 1.000 | 0.900 to 1.200 |",
        "| start, s | 1.000 | 1.000 to 1.000 |",
    ]


def test_a_fetch_goes_on_behind_the_last_whole_batch() -> None:
    batch = scale_wire.Batches(16, 10).at(0)
    assert diff._next_offset(batch + batch[:40]) == 16
    with pytest.raises(diff.wire.WireError, match="no whole batch"):
        diff._next_offset(batch[:40])
