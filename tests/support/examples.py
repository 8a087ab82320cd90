"""The projects of `examples/` in directories of their own, as their users have them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.build_files import BUILD, ROOT, required

EXAMPLES: Final = ROOT / "examples"
OPENAPI: Final = "clients/openapi.json"
TIMEOUT_S: Final = 560


def run(command: list[str], directory: Path, **more: str) -> str:
    """Run a command and return its output. Raises AssertionError if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": path, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def copy_of(name: str, directory: Path) -> Path:
    """Copy a project, and the description of the control API: some make their client of it."""
    openapi = directory / OPENAPI
    openapi.parent.mkdir()
    shutil.copy(EXAMPLES / OPENAPI, openapi)
    return Path(shutil.copytree(EXAMPLES / name, directory / name))


def python_project(name: str, environment: str, directory: Path) -> tuple[Path, Path]:
    """Copy a project in Python, with the client that it generates; return its directory, and the
    Python of its environment below build/.
    """
    binaries = required(BUILD / environment / ".done").parent / "bin"
    project = copy_of(name, directory)
    if "openapi-python-client" in (project / "requirements.txt").read_text():
        options = ["--path", str(directory / OPENAPI), "--meta", "none"]
        generator = str(binaries / "openapi-python-client")
        run([generator, "generate", *options, "--output-path", "minibroker_control"], project)
    return project, binaries / "python"
