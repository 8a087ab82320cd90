"""minibroker as users start it: `python -m minibroker serve` in a process of its own.

The first line on stdout is the event that tests wait for, and it names the address.
"""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING

from minibroker.client.readiness import is_any_readable
from tests.support.processes import ManagedProcess, StartError, free_port
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START_SECONDS = 240.0

FIRST_LINE = re.compile(r"minibroker listening on (?P<host>.+):(?P<port>\d+)\n")


class Minibroker:
    """A broker on a data directory; start, stop, kill and start again, always on the same port."""

    def __init__(
        self,
        data_dir: Path,
        log_path: Path,
        *,
        zookeeper: str | None = None,
        settings: Mapping[str, str] | None = None,
        topics: Sequence[str] = (),
        listen: str | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        program: Sequence[str] = (sys.executable, "-m", "minibroker"),
    ) -> None:
        self.data_dir = data_dir
        self.log_path = log_path
        self.zookeeper = zookeeper
        self.settings = dict(settings or {})
        self.topics = list(topics)
        # A port that the kernel gives to nobody while the broker is stopped.
        self.listen = listen or f"127.0.0.1:{free_port()}"
        self.environment = dict(environment or {})
        self.arguments = list(arguments)
        self.program = list(program)
        self.host = ""
        self.port = 0
        self.process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        """Return HOST:PORT for a client's bootstrap.servers."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """Return the process id of the running broker."""
        assert self.process is not None, "the broker is not running"
        return self.process.popen.pid

    def command(self) -> list[str]:
        """Return the command line of the next start."""
        command = [*self.program, "serve", "--listen", self.listen]
        command += ["--data-dir", str(self.data_dir)]
        if self.zookeeper is not None:
            command += ["--zookeeper", self.zookeeper]
        for topic in self.topics:
            command += ["--topic", topic]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        return [*command, *self.arguments]

    def start(self) -> Minibroker:
        """Start and wait for the first line.

        Raises:
            StartError: the process ended, printed another line first, or stayed silent.
        """
        process = ManagedProcess(
            self.command(), self.log_path, environment=self.environment, stdout_to_pipe=True
        )
        line = _first_line(process, START_SECONDS)
        match = FIRST_LINE.fullmatch(line)
        if match is None:
            process.kill()
            raise StartError(f"minibroker's first line was {line!r}\n{process.log_tail()}")
        self.process = process
        self.host, self.port = match["host"], int(match["port"])
        self.listen = self.address
        return self

    def stop(self) -> None:
        """Send SIGTERM; the exit code must be 0."""
        if self.process is None:
            return
        process, self.process = self.process, None
        code = process.stop()
        assert code == 0, f"minibroker ended with {code} on SIGTERM\n{process.log_tail()}"

    def kill(self) -> None:
        """Send SIGKILL, at any moment."""
        if self.process is not None:
            self.process.kill()
            self.process = None


def wait_until_acquainted(brokers: Sequence[Minibroker]) -> None:
    """Wait until each of these running brokers knows all of them.

    The first line of one says that it is registered. The others, and the controller among them,
    hear of that a moment later.
    """

    def knows_all(broker: Minibroker) -> bool:
        with WireClient(broker.host, broker.port) as client:
            return len(client.call("metadata", 1, topics=[])["brokers"]) == len(brokers)

    for broker in brokers:
        assert broker.process is not None, "the broker is not running"
        broker.process.wait_until(
            lambda broker=broker: knows_all(broker),  # type: ignore[misc]
            START_SECONDS,
            f"{broker.address} knows {len(brokers)} brokers",
        )


def _first_line(process: ManagedProcess, timeout_s: float) -> str:
    stdout = process.popen.stdout
    assert stdout is not None
    deadline = time.monotonic() + timeout_s
    collected = b""
    while not collected.endswith(b"\n"):
        ready = is_any_readable([stdout], max(0.0, deadline - time.monotonic()))
        part = stdout.read1(4096) if ready else b""  # type: ignore[attr-defined]
        if not part:
            break
        collected += part
    return collected.decode(errors="replace").split("\n")[0] + "\n" if collected else ""
