"""The two brokers of a comparison of commits, and the loads that they get.

A broker of either side is asked by this checkout's client, so only the broker differs. `diff` has
the rows by the clock, `instructions` those by count.
"""

import compileall
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import scale_wire, wire
from benchmarks.children import Child
from tests.support.processes import free_port

ROOT: Final = Path(__file__).resolve().parents[1]
CHECKOUTS: Final = ROOT / "build" / "bench-diff"
TOPIC: Final = "diff"
START_PATIENCE_S: Final = 120.0
"""Long, because a broker below valgrind is slow."""
FETCH_BYTES: Final = 1 << 20
_BATCH_HEAD: Final = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta of a batch of format 2."""


class Side(NamedTuple):
    """One of the two commits."""

    name: str
    checkout: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that make Python take minibroker from this side."""
        return {"PYTHONPATH": str(self.checkout), "PYTHONHASHSEED": "0"}

    def launch(self, directory: Path, port: int, tool: Sequence[str] = ()) -> Child:
        """Start its broker with its data in `directory`, below the program `tool` if given."""
        arguments = [
            "serve",
            "--listen",
            f"127.0.0.1:{port}",
            "--data-dir",
            str(directory / "data"),
        ]
        return Child(
            [*tool, sys.executable, "-m", "minibroker", *arguments],
            output=directory / "output.log",
            directory=self.checkout,
            environment=self.environment,
        )


class Running(NamedTuple):
    """A broker of a side that answers."""

    side: Side
    directory: Path
    child: Child
    port: int


Measured = dict[str, float]
"""Name of a figure → its value. For every figure less is better."""


@contextmanager
def started(side: Side, directory: Path, tool: Sequence[str] = ()) -> Iterator[Running]:
    """Yield a broker of this side that answers Metadata; it is stopped at the end."""
    port = free_port()
    child = side.launch(directory, port, tool)
    try:
        wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        yield Running(side, directory, child, port)
    finally:
        child.stop()


@contextmanager
def connected(broker: Running) -> Iterator[wire.Connection]:
    """Yield a connection to a broker with the topic of a row, led by it."""
    connection = wire.Connection(broker.port, timeout_s=START_PATIENCE_S)
    try:
        wire.create_topic(connection, TOPIC)
        wire.wait_for_leader(connection, TOPIC, timeout_s=START_PATIENCE_S)
        yield connection
    finally:
        connection.close()


def fetch_all(connection: wire.Connection, records: int) -> int:
    """Fetch the topic from its second record to its end; return the number of requests."""
    request_count, offset = 0, 1  # the first record asked for the leader
    while offset <= records:
        offset = _next_offset(scale_wire.fetch(connection, TOPIC, 0, offset, FETCH_BYTES))
        request_count += 1
    return request_count


def _next_offset(batches: bytes) -> int:
    """Return the offset behind the last whole batch of an answer. Raises WireError for none."""
    position = next_offset = 0
    while position + _BATCH_HEAD.size <= len(batches):
        base_offset, length, last_delta = _BATCH_HEAD.unpack_from(batches, position)
        position += 12 + length
        if position > len(batches):
            break
        next_offset = base_offset + last_delta + 1
    if not next_offset:
        raise wire.WireError("Fetch answered no whole batch")
    return next_offset


def checkout_of(commit: str) -> Side:
    """Return the side of a commit, its files below build/. Raises CalledProcessError."""
    sha = _git("rev-parse", "--short=12", commit).decode().strip()
    directory = CHECKOUTS / sha
    if not directory.exists():
        part = directory.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        archive = _git("archive", sha, "minibroker", "protocol_specs")
        subprocess.run(["tar", "-x", "-C", part], input=archive, check=True)
        part.rename(directory)
        compileall.compile_dir(directory, quiet=2)  # as pip does, for the first start
    return Side(sha, directory)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout
