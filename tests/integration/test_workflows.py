"""The workflows in `.github/`: actionlint reads them, and the shell script that a job runs works.

actionlint is a program in Go; without Go its test is named as not run.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.build_files import BUILD, required
from tests.support.readme import ROOT
from tests.support.shell import environment

if TYPE_CHECKING:
    from pathlib import Path

ACTIONLINT: Final = BUILD / "actionlint"
SECONDS: Final = 120.0


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go: make installs actionlint with it")
def test_actionlint_has_nothing_to_say() -> None:
    required(ACTIONLINT)
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert len(workflows) >= 4
    done = subprocess.run(
        [ACTIONLINT, "-shellcheck=", "-pyflakes=", *workflows],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_of_the_alpine_job_gets_its_record_back(tmp_path: Path) -> None:
    script = ROOT / ".github" / "first_record.sh"
    done = subprocess.run(
        ["sh", script],
        cwd=tmp_path,
        env={**environment(), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("minibroker listening on 127.0.0.1:")
    assert list(tmp_path.iterdir()) == []
