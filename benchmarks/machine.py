"""Facts that the numbers depend on: the machine and the versions, without names."""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.support.build_files import ROOT

_BUSY_SHARE = 0.1


def facts() -> dict[str, object]:
    """Date, processor, memory and the versions of everything that takes part."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _first_match(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)"),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _said_by("java", "-version"),
        "go": _said_by("go", "version"),
        "kfake": _first_match(ROOT / "benchmarks/kfake/go.mod", r"pkg/kfake (\S+)"),
        "uvloop": version("uvloop"),
        "confluent-kafka": version("confluent-kafka"),
        "busy_before": round(busy_share(), 2),
    }


def busy_share() -> float:
    """Return the part of all cores that others used, or had taken away, during one second."""
    ticks_at_start, idle_at_start = _ticks()
    time.sleep(1)
    after, idle_after = _ticks()
    return 1 - (idle_after - idle_at_start) / max(1, after - ticks_at_start)


def warn_if_busy(facts_before: dict[str, object]) -> None:
    """Say where others used the machine before the run: then its numbers say little."""
    share = facts_before["busy_before"]
    if isinstance(share, float) and share > _BUSY_SHARE:
        text = f"Others use {share:.0%} of the machine: do not quote these numbers."
        print(text, file=sys.stderr, flush=True)


def _ticks() -> tuple[int, int]:
    """Clock ticks of all cores so far, and those of them that were idle or waited for a disk."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def _first_match(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text())
    return match[1].strip() if match else "unknown"


def _said_by(program: str, argument: str) -> str:
    if shutil.which(program) is None:
        return "not installed"
    done = subprocess.run([program, argument], capture_output=True, text=True, check=True)
    match = re.search(r"(?:go|\")(\d[\d.]+)", done.stdout + done.stderr)
    return match[1] if match else "unknown"
