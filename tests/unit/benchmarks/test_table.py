"""The printed table: numbers, ratios, and gaps that are named."""

from __future__ import annotations

import json
import pstats
import random
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from benchmarks import diff, scale_wire, sides, wire
from benchmarks.callgrind import Counter
from benchmarks.children import Child
from benchmarks.metrics import METRICS, Bar, Metric
from benchmarks.pairs import changes, median_interval
from benchmarks.profile_broker import summary
from benchmarks.results import Results
from benchmarks.sides import Measured, Running, Side
from benchmarks.table import number, render
from tests.support.build_files import ROOT


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (123_456, "123,000"),
        (999.6, "1,000"),
        (345.6, "346"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.1234, "0.123"),
        (0, "0.000"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def _results() -> Results:
    results = Results(["minibroker", "kafka-3.9.1", "kfake-disk"])
    for sample in (900, 20_000, 30_000):
        results.add("minibroker", "raw_1", sample)
    results.add("kafka-3.9.1", "raw_1", 10_000)
    results.note("minibroker", "group", "not yet: it has no consumer groups")
    results.add("kafka-3.9.1", "new_group", 160)
    results.miss("kfake-disk", "no Go: install it")
    return results


def _cells(table: str, label: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {label}")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_value_is_the_median_and_the_ratio_stands_with_the_other_broker() -> None:
    table = render(_results(), ["raw"])
    cells = _cells(table, "raw Produce, 1 in flight")
    assert cells == ["20,000", "10,000 (2.00x)", "≥ 10,000", "", "must?"]


def test_a_missing_measurement_is_named_not_faked() -> None:
    table = render(_results(), ["raw", "group"])
    assert _cells(table, "new group to first record")[:2] == ["not yet", "160"]
    assert _cells(table, "raw Produce, 5 in flight")[:2] == ["-", "-"]
    assert "kfake-disk: not measured, no Go: install it." in table
    assert "minibroker, group: not yet: it has no consumer groups." in table


def test_lines_are_aligned() -> None:
    table = render(_results(), ["raw", "group"])
    lengths = {len(line) for line in table.splitlines() if line.startswith("|")}
    assert len(lengths) == 1


def test_only_broken_rows_are_failures() -> None:
    results = _results()
    assert not results.has_failures()
    results.note("minibroker", "raw", "failed, RowError: answer 3")
    assert results.has_failures()


def test_json_holds_every_sample(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.json"
    _results().write(path, {"cores": 2}, {"passes": 1})
    document = json.loads(path.read_text())
    assert document["samples"]["minibroker"]["raw_1"] == [900, 20_000, 30_000]
    assert document["missing"] == {"kfake-disk": "no Go: install it"}
    assert document["machine"] == {"cores": 2}


# The interval of a median, checked against binomial tables and by drawing.


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
    interval_count = sum(least <= true_median <= most for least, most in drawn)
    assert 0.94 < interval_count / len(drawn) < 0.985


# The comparison of two commits: turns of the sides, ratios, the table.


BASE, OWN = Side("base", Path()), Side("here", Path())


def test_the_sides_take_turns_and_each_round_gives_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    values = {"base": iter([2.0, 4.0]), "here": iter([1.0, 4.0])}

    def measure(side: Side, _: Path) -> Measured:
        calls.append(side.name)
        return {"CPU": next(values[side.name])}

    monkeypatch.setitem(diff.ROWS, "row", measure)
    assert diff.compare(BASE, OWN, ["row"], rounds=2) == {"CPU": [(2.0, 1.0), (4.0, 4.0)]}
    assert calls == ["base", "here", "here", "base"]


def test_the_table_has_cpu_first_and_medians_with_their_range() -> None:
    pairs = {"start, s": [(2.0, 2.0)], "start, CPU s": [(1.0, 0.9), (1.0, 1.2), (1.0, 1.0)]}
    lines = diff.table(pairs, "abc").splitlines()
    assert lines[0] == "| figure | abc | here | here / abc | range |"
    assert lines[2:] == [
        "| start, CPU s | 1.00 | 1.00 | 1.000 | 0.900 to 1.200 |",
        "| start, s | 2.00 | 2.00 | 1.000 | 1.000 to 1.000 |",
    ]
    lines = diff.table(pairs, "abc", "compiled").splitlines()
    assert lines[0] == "| figure | abc | compiled | compiled / abc | range |"


def test_a_row_that_does_not_exist_is_refused_with_those_that_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert diff.main(["HEAD", "--instructions", "--rows", "raw,killed"]) == 2
    assert (
        capsys.readouterr().err == "no row killed: there are start, raw, produce, fetch, single\n"
    )


def test_instructions_without_valgrind_are_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert diff.main(["HEAD", "--instructions"]) == 1
    assert "apt-get install valgrind" in capsys.readouterr().err


CONTROL = """#!/bin/sh
cd {directory}
echo "$1" >> log
if [ "$1" = --dump ]; then
    number=$(grep -c dump log)
    echo "totals: ${{number}}00" > callgrind.$number
fi
"""


def test_a_count_is_that_of_the_newest_dump_for_each_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "callgrind_control"
    program.write_text(CONTROL.format(directory=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    child = Child([sys.executable, "-c", ""], output=tmp_path / "output")
    child.wait(60)
    counter = Counter(Running(OWN, tmp_path, child, 0))
    assert [counter.each(lambda: 4), counter.each(lambda: 2)] == [25.0, 100.0]
    log = (tmp_path / "log").read_text().split()
    assert log == ["--zero", "--instr=on", "--instr=off", "--dump"] * 2


def test_a_fetch_goes_on_behind_the_last_whole_batch() -> None:
    batch = scale_wire.Batches(16, 10).at(0)
    assert sides._next_offset(batch + batch[:40]) == 16
    with pytest.raises(wire.WireError, match="no whole batch"):
        sides._next_offset(batch[:40])


# The judge: bars relative to other brokers, both directions, and what a missing broker does.


FASTER = Metric(
    "rate",
    "raw",
    "rate",
    "requests/s",
    True,
    must=(Bar(2, "kafka-3.9.1"),),
    aim=(Bar(1, "kfake-disk"),),
)
LIGHTER = Metric(
    "delay", "latency", "delay", "ms", must=(Bar(1, "kafka-3.9.1"), Bar(1, "kafka-4.4.0")), aim=()
)


@pytest.mark.parametrize(
    ("rate", "verdict"), [(199, "SHORT"), (200, "must"), (499, "must"), (500, "aim"), (501, "aim")]
)
def test_verdict_of_a_higher_is_better_metric(rate: float, verdict: str) -> None:
    values = {"minibroker": rate, "kafka-3.9.1": 100, "kfake-disk": 500}
    assert FASTER.verdict(values) == verdict


@pytest.mark.parametrize(("delay", "verdict"), [(4, "must"), (4.1, "SHORT"), (6, "SHORT")])
def test_every_bar_of_a_kind_must_be_reached(delay: float, verdict: str) -> None:
    values = {"minibroker": delay, "kafka-3.9.1": 5.0, "kafka-4.4.0": 4.0}
    assert LIGHTER.verdict(values) == verdict


def test_a_missing_broker_leaves_the_verdict_open() -> None:
    assert FASTER.verdict({"minibroker": 300, "kafka-3.9.1": 100}) == "must?"
    assert FASTER.verdict({"minibroker": 600, "kfake-disk": 500}) == "aim?"
    assert FASTER.verdict({"minibroker": 400, "kfake-disk": 500}) == ""
    assert FASTER.verdict({"kafka-3.9.1": 100, "kfake-disk": 500}) == ""


def test_times_better_is_above_one_when_better_in_either_direction() -> None:
    assert FASTER.times_better(300, 100) == 3
    assert LIGHTER.times_better(2.0, 6.0) == 3
    assert LIGHTER.times_better(0.0, 6.0) is None


def test_metrics_are_distinct_and_every_aim_has_a_must() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    assert all(metric.must for metric in METRICS if metric.aim)


# A module that is watched runs as with `python -m`, and what it did after SIGUSR2 is known.


BURNER = """
import os, signal, time

def burn():
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass

os.kill(os.getpid(), signal.SIGUSR2)
burn()
"""


def _watch(tool: str, directory: Path) -> Path:
    (directory / "burner.py").write_text(BURNER)
    output = directory / "seen"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.watched", tool, str(output), "-m", "burner"],
        env={"PYTHONPATH": f"{ROOT}:{directory}"},
        check=True,
        capture_output=True,
    )
    assert not done.stderr
    return output


def test_sample_counts_stacks(tmp_path: Path) -> None:
    stacks = _watch("sample", tmp_path).read_text().splitlines()
    assert "burner.py:burn" in summary(stacks, top=1)


def test_cprofile_counts_calls(tmp_path: Path) -> None:
    statistics = pstats.Stats(str(_watch("cprofile", tmp_path))).get_stats_profile()
    assert statistics.func_profiles["burn"].ncalls == "1"
