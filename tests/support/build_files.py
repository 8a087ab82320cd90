"""Files below build/ that make brings for the tests: jars, foreign codecs, clients of other
languages.

A test asks for a file where it uses it. `make test ARGS=…` makes it then; `make test` makes all of
them before. Otherwise the test fails with a sentence that names make's target.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"

MAKE_VARIABLE = "MINIBROKER_MAKE"
"""The make that tests may run; `make test ARGS=…` sets it."""
MAKE_SECONDS = 560
OUTPUT_CHARACTERS = 2000


class MissingError(AssertionError):
    """A file or program that is missing; the message says what to run or to install."""


@functools.cache
def required(target: Path) -> Path:
    """Return `target`, a file below build/ that make has a rule for; it is there afterwards.

    Raises:
        MissingError: the file is missing and cannot be made here; the message names the command to
            run.
    """
    if target.exists():
        return target
    name = target.relative_to(ROOT).as_posix()
    make = os.environ.get(MAKE_VARIABLE)
    if not make:
        raise MissingError(f"{name} is missing: run make {name}")
    _make(make, target, name)
    return target


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let only one process at a time make files below build/: pytest's workers share them."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "making").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(make: str, target: Path, name: str) -> None:
    # A make that runs pytest leaves it its flags; its job server is not for this one.
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    with alone():
        if target.exists():
            return
        done = subprocess.run(
            [make, name],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MAKE_SECONDS,
            check=False,
        )
    if done.returncode:
        raise MissingError(f"make {name} failed:\n{done.stdout[-OUTPUT_CHARACTERS:]}")
