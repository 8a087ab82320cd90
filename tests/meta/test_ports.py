"""Ports that tests give to servers: no two processes of the tests get the same port."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.meta.sources import ROOT
from tests.support import processes

if TYPE_CHECKING:
    import pytest

TWO = range(9_700, 9_702)
"""No other test's."""
ASK = f"""
from tests.support import processes
processes.SERVER_PORTS = {TWO!r}
try:
    print(processes.free_port())
except processes.StartError:
    print("none")
"""


def test_no_two_processes_get_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SERVER_PORTS", TWO)
    reservations: list[socket.socket] = []
    monkeypatch.setattr(processes, "_reservations", reservations)
    asked = [sys.executable, "-c", ASK]
    first = processes.free_port()
    other = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {first, int(other)} == set(TWO)
    assert {first, processes.free_port()} == set(TWO), "a process that ended keeps nothing"
    nobody = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert nobody == "none\n"
    for reservation in reservations:
        reservation.close()
