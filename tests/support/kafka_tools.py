"""Kafka's command line tools, several commands in one JVM: each start of one takes seconds."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tests.support import java

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 200
_END = "== "


class Outcome(NamedTuple):
    """The output of one command, and the reason of a failure; None without one."""

    text: str
    failure: str | None


def run_commands(jars: Path, *commands: tuple[str, ...]) -> list[Outcome]:
    """Run each command, a class and its arguments, in turn.

    Raises AssertionError when the JVM itself fails; a failed command is in its outcome.
    """
    log4j = java.log_option("tools")
    classes = java.compiled("Commands", java.KAFKA_39)
    done = subprocess.run(
        java.java_command(jars, "Commands", options=(log4j,), classes=classes),
        input="".join("\t".join(command) + "\n" for command in commands),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    outcomes: list[Outcome] = []
    lines: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith(_END):
            code, _, reason = line.removeprefix(_END).partition(" ")
            outcomes.append(Outcome("\n".join(lines), None if code == "0" else reason))
            lines = []
        else:
            lines.append(line)
    assert len(outcomes) == len(commands), done.stdout
    return outcomes
