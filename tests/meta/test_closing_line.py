"""What `.ci/run` ends with: pytest's closing lines of all parts, and one that adds them up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "closing_line.py"

FIRST = "make test: everything but tests/pipeline"
SECOND = "make test: tests/pipeline, in two processes"
FAILED = "== 1 failed, 5023 passed, 3 skipped, 1 warning, 2 errors in 812.34s (0:13:32) =="
PASSED = "=============== 150 passed, 1 warning in 300.10s (0:05:00) ==============="
OF_A_FAILED_TEST = (
    "============================== 9 failed in 0.01s ==============================="
)


def said(tmp_path: Path, *report: str) -> list[str]:
    """The lines that end a run with this report."""
    file = tmp_path / "report"
    file.write_text("\n".join(["npm: made", *report, "make: *** [test] Error 1"]))
    command = [sys.executable, str(SCRIPT), str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_parts_are_named_and_added_up(tmp_path: Path) -> None:
    assert said(tmp_path, FIRST, OF_A_FAILED_TEST, FAILED, SECOND, PASSED) == [
        FIRST,
        FAILED,
        SECOND,
        PASSED,
        "====== 1 failed, 5173 passed, 3 skipped, 2 warnings, 2 errors in 1112.44s ======",
    ]


def test_a_part_without_a_closing_line_is_told(tmp_path: Path) -> None:
    end = ".ci/run: make test ended before pytest did"
    assert said(tmp_path, FIRST, FAILED, SECOND)[-2:] == ["(ended before pytest did)", end]
    assert said(tmp_path, FIRST)[-1] == end
    assert said(tmp_path) == [end]


def test_a_part_that_found_no_test_counts_none(tmp_path: Path) -> None:
    none = "============================ no tests ran in 0.02s ============================="
    assert said(tmp_path, FIRST, none, SECOND, "=== 2 deselected in 0.05s ===")[-1].strip("= ") == (
        "2 deselected in 0.07s"
    )
