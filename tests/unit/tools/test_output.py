"""The words of a report."""

from __future__ import annotations

from minibroker.tools.dump_output import Report


def test_a_report_names_its_file_or_not() -> None:
    report = Report("gap", "a", "b", "Gaps in ", "  {} then {}")
    assert report.heading("x.log") == "Gaps in x.log"
    assert report.line((1, 5)) == "  1 then 5"
    assert report._replace(names_file=False).heading("x.log") == "Gaps in "
