"""The commands as users run them: help, usage errors, exit codes, a closed pipe."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from minibroker.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.unit.tools.conftest import Outcome

LOG = "t-0/00000000000000000000.log"


def test_the_command_line_knows_both(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", str(data / LOG)]) == 0
    assert capsys.readouterr().out.startswith("Dumping ")
    assert main(["check-log", str(data)]) == 0
    assert capsys.readouterr().out == "1 partitions, 3 segments: 0 broken, 0 notes\n"
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert "\n  dump-log  " in output
    assert "\n  check-log  " in output


def test_help(dump: Callable[..., Outcome], check: Callable[..., Outcome]) -> None:
    assert dump("--help").output.startswith("minibroker dump-log:")
    assert check("-h").output.startswith("minibroker check-log:")


def test_wrong_usage_is_one_sentence_and_exit_code_2(
    dump: Callable[..., Outcome], check: Callable[..., Outcome], tmp_path: Path
) -> None:
    for report in (dump(), dump("--files"), dump("--nonsense"), check(), check("--nonsense")):
        assert report.code == 2
        assert report.errors.count("\n") == 1
        assert report.errors.endswith("--help\n")
    nothing = check(tmp_path)
    assert nothing.code == 2
    assert "is no data directory" in nothing.errors
    assert check(tmp_path / "absent").code == 2


def test_serve_does_not_load_the_tools() -> None:
    script = "import sys, minibroker.broker.app; print([m for m in sys.modules if '.tools' in m])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_closed_pipe_ends_it_quietly(data: Path) -> None:
    files = ",".join([str(data / LOG)] * 400)
    command = [sys.executable, "-m", "minibroker", "dump-log", "--deep-iteration", "--files", files]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"Dumping ")
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 0
    process.stderr.close()
