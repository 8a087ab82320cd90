"""Fixtures of the verbs of a broker in the background: a state directory, and commands on it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from minibroker.cli.program import run_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Outcome(NamedTuple):
    """The answer of a command."""

    code: int
    output: str
    errors: str


Command: TypeAlias = "Callable[..., Outcome]"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state directory of the test's own."""
    return tmp_path / "state"


@pytest.fixture
def run(state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Command]:
    """Yield a function that runs a verb on the state directory; what it started ends then."""

    def command(verb: str, *words: object) -> Outcome:
        out, errors = io.StringIO(), io.StringIO()
        arguments = [verb, "--state-dir", str(state), *map(str, words)]
        code = run_words(arguments, out, errors)
        return Outcome(code, out.getvalue(), errors.getvalue())

    monkeypatch.chdir(tmp_path)
    yield command
    command("stop")


@pytest.fixture
def up(run: Command) -> Command:
    """Return a function that starts a broker in the background, on a free port."""

    def start(*words: object) -> Outcome:
        return run("up", "-d", "--listen", "127.0.0.1:0", *words)

    return start
