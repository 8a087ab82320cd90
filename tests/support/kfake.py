"""franz-go's kfake, a peer of the benchmarks: built on the first use, with the Go tool chain."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from tests.support.build_files import BUILD, ROOT, MissingError, alone

if TYPE_CHECKING:
    from pathlib import Path

SOURCE: Final = ROOT / "benchmarks" / "kfake"
PROGRAM: Final = BUILD / "kfake"


def kfake_command(port: int, data_dir: Path | None = None) -> list[str]:
    """Return the command line of a kfake on `port`, in memory unless it has a data directory.

    Raises MissingError without Go, or when the build fails.
    """
    flags = [] if data_dir is None else ["-data-dir", str(data_dir)]
    return [str(_built()), "-port", str(port), *flags]


def _built() -> Path:
    """Return the program, built where it is missing or older than its sources."""
    newest = max(path.stat().st_mtime for path in SOURCE.iterdir())
    with alone():
        if PROGRAM.exists() and PROGRAM.stat().st_mtime >= newest:
            return PROGRAM
        if shutil.which("go") is None:
            raise MissingError("no Go: install the Go tool chain, 1.26 or newer")
        done = subprocess.run(
            ["go", "build", "-o", str(PROGRAM), "."],
            cwd=SOURCE,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise MissingError(f"go build failed: {done.stderr.strip().splitlines()[-1]}")
    return PROGRAM
