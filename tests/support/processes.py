"""Processes that tests start: free ports, one log file each, waits for events, stops that end.

Nothing here sleeps: a wait is for an answer or for the end of the process, with a deadline.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

from tests.support.orphans import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

STOP_SECONDS = 120.0
"""Longest time for SIGTERM, before the process is killed and the test fails."""

RETRY_SECONDS = 0.02
"""Pause between two tries of a readiness probe; spent waiting for the process to die."""

LOG_TAIL_CHARACTERS = 4000

SERVER_PORTS = range(10_000, 32_768)
"""Ports below those that Linux and macOS give to outgoing connections."""

RESERVED_NAME = "minibroker-test-port"
"""Start of the names of sockets that keep ports, the same in all test processes of a machine."""

_reservations: list[socket.socket] = []
"""Sockets that are kept until the process ends."""


class StartError(AssertionError):
    """A process died or stayed silent instead of becoming ready; carries the end of its log."""


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 for a server that starts later; no other call returns it.

    The kernel gives none of these ports to a connection by itself, as it may with a port that it
    chose for us and that is free again until the server has started. A socket of that name keeps it
    from other test processes, as long as this one lives.
    """
    first = random.SystemRandom().randrange(len(SERVER_PORTS))
    for place in range(len(SERVER_PORTS)):
        port = SERVER_PORTS[(first + place) % len(SERVER_PORTS)]
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0{RESERVED_NAME}-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        _reservations.append(reservation)
        return port
    raise StartError(f"no port free from {SERVER_PORTS.start} to {SERVER_PORTS.stop - 1}")


_guard = Guard()


class ManagedProcess:
    """One child process whose output goes to `log_path`, in a process group of its own. It ends
    with this process, also where that is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        log_path: Path,
        *,
        environment: Mapping[str, str] | None = None,
        stdout_to_pipe: bool = False,
        directory: Path | None = None,
    ) -> None:
        self.command = list(command)
        self.log_path = log_path
        with log_path.open("ab") as log:
            self.popen = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if stdout_to_pipe else log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                cwd=directory,
                start_new_session=True,
            )
        _guard.watch(self.popen.pid)

    @property
    def is_running(self) -> bool:
        """Return whether the process is still running."""
        return self.popen.poll() is None

    def log_tail(self) -> str:
        """Return the end of its output, for the message of a failure."""
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]

    def wait_until(self, probe: Callable[[], bool], timeout_s: float, event: str) -> None:
        """Try `probe` until it returns true; kill a process that is given up.

        Raises:
            StartError: the process ended, or `timeout_s` seconds passed.
        """
        try:
            self._wait_until(probe, timeout_s, event)
        except BaseException:
            self.kill()
            raise

    def _wait_until(self, probe: Callable[[], bool], timeout_s: float, event: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not probe():
            try:
                code = self.popen.wait(RETRY_SECONDS)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
                message = f"{event}: not ready after {timeout_s} s\n{self.log_tail()}"
            else:
                # What it did last it may have done after the probe looked.
                if probe():
                    return
                message = f"{event}: ended with {code}\n{self.log_tail()}"
            raise StartError(message)

    def stop(self, timeout_s: float = STOP_SECONDS) -> int:
        """Send SIGTERM and return the exit code.

        Raises:
            AssertionError: it had to be killed.
        """
        if self.is_running:
            self.popen.send_signal(signal.SIGTERM)
        try:
            code = self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.command[0]} did not stop within {timeout_s} s of SIGTERM\n{self.log_tail()}"
            ) from None
        self._close_pipe()
        return code

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self.is_running:
            self.popen.kill()
        self.popen.wait()
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self.popen.stdout is not None:
            self.popen.stdout.close()
