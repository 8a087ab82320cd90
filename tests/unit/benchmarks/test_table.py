"""The printed table: numbers, ratios, and gaps that are named."""

import json
from pathlib import Path

import pytest

from benchmarks.results import Results
from benchmarks.table import number, render


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
