"""Ends processes whose parent was killed: a guard beside it holds a pipe, which ends with it.

    a test process, or a benchmark ─► pipe ─► guard: at its end, kill -9 what is left

The parent may end in any way: nothing has to run in it then. `processes` tells the guard of each
process that it starts. Linux could send a signal at the parent's death, but it does so at the death
of the thread that began the process. On other systems than Linux there is no guard.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

_START_TIME = 19
"""Place of the start time among the fields behind the name in /proc/PID/stat."""


class Guard:
    """The guard of this process, which begins with the first process that it guards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: int | None = None

    def watch(self, pid: int) -> None:
        """End a process, which leads a group of its own, and its group with this process."""
        began = start_time(pid)
        if began is None:
            return
        with self._lock:
            if self._pipe is None:
                self._pipe = self._begin()
        os.write(self._pipe, b"%d %d\n" % (pid, began))

    @staticmethod
    def _begin() -> int:
        """Start the guard, in a group that Ctrl-C does not reach; return the way to it."""
        reading, writing = os.pipe()
        command = [sys.executable, "-I", "-S", __file__]
        actions = [
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        os.posix_spawn(command[0], command, os.environ, file_actions=actions, setpgroup=0)
        os.close(reading)
        return writing


def start_time(pid: int) -> int | None:
    """Return when a process began, in ticks since the system did; None for one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(b")")[2].split()[_START_TIME])


def end_all(lines: IO[bytes]) -> None:
    """Read processes and their start times until the lines end, then kill those that still run.

    A number that another process has by then has another time.
    """
    for pid, began in [tuple(map(int, line.split())) for line in lines]:
        if start_time(pid) == began:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    end_all(sys.stdin.buffer)
