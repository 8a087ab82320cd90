"""A module that is watched runs as with `python -m`, and what it did after SIGUSR2 is known."""

import pstats
import subprocess
import sys
from pathlib import Path

from benchmarks.profile_broker import summary
from tests.support.made import ROOT

BURNER = """
import os, signal, time

def burn():
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass

os.kill(os.getpid(), signal.SIGUSR2)
burn()
"""


def _watch(tool: str, directory: Path) -> Path:
    (directory / "burner.py").write_text(BURNER)
    output = directory / "seen"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.watched", tool, str(output), "-m", "burner"],
        env={"PYTHONPATH": f"{ROOT}:{directory}"},
        check=True,
        capture_output=True,
    )
    assert not done.stderr
    return output


def test_sample_counts_stacks(tmp_path: Path) -> None:
    stacks = _watch("sample", tmp_path).read_text().splitlines()
    assert "burner.py:burn" in summary(stacks, top=1)


def test_cprofile_counts_calls(tmp_path: Path) -> None:
    statistics = pstats.Stats(str(_watch("cprofile", tmp_path))).get_stats_profile()
    assert statistics.func_profiles["burn"].ncalls == "1"
