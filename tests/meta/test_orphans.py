"""Processes that tests and benchmarks start end with them, whatever ends these."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from tests.support.build_files import ROOT
from tests.support.orphans import end_all, start_time
from tests.support.waiting import wait_until

PARENT = """
import sys
from pathlib import Path
from tests.support.processes import ManagedProcess
for number in range(2):
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    child = ManagedProcess(command, Path(sys.argv[1]))
    print(child.popen.pid, flush=True)
sys.stdin.read()
"""


def test_processes_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(start_time(pid) is not None for pid in pids)
        parent.kill()
        for pid in pids:
            wait_until(lambda pid=pid: is_gone(pid), f"process {pid} has ended", 60)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended: nobody may have waited for it yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_a_process_with_the_number_of_an_ended_one_stays() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        began = start_time(other.pid)
        assert began is not None
        end_all(io.BytesIO(b"%d %d\n" % (other.pid, began - 1)))
        assert other.poll() is None


def test_the_start_time_of_an_ended_process_is_none() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    assert start_time(os.getpid()) is not None
    ended.wait()
    assert start_time(ended.pid) is None
