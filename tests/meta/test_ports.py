"""Ports that tests give to servers: no two processes of the tests get the same port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.meta.sources import ROOT
from tests.support import processes

if TYPE_CHECKING:
    import pytest

ASK = """
import sys
from tests.support import processes
low, high, processes.RESERVED_NAME = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
processes.SERVER_PORTS = range(low, high + 1, high - low)
try:
    print(processes.free_port())
except processes.StartError:
    print("none")
"""


def test_no_two_processes_get_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    # Reserved from every other run. Below they are given once more, under a name of this run.
    low, high = sorted((processes.free_port(), processes.free_port()))
    name = f"minibroker-ports-of-{os.getpid()}"
    monkeypatch.setattr(processes, "RESERVED_NAME", name)
    monkeypatch.setattr(processes, "SERVER_PORTS", range(low, high + 1, high - low))
    reservations: list[socket.socket] = []
    monkeypatch.setattr(processes, "_reservations", reservations)
    command = [sys.executable, "-c", ASK, str(low), str(high), name]
    first = processes.free_port()
    other = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {first, int(other)} == {low, high}
    assert {first, processes.free_port()} == {low, high}, "a process that ended keeps nothing"
    nobody = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert nobody == "none\n"
    for reservation in reservations:
        reservation.close()
