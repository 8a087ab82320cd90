"""`make dist`: try the wheel as a stranger does.

    python -m tests.support.installed dist/minibroker-….whl

Makes an empty environment, installs the wheel there, and types the first commands of README.md in
an empty directory. The broker takes a free port instead of 9092.
"""

from __future__ import annotations

import sys
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import readme
from tests.support.shell import run_command, serving

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUE = "hello\n"


def main(arguments: Sequence[str]) -> int:
    """Try the wheel that the only argument names; return the exit code."""
    (wheel,) = arguments
    with tempfile.TemporaryDirectory(prefix="minibroker-dist-") as scratch:
        directory = Path(scratch) / "work"
        directory.mkdir()
        programs = install(Path(wheel).absolute(), Path(scratch) / "environment")
        version = run_command("minibroker version", directory, programs).strip()
        type_first_commands(directory, programs)
    print(f"{version}: {wheel} serves README.md's first commands from an empty environment")
    return 0


def install(wheel: Path, environment: Path) -> Path:
    """Install the wheel in a new environment; return the directory of its programs."""
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    pip = "python -m pip install --quiet --disable-pip-version-check"
    run_command(f"{pip} '{wheel}'", environment, programs)
    return programs


def type_first_commands(directory: Path, programs: Path) -> None:
    """Start the broker, write a record and read it. Raises AssertionError when one fails."""
    page = readme.blocks([readme.ROOT / "README.md"])
    _, first, write, read = readme.commands(block for block in page if block.section == readme.TOP)
    with serving(f"{first} --listen 127.0.0.1:0", directory, programs) as address:
        run_command(f"{write} --bootstrap {address}", directory, programs)
        printed = run_command(f"{read} --bootstrap {address}", directory, programs)
    assert printed == VALUE, f"{read} printed {printed!r}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
