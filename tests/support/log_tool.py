"""Apache Kafka's own log code in one JVM that stays up: its DumpLogSegments, and its LogSegment.

Starting a JVM for every file would take minutes; `LogTool` (tests/support/java) answers commands.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.support.java import KAFKA_39, compiled, java_command, log_option

if TYPE_CHECKING:
    from pathlib import Path


class ToolOutput(NamedTuple):
    """The output of one run on its two streams, and whether it ended with an exception."""

    output: str
    errors: str
    failed: bool


class LogTool:
    """A context manager around the process."""

    def __init__(self) -> None:
        command = java_command(
            KAFKA_39,
            "LogTool",
            options=(log_option("tools"), "-Dfile.encoding=UTF-8"),
            classes=compiled("LogTool", KAFKA_39),
        )
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)

    def _ask(self, *words: str) -> ToolOutput:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("\t".join(words).encode() + b"\n")
        stdin.flush()
        head = stdout.readline().split()
        assert len(head) == 3, f"LogTool ended with {self._process.poll()}"
        output, errors, failed = map(int, head)
        return ToolOutput(stdout.read(output).decode(), stdout.read(errors).decode(), failed == 1)

    def write(self, directory: Path, seed: int) -> None:
        """Write a partition's directory with Kafka's LogSegment; the seed decides its contents."""
        outcome = self._ask("write", str(directory), str(seed))
        assert not outcome.failed, outcome.errors

    def dump(self, *arguments: str) -> ToolOutput:
        """Run kafka.tools.DumpLogSegments with these arguments."""
        return self._ask("dump", *arguments)
