"""A process that forks children to be killed, so that a kill costs no start of Python.

The programs `load`, `topic_load` and `chaos_load` are nurseries: they fork a child for each line on
stdin, the child reports on stdout, and the nursery says `gone 1` when it was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from traceback import print_exc
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 120


class Nursery:
    """A context manager around the process."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(END_SECONDS)
        self._process.stdout.close()

    def fork(self, *words: object) -> None:
        """Fork a child that works as these words say."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def report(self) -> list[str]:
        """Return the words of the next line, empty when the nursery has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().split()


def fork_for_each_line(live: Callable[..., object]) -> None:
    """Fork a child for every line on stdin, have it live as the words say, and wait for its end."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                live(*line.split())
            except BaseException:  # the child says why, and does not go on as a nursery
                print_exc()
            os._exit(1)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        os.write(1, b"gone %d\n" % was_killed)
