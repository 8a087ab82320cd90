"""Commands of README.md in a shell, with the programs of one environment.

Used by the tests of README.md and docs/, and by `tests.support.installed`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.readme import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

THIS_ENVIRONMENT: Final = Path(sys.executable).parent
"""Directory of the programs of this Python environment."""
SECONDS: Final = 300.0


def environment(programs: Path = THIS_ENVIRONMENT) -> dict[str, str]:
    """Return the variables of this process, with `programs` first in PATH. Another environment than
    this one has its own packages.
    """
    variables = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    if programs != THIS_ENVIRONMENT:
        variables.pop("PYTHONPATH", None)
    return variables


def run_command(command: str, directory: Path, programs: Path = THIS_ENVIRONMENT) -> str:
    """Run a command and return its stdout. Raises AssertionError when it fails."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=directory,
        env=environment(programs),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def serving(command: str, directory: Path, programs: Path = THIS_ENVIRONMENT) -> Iterator[str]:
    """Run the command of a broker; give its HOST:PORT. Raises AssertionError when it ends badly."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=directory,
        env=environment(programs),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            match = re.fullmatch(r"minibroker listening on (\S+)\n", process.stdout.readline())
            assert match is not None, command
            yield match[1]
        finally:
            process.terminate()
            code = process.wait(SECONDS)
    assert code == 0, command


def recipe_of(target: str) -> str:
    """Return the last command of a make target, without the directory of its program."""
    command = ["make", "--no-print-directory", "--dry-run", "-C", str(ROOT), target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout.splitlines()[-1].replace(".venv/bin/", "")
