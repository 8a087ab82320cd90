"""Kafka's command line tools, several commands in one JVM: each start of one takes seconds."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECONDS = 500
_END = "== "


class Outcome(NamedTuple):
    """The output of one command, and the reason of a failure; None without one."""

    text: str
    failure: str | None


@contextmanager
def tool_session(jars: Path) -> Iterator[Callable[..., Outcome]]:
    """Yield a function that runs one command, a class and its arguments, and returns its outcome.

    All commands run in one JVM; between two of them a test may wait for what a broker makes of the
    first. Raises AssertionError when the JVM itself fails; a failed command is in its outcome.
    """
    log4j = java.log_option("tools")
    classes = java.compiled("Commands", java.KAFKA_39)
    process = subprocess.Popen(
        java.java_command(jars, "Commands", options=(log4j,), classes=classes),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def run(*command: str) -> Outcome:
        stdin.write("\t".join(command) + "\n")
        stdin.flush()
        lines: list[str] = []
        for line in stdout:
            if line.startswith(_END):
                code, _, reason = line.rstrip("\n").removeprefix(_END).partition(" ")
                return Outcome("\n".join(lines), None if code == "0" else reason)
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the JVM ended: {lines}")

    try:
        yield run
        stdin.close()
        assert process.wait(SECONDS) == 0, stdout.read()
    finally:
        process.kill()
        process.wait()
        stdin.close()
        stdout.close()


def run_commands(jars: Path, *commands: tuple[str, ...]) -> list[Outcome]:
    """Run each command, a class and its arguments, in turn.

    Raises AssertionError when the JVM itself fails; a failed command is in its outcome.
    """
    with tool_session(jars) as run:
        return [run(*command) for command in commands]
