"""`minibroker completion` in real shells: a Tab behind a word that is begun."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.cli import main
from minibroker.client.readiness import is_any_readable

if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SOURCED = {
    "bash": "bind 'set show-all-if-ambiguous on'; source <(minibroker completion bash)",
    "zsh": "autoload -Uz compinit; compinit -u -D; source <(minibroker completion zsh)",
}
DEADLINE_S = 60


def installed(shell: str) -> str:
    """Return the shell; a machine without it names the test as not run."""
    if shutil.which(shell) is None:
        pytest.skip(f"not run: {shell} is not installed (Debian: apt install {shell})")
    return shell


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH whose first program is this one."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "minibroker"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m minibroker "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, shell: str, path: str, home: Path) -> None:
        self._master, slave = pty.openpty()
        variables = {"PATH": path, "HOME": str(home), "TERM": "dumb", "PS1": "ready> "}
        variables["PYTHONPATH"] = str(Path(__file__).resolve().parents[3])
        self._process = subprocess.Popen(
            SHELLS[shell],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=variables,
            start_new_session=True,
            cwd=home,
        )
        os.close(slave)
        self._text = ""
        self.type(f"{SOURCED[shell]}; echo sour''ced\n", "sourced")

    def type(self, keys: str, *expected: str) -> None:
        """Type keys, and wait until the shell has shown all expected words after them."""
        self._text = ""
        os.write(self._master, keys.encode())
        deadline = time.monotonic() + DEADLINE_S
        while not all(
            re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self._text) for word in expected
        ):
            ready = is_any_readable([self._master], max(0.0, deadline - time.monotonic()))
            assert ready, f"{expected} did not come, but {self._text!r}"
            self._text += os.read(self._master, 4096).decode(errors="replace")

    def end(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture(params=["bash", "zsh"])
def terminal(request: pytest.FixtureRequest, path: str, tmp_path: Path) -> Iterator[Terminal]:
    """Yield a shell that has loaded the script."""
    terminal = Terminal(installed(request.param), path, tmp_path)
    yield terminal
    terminal.end()


def test_a_tab_completes_verbs_flags_values_and_paths(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "settings.properties").write_text("")
    (tmp_path / "set-of-data").mkdir()
    clear = "\x15"
    terminal.type("minibroker ser\t", "serve")
    terminal.type(f"{clear}minibroker serve --lo\t\t", "--loop", "--log-level")
    terminal.type(f"{clear}minibroker serve --loop uv\t", "uvloop")
    terminal.type(f"{clear}minibroker serve --loop=as\t", "asyncio")
    terminal.type(f"{clear}minibroker serve --config sett\t", "settings.properties")
    terminal.type(f"{clear}minibroker serve --config=sett\t", "settings.properties")
    terminal.type(f"{clear}minibroker check-log set\t", "set-of-data")
    terminal.type(f"{clear}minibroker pipeline comp\t", "compare")


def test_fish(path: str, tmp_path: Path) -> None:
    (tmp_path / "settings.properties").write_text("")
    questions = (
        "ser",
        "serve --lo",
        "serve --log-level ",
        "serve --loop=as",
        "serve --config=sett",
        "check-log ",
    )
    script = "minibroker completion fish | source\n" + "\n".join(
        f"complete -C 'minibroker {typed}'; echo ==" for typed in questions
    )
    done = subprocess.run(
        [installed("fish"), "--no-config", "-c", script],
        env={
            "PATH": path,
            "HOME": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
        },
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
        cwd=tmp_path,
    )
    answers = [answer.split("\n") for answer in done.stdout.split("==\n")]
    assert answers[0][0].startswith("serve\tstart the broker")
    assert [line.split("\t")[0] for line in answers[1][:2]] == ["--loop", "--log-level"]
    assert answers[2][:2] == ["debug", "info"]
    assert answers[3][0] == "--loop=asyncio"
    assert answers[4][0] == "--config=settings.properties"
    assert answers[5][0].startswith("bin/")


def test_a_script_is_what_it_says_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    for shell, begin in (
        ("bash", "_minibroker()"),
        ("zsh", "#compdef minibroker"),
        ("fish", "function "),
    ):
        assert main(["completion", shell]) == 0
        assert capsys.readouterr().out.startswith(begin)
    assert main(["completion", "tcsh"]) == 2
    assert "SHELL 'tcsh': expected bash, zsh or fish" in capsys.readouterr().err
