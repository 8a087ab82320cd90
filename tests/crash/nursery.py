"""A process that forks children to be killed, so that a kill costs no start of Python.

The programs `load` and `topic_load` are nurseries: they fork a child for each line on stdin, the
child reports on stdout, and the nursery says `gone 1` when it was killed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Self

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
