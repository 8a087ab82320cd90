"""A measured child process: the tests' one, with its CPU time and memory from the kernel."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.processes import ManagedProcess

_STOP_PATIENCE_S = 20.0
_TAIL_BYTES = 2_000


class ChildDiedError(Exception):
    """The process ended by itself; the message holds the end of what it wrote."""


class Child(ManagedProcess):
    """One running process. `started_at` is `time.perf_counter` just before it was spawned."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        output.unlink(missing_ok=True)
        # A user's machine keeps compiled Python modules.
        variables = {**(environment or {}), "PYTHONDONTWRITEBYTECODE": ""}
        self.started_at = time.perf_counter()
        super().__init__(command, output, environment=variables, directory=directory)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def check(self) -> None:
        """Raise ChildDiedError, with the last lines of its output, when the process is gone."""
        if not self.is_running:
            raise ChildDiedError(f"exit code {self.popen.returncode}: {self.tail()}")

    def tail(self) -> str:
        """Return the last 2,000 bytes of what the process wrote, for a message."""
        return self.log_tail()[-_TAIL_BYTES:].strip()

    def cpu_seconds(self) -> float:
        """User and system time of all threads so far, finished ones included, to the nanosecond.

        Linux numbers every process's CPU clock: see CPUCLOCK_SCHED in the kernel's posix-timers.h.
        The 10 ms ticks of /proc/PID/stat are too coarse for a broker that spends 50 ms on a load.
        """
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident_bytes(self) -> int:
        """VmRSS: what the process holds in memory, mapped files included."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        self.check()
        raise ChildDiedError(f"process {self.pid} has no memory of its own left")

    def wait(self, timeout_s: float) -> int:
        """Wait for the process to end by itself; returns its exit code."""
        return self.popen.wait(timeout_s)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and return at once."""
        self.popen.terminate()

    def stop(self, timeout_s: float = _STOP_PATIENCE_S) -> int:
        """Ask politely (SIGTERM), insist after 20 s (SIGKILL); harmless when it is gone already."""
        try:
            return super().stop(timeout_s)
        except AssertionError:  # it had to be killed: no matter, what it did is measured
            return self.popen.returncode
