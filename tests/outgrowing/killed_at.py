"""A program that runs minibroker and kills itself before a step that it takes on the disk.

    python -m tests.outgrowing.killed_at LIMIT VERB …

LIMIT is the number of the step; 0: none, and the count of steps is the last line of stderr. A step
opens a file to write, writes, syncs, cuts, renames, makes or removes.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any

EVENTS = frozenset(
    {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "shutil.rmtree"}
)
CALLS = ("pwritev", "pwrite", "write", "fsync", "fdatasync")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """The steps so far. Kills the process before the step `limit`."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit

    def take(self) -> None:
        """Count a step."""
        self.count += 1
        if self.count == self._limit:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count from now on."""

        def hear(event: str, arguments: tuple[Any, ...]) -> None:
            if event in EVENTS or (event == "open" and _is_written(arguments)):
                self.take()

        sys.addaudithook(hear)
        for name in CALLS:
            setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Any) -> Any:
        def counted(descriptor: int, *arguments: Any) -> Any:
            if descriptor > sys.stderr.fileno():
                self.take()
            return call(descriptor, *arguments)

        return counted


def _is_written(arguments: tuple[Any, ...]) -> bool:
    path, _mode, flags = arguments
    return isinstance(path, str) and not path.startswith("/dev/") and bool(flags & WRITES)


def main() -> None:
    """Run minibroker with the arguments behind the first."""
    sys.dont_write_bytecode = True
    steps = Steps(int(sys.argv[1]))
    sys.argv[:] = ["minibroker", *sys.argv[2:]]
    steps.watch()
    try:
        runpy.run_module("minibroker", run_name="__main__")
    finally:
        sys.stderr.write(f"\n{steps.count}\n")


if __name__ == "__main__":
    main()
