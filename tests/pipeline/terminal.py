"""`minibroker pipeline` in a process of its own, also on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 850.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "minibroker", "pipeline", *words]


def on_a_terminal(words: list[str], directory: Path) -> tuple[int, str]:
    """Return the exit code and the output on a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen(words, stdout=its, stderr=its, stdin=its, cwd=directory) as process:
        os.close(its)
        output = b"".join(_read_all(ours))
        code = process.wait(timeout=SECONDS)
    os.close(ours)
    return code, output.decode()


def _read_all(terminal: int) -> Iterator[bytes]:
    """Yield the output until the last process with the other end is gone (EIO on Linux)."""
    deadline = time.monotonic() + SECONDS
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            assert time.monotonic() < deadline, part
            yield part
