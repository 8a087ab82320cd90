"""Common parts of the rows of scale: sizes, and a broker with settings that starts again on its
data.
"""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import wire
from benchmarks.children import Child
from benchmarks.peers import Minibroker, Peer
from benchmarks.results import Results
from benchmarks.rows.session import RowError
from tests.support.processes import free_port

START_PATIENCE_S: Final = 300.0
STOP_PATIENCE_S: Final = 600.0
LEADER_PATIENCE_S: Final = 120.0
SESSION_S: Final = 25.0
"""Kafka's `zookeeper.session.timeout.ms` and a little more."""


class ScalePlan(NamedTuple):
    """Sizes of a run; bytes where nothing else is said."""

    start_partitions: int
    start_bytes: int
    start_repeats: int
    killed_records: int
    empty_partitions: int
    raw_s: float
    lookup_segments: int
    lookup_records: int
    lookups: int
    deleted_bytes: int
    compacted_bytes: int
    quiet_s: float


FULL: Final = ScalePlan(
    start_partitions=1_000,
    start_bytes=10_000_000_000,
    start_repeats=5,
    killed_records=2_000_000,
    empty_partitions=10_000,
    raw_s=5.0,
    lookup_segments=1_000,
    lookup_records=10_000_000,
    lookups=5_000,
    deleted_bytes=5_000_000_000,
    compacted_bytes=1_000_000_000,
    quiet_s=10.0,
)
QUICK: Final = ScalePlan(
    start_partitions=50,
    start_bytes=50_000_000,
    start_repeats=2,
    killed_records=20_000,
    empty_partitions=300,
    raw_s=0.5,
    lookup_segments=20,
    lookup_records=40_000,
    lookups=200,
    deleted_bytes=50_000_000,
    compacted_bytes=20_000_000,
    quiet_s=1.0,
)


class ScaleSession:
    """One broker in a directory of its own, which can be stopped, killed and started again."""

    def __init__(
        self,
        peer: Peer,
        directory: Path,
        plan: ScalePlan,
        results: Results,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepares and starts it. `settings` are Kafka's keys."""
        self.peer = peer
        self.directory = directory
        self.plan = plan
        self._results = results
        self._settings = dict(settings or {})
        self.port = free_port()
        directory.mkdir(parents=True)
        peer.prepare(directory, self.port)
        properties = directory / "server.properties"
        if properties.exists():
            with properties.open("a") as file:
                file.writelines(f"{key}={value}\n" for key, value in self._settings.items())
        self.child: Child
        self.start()

    def start(self) -> float:
        """Launch it on its data; seconds from spawning to the first Metadata answer."""
        if isinstance(self.peer, Minibroker):
            command = self.peer.command(self.directory, self.port)
            for key, value in self._settings.items():
                command += ["--set", f"{key}={value}"]
            self.child = Child(command, output=self.directory / "output.log")
        else:
            self.child = self.peer.launch(self.directory, self.port)
        answered_at = wire.wait_for_metadata(
            self.port, timeout_s=START_PATIENCE_S, check=self.child.check
        )
        return answered_at - self.child.started_at

    def stop(self) -> None:
        """Stop it cleanly: flushing gigabytes takes its time. Raises RowError if it does not."""
        self.child.terminate()
        try:
            self.child.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise RowError(f"did not stop within {STOP_PATIENCE_S:g} s") from error

    def close(self) -> None:
        """End it, whatever its state."""
        if self.child.is_running:
            self.child.kill()

    def connect(self) -> wire.Connection:
        return wire.Connection(self.port, timeout_s=LEADER_PATIENCE_S)

    def log_directory(self, topic: str, partition: int = 0) -> Path:
        """Return the directory of a partition's files."""
        return self.directory / "data" / f"{topic}-{partition}"

    def read_bytes(self) -> int:
        """Return the bytes that the process has read since its start, from caches or not."""
        for line in Path(f"/proc/{self.child.pid}/io").read_text().splitlines():
            if line.startswith("rchar:"):
                return int(line.split()[1])
        raise RowError("the kernel does not tell what a process reads")

    def open_file_count(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.child.pid}/fd").iterdir())

    def add(self, metric: str, sample: float) -> None:
        """Add one more sample of this broker."""
        self._results.add(self.peer.name, metric, sample)


def retrying(attempt: Callable[[], object]) -> None:
    """Until a new partition has its leader. Raises WireError when the time is over."""
    deadline = time.perf_counter() + LEADER_PATIENCE_S
    while True:
        try:
            attempt()
        except wire.WireError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
