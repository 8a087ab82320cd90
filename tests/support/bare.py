"""Pythons that lack something: wheels that a system has not, or what only POSIX has.

`tests/support/hidden/sitecustomize.py` hides it in another process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.support.readme import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXTRAS: Final = ("uvloop", "re2")
"""Libraries that a base install does not bring."""
WHEELS: Final = ("crc32c", "cramjam", "xxhash", "lz4")
"""Libraries that a system may have no wheel for."""
POSIX: Final = (
    "fcntl",
    "resource",
    "os.pread",
    "os.preadv",
    "os.pwritev",
    "os.sendfile",
    "os.statvfs",
    "os.geteuid",
    "os.memfd_create",
    "os.O_CLOEXEC",
    "os.O_DIRECTORY",
    "os.O_NOFOLLOW",
    "mmap.MAP_SHARED",
    "mmap.MAP_PRIVATE",
    "mmap.MAP_ANONYMOUS",
    "mmap.PROT_READ",
    "select.poll",
    "select.epoll",
    "socket.SO_REUSEPORT",
    "asyncio.add_signal_handler",
)
"""Modules and attributes that Windows does not have."""
SECONDS: Final = 60.0


def bare_environment(hidden: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of a process that lacks these modules and attributes."""
    path = f"{ROOT / 'tests' / 'support' / 'hidden'}{os.pathsep}{ROOT}"
    return {**os.environ, "PYTHONPATH": path, "MINIBROKER_HIDDEN": ",".join(hidden)}


def run_bare(
    hidden: tuple[str, ...], *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, without what is hidden; return how it ended."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=bare_environment(hidden),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def serving_bare(
    hidden: tuple[str, ...], directory: Path, *flags: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `minibroker serve` without what is hidden; give its HOST:PORT and the process, which is
    stopped at the end. What it says on stderr is in the file `stderr` of the directory.
    """
    with (
        (directory / "stderr").open("w") as stderr,
        subprocess.Popen(
            [
                *(sys.executable, "-m", "minibroker", "serve", "--listen", "127.0.0.1:0"),
                *("--data-dir", str(directory / "data"), *flags),
            ],
            env=bare_environment(hidden),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("minibroker listening on "), (directory / "stderr").read_text()
            yield line.split()[-1], process
        finally:
            process.terminate()
            code = process.wait(SECONDS)
    assert code == 0, (directory / "stderr").read_text()
