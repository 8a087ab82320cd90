"""A broker for the small verbs, and the program run on it, in this process or in one of its own."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.cli.program import run_words
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 60


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    out: bytes
    errors: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()


class Program:
    """The program, with the address of a broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def words(self, *words: str) -> list[str]:
        return [words[0], "--bootstrap", self.bootstrap, *words[1:]]

    def run(self, *words: str) -> Ran:
        """Run a command in this process; its input is empty."""
        out, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
        code = run_words(self.words(*words), out, errors)
        out.flush()
        return Ran(code, out.buffer.getvalue(), errors.getvalue())  # type: ignore[attr-defined]

    def start(self, *words: str, **pipes: object) -> subprocess.Popen[bytes]:
        """Start a command as a process."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-m", "minibroker", *self.words(*words)],
            **{**options, **pipes},  # type: ignore[call-overload]
        )

    def feed(self, data: bytes, *words: str) -> Ran:
        """Run a command as a process with this input."""
        process = self.start(*words)
        out, errors = process.communicate(data, timeout=TIMEOUT_S)
        return Ran(process.returncode, out, errors.decode())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as new_broker:
        yield new_broker


@pytest.fixture
def program(broker: Broker) -> Program:
    return Program(broker.bootstrap)
