"""A broker below valgrind's callgrind, which counts the instructions that it executes.

The counter runs for a load only. The number hardly depends on the machine or on its other work: two
runs differ by 1 %, so a change of a few percent shows where the clock shows nothing. It is no time:
an instruction that copies counts once for each step, and a system call counts nothing.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.sides import Running, Side, started

_DUMP_PATIENCE_S: Final = 60.0
_DUMP_PAUSE_S: Final = 0.01
_TOTALS: Final = re.compile(r"^totals: (\d+)$", re.MULTILINE)
"""The last line of a dump: it says too that the dump is whole."""


class CounterError(Exception):
    """The instructions cannot be counted; the message says why, and what to do."""


def require_valgrind() -> None:
    """Raise CounterError where valgrind is not installed."""
    if not (shutil.which("valgrind") and shutil.which("callgrind_control")):
        raise CounterError(
            "valgrind is not installed, and counts the instructions: "
            "apt-get install valgrind, or leave --instructions out"
        )


class Counter:
    """A broker below callgrind, whose counter runs only for a load."""

    def __init__(self, broker: Running) -> None:
        self.broker = broker
        self._dumps = 0

    def each(self, load: Callable[[], int]) -> float:
        """Return the instructions for one request of `load`, which returns how many it sent."""
        self._control("--zero")
        self._control("--instr=on")
        request_count = load()
        self._control("--instr=off")
        return self.dump() / request_count

    def dump(self) -> int:
        """Return the instructions since the last dump. Raises CounterError."""
        self._control("--dump")
        self._dumps += 1
        path = _dumps_below(self.broker.directory).with_suffix(f".{self._dumps}")
        deadline = time.monotonic() + _DUMP_PATIENCE_S
        while time.monotonic() < deadline:
            if path.exists() and (totals := _TOTALS.search(path.read_text())):
                return int(totals[1])
            time.sleep(_DUMP_PAUSE_S)
        raise CounterError(f"callgrind wrote no {path.name} within {_DUMP_PATIENCE_S:g} s")

    def _control(self, option: str) -> None:
        command = ["callgrind_control", option, str(self.broker.child.pid)]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode:
            raise CounterError(f"{' '.join(command)} failed: {result.stderr.strip()}")


@contextmanager
def counted(side: Side, directory: Path, *, at_start: bool = False) -> Iterator[Counter]:
    """Yield a counter of a new broker, which runs from the first instruction if `at_start`."""
    tool = [
        "valgrind",
        "--tool=callgrind",
        f"--instr-atstart={'yes' if at_start else 'no'}",
        f"--callgrind-out-file={_dumps_below(directory)}",
        "--quiet",
    ]
    with started(side, directory, tool) as broker:
        yield Counter(broker)


def _dumps_below(directory: Path) -> Path:
    return directory / "callgrind"
