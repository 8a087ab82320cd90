"""`make dist`: try the wheel as a stranger does.

    python -m tests.support.installed dist/minibroker-….whl

Makes empty environments, installs the wheel there, alone and with the extras that most users want,
and types the first commands of README.md in an empty directory. Prints the size of what was
installed, and the time from the start of the broker to the record that was read back. The broker
takes a free port instead of 9092.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.support import readme
from tests.support.shell import run_command, serving

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUE = "hello\n"
BASE_BYTES_MAX: Final = 25_000_000
"""Most bytes that a base install brings, without what Python compiles from it."""
_EXTRAS: Final = ("", "[uvloop,regex]")


class InstalledSize(NamedTuple):
    """Size of everything below site-packages, without pip."""

    wheels: int
    """Bytes of the files that the wheels hold."""
    compiled: int
    """Bytes of the files that Python makes from them."""


def main(arguments: Sequence[str]) -> int:
    """Try the wheel that the only argument names; return the exit code."""
    (wheel,) = arguments
    for extras in _EXTRAS:
        with tempfile.TemporaryDirectory(prefix="minibroker-dist-") as scratch:
            directory = Path(scratch) / "work"
            directory.mkdir()
            environment = Path(scratch) / "environment"
            programs = install(f"{Path(wheel).absolute()}{extras}", environment)
            version = run_command("minibroker version", directory, programs).strip()
            size = installed_size(environment)
            assert extras or size.wheels <= BASE_BYTES_MAX, size
            begin_s = time.monotonic()
            type_first_commands(directory, programs)
            print(
                f"{version}{extras}: {size.wheels / 1e6:.1f} MB, and {size.compiled / 1e6:.1f} MB"
                f" compiled; README.md's first commands took {time.monotonic() - begin_s:.1f} s"
            )
    return 0


def install(requirement: str, environment: Path, *options: str) -> Path:
    """Install the requirement in a new environment, with these options of pip; return the directory
    of its programs.
    """
    venv.create(environment, with_pip=False)
    programs = environment / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install"]
    subprocess.run(
        [*pip, "--quiet", "--disable-pip-version-check", "--compile", *options, requirement],
        check=True,
    )
    return programs


def installed_size(environment: Path) -> InstalledSize:
    """Return the size of everything in an environment that `install` made."""
    (packages,) = environment.glob("lib/python*/site-packages")
    sizes = {path: path.stat().st_size for path in packages.rglob("*") if path.is_file()}
    compiled = sum(size for path, size in sizes.items() if path.suffix == ".pyc")
    return InstalledSize(sum(sizes.values()) - compiled, compiled)


def type_first_commands(directory: Path, programs: Path) -> None:
    """Start the broker, write a record and read it. Raises AssertionError when one fails."""
    page = readme.blocks([readme.ROOT / "README.md"])
    _, first, write, consume = readme.commands(
        block for block in page if block.section == readme.TOP
    )
    with serving(f"{first} --listen 127.0.0.1:0", directory, programs) as address:
        run_command(f"{write} --bootstrap {address}", directory, programs)
        printed = run_command(f"{consume} --bootstrap {address}", directory, programs)
    assert printed == VALUE, f"{consume} printed {printed!r}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
