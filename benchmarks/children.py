"""A measured child process: its output in a file, its CPU time and memory from the kernel."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_STOP_PATIENCE_S = 20.0
_TAIL_BYTES = 2_000


class ChildDiedError(Exception):
    """The process ended by itself; the message holds the end of what it wrote."""


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """What a process is started with: a user's machine keeps compiled Python modules."""
    environment = {**os.environ, **(extra or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


class Child:
    """One running process. `started_at` is `time.perf_counter` just before it was spawned."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.output = output
        with output.open("wb") as sink:
            self.started_at = time.perf_counter()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=_environment(environment),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def check(self) -> None:
        """Raise ChildDiedError, with the last lines of its output, when the process is gone."""
        if not self.is_alive:
            raise ChildDiedError(f"exit code {self._process.returncode}: {self.tail()}")

    def tail(self) -> str:
        """The last 2,000 bytes of what the process wrote, for a message."""
        return self.output.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()

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
        return self._process.wait(timeout_s)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and return at once."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask politely (SIGTERM), insist after 20 s (SIGKILL); harmless when it is gone already."""
        self.terminate()
        try:
            self._process.wait(_STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
