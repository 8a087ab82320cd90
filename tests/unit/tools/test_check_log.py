"""check-log as a whole: a sound directory, one that was killed, exit codes, JSON."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from minibroker.cli.errors import UsageError
from minibroker.tools.dump_output import Report
from minibroker.tools.findings import SAID_MAX, Findings
from minibroker.verbs.check_log import VERB
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Outcome


SUMMARY = "1 partitions, 3 segments: 0 broken, 0 notes\n"


def test_a_sound_directory(check: Callable[..., Outcome], data: Path) -> None:
    times = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    assert check("--deep", data) == (SUMMARY, "", 0)
    assert check("--strict", data / "t-0").output == SUMMARY
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == times


def test_a_torn_end_is_a_note_after_a_crash_only(check: Callable[..., Outcome], data: Path) -> None:
    last = data / "t-0" / "00000000000000000022.log"
    last.write_bytes(last.read_bytes() + b"torn tail")
    report = check(data)
    assert report.code == 1
    size = last.stat().st_size - 9
    assert f"broken: {last} at position {size}: the file ends inside a batch" in report.output
    (data / ".kafka_cleanshutdown").unlink()
    report = check(data)
    assert report.code == 0
    assert f"note: {last} at position {size}" in report.output
    assert check("--strict", data).code == 1
    assert check("--quiet", data).output.count("\n") == 1


def test_a_torn_middle_is_damage_behind_the_recovery_point_too(
    check: Callable[..., Outcome], data: Path
) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    first = data / "t-0" / "00000000000000000000.log"
    content = bytearray(first.read_bytes())
    content[150] ^= 1
    first.write_bytes(content)
    report = check("--json", data)
    assert report.code == 1
    finding = json.loads(report.output.splitlines()[0])
    assert finding["rule"] == "batch"
    assert (finding["weight"], finding["position"]) == ("broken", 103)
    assert "and every later segment" in finding["what"]


# Directories and switches of check-log.


def test_directories_and_switches() -> None:
    arguments = plan_from(VERB, ["a/", "--deep", "b", "--json"])
    assert arguments.directories == ("a", "b")
    assert (arguments.is_deep, arguments.is_json) == (True, True)
    assert (arguments.is_quiet, arguments.is_strict) == (False, False)
    assert plan_from(VERB, ["/"]).directories == ("/",)


@pytest.mark.parametrize("words", [[], ["--deep"], ["a", "--fix"], ["a", "--json=1"]])
def test_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        plan_from(VERB, words)


# Findings: said at once, counted, not too many of a kind.


def test_text_names_file_position_and_rule() -> None:
    out = io.StringIO()
    findings = Findings(out)
    findings.broken("crc", "a.log", 12, "the CRC is wrong")
    findings.note("leftover", "b", "on its way out")
    findings.summary(2, 3)
    assert out.getvalue().splitlines() == [
        "broken: a.log at position 12: the CRC is wrong [crc]",
        "note: b: on its way out [leftover]",
        "2 partitions, 3 segments: 1 broken, 1 notes",
    ]


def test_json_is_one_object_a_line() -> None:
    out = io.StringIO()
    findings = Findings(out, is_json=True)
    findings.broken("crc", "a.log", 12, "wrong")
    findings.summary(1, 1)
    first, last = map(json.loads, out.getvalue().splitlines())
    assert first == {
        "weight": "broken",
        "rule": "crc",
        "path": "a.log",
        "position": 12,
        "what": "wrong",
    }
    assert last["broken"] == 1


def test_of_one_rule_and_file_only_so_many_are_said() -> None:
    out = io.StringIO()
    findings = Findings(out)
    for number in range(SAID_MAX + 5):
        findings.broken("order", "i", number, "…")
    findings.close_file("i")
    assert findings.broken_count == SAID_MAX + 5
    assert len(out.getvalue().splitlines()) == SAID_MAX + 1
    assert out.getvalue().endswith("… and 5 more of [order] in i\n")


def test_excused_damage_is_a_note() -> None:
    out = io.StringIO()
    findings = Findings(out, is_quiet=True)
    findings.excuses = True
    findings.broken("batch", "a", 0, "torn")
    assert (findings.broken_count, findings.note_count) == (0, 1)
    assert out.getvalue() == ""


# The words of a report.


def test_a_report_names_its_file_or_not() -> None:
    report = Report("gap", "a", "b", "Gaps in ", "  {} then {}")
    assert report.heading("x.log") == "Gaps in x.log"
    assert report.line((1, 5)) == "  1 then 5"
    assert report._replace(names_file=False).heading("x.log") == "Gaps in "
