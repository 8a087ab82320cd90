"""The four tools of `make lint`, as tests: one command runs everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
GATE_SECONDS = 900

GATES = {
    "ruff format": ["ruff", "format", "--check", "."],
    "ruff check": ["ruff", "check", "."],
    "mypy": ["mypy"],
    "lint-imports": ["lint-imports", "--no-cache"],
}


@pytest.mark.timeout(GATE_SECONDS + 20)
@pytest.mark.parametrize("gate", GATES)
def test_gate(gate: str) -> None:
    program, *arguments = GATES[gate]
    done = subprocess.run(
        [BIN / program, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=GATE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
