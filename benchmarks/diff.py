"""`python -m benchmarks.diff BASE`: this checkout beside another commit, in turns on one machine.

Both brokers are asked by this checkout's client, so only the broker differs. A round measures each
row of both sides, the sides in turn; the next round begins with the other side. A table shows the
median of the ratios of the rounds and their range. CPU of the broker comes first: it is steady
where the client takes the cores. A ratio below 1 is cheaper, or quicker, than the base.
"""

import argparse
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import scale_wire, wire
from benchmarks.children import Child
from benchmarks.rows.raw import RawClient
from tests.support.processes import free_port

ROOT: Final = Path(__file__).resolve().parents[1]
CHECKOUTS: Final = ROOT / "build" / "bench-diff"
TOPIC: Final = "diff"
START_PATIENCE_S: Final = 60.0
BURST_S: Final = 1.5
BATCH_RECORDS: Final = 16
FETCH_BYTES: Final = 1 << 20
FILL_BYTES: Final = 64 << 20
FETCH_PASSES: Final = 16
KILLED_BATCHES: Final = 200_000
"""Batches of one record of 100 bytes that a killed broker leaves: some 34 MB."""
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_BATCH_HEAD: Final = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta of a batch of format 2."""


class Side(NamedTuple):
    """One of the two commits."""

    name: str
    checkout: Path

    def launch(self, directory: Path, port: int) -> Child:
        """Start its broker with its data in `directory`."""
        arguments = [
            "serve",
            "--listen",
            f"127.0.0.1:{port}",
            "--data-dir",
            str(directory / "data"),
        ]
        return Child(
            [sys.executable, "-m", "minibroker", *arguments],
            output=directory / "output.log",
            directory=self.checkout,
            environment={"PYTHONPATH": str(self.checkout)},
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
def started(side: Side, directory: Path) -> Iterator[Running]:
    """Yield a broker of this side that answers Metadata; it is stopped at the end."""
    port = free_port()
    child = side.launch(directory, port)
    try:
        wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        yield Running(side, directory, child, port)
    finally:
        child.stop()


def measure_start(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds to the first answer, and MB of an idle broker."""
    port = free_port()
    child = side.launch(directory, port)
    try:
        answered_at = wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        return {
            "start, CPU s": child.cpu_seconds(),
            "start, s": answered_at - child.started_at,
            "idle memory, MB": child.resident_bytes() / 1e6,
        }
    finally:
        child.stop()


def measure_raw(side: Side, directory: Path) -> Measured:
    """Return CPU and time of a Produce request with one record, 1, 5 and 50 in flight."""
    figures: Measured = {}
    with started(side, directory) as broker, _connected(broker) as connection:
        client = RawClient(connection, TOPIC, wire.one_record_batch(b"x" * 100))
        client.run(50, BURST_S / 2)
        for in_flight in (1, 5, 50):
            before_s = broker.child.cpu_seconds()
            burst = client.run(in_flight, BURST_S)
            spent_s = broker.child.cpu_seconds() - before_s
            requests = burst.requests_per_s * BURST_S
            figures[f"raw Produce, {in_flight} in flight, CPU µs"] = spent_s / requests * 1e6
            figures[f"raw Produce, {in_flight} in flight, µs"] = 1e6 / burst.requests_per_s
    return figures


def measure_batches(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB in batches of 16 records of 1 KB: produced, then fetched."""
    with started(side, directory) as broker, _connected(broker) as connection:
        batch = scale_wire.Batches(BATCH_RECORDS, 1000).at(time.time_ns() // 1_000_000)
        frame = wire.produce_frame(TOPIC, batch)
        count = FILL_BYTES // len(batch)
        before_s = broker.child.cpu_seconds()
        _pipeline(connection, frame, count)
        produced_s = broker.child.cpu_seconds() - before_s
        gigabytes = count * len(batch) / 1e9
        before_s = broker.child.cpu_seconds()
        for _ in range(FETCH_PASSES):
            _fetch_all(connection, count * BATCH_RECORDS)
        fetched_s = (broker.child.cpu_seconds() - before_s) / FETCH_PASSES
    return {
        "produced, 1 KB, CPU s/GB": produced_s / gigabytes,
        "fetched, 1 MB, CPU s/GB": fetched_s / gigabytes,
    }


def measure_killed(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds of a start after kill -9 with many small batches.

    The recovery point is removed, so the start looks at every batch. Where the last sync stood at
    the kill depends on the moment, and a second of it outweighs what is compared.
    """
    with started(side, directory) as broker, _connected(broker) as connection:
        _pipeline(
            connection, wire.produce_frame(TOPIC, wire.one_record_batch(b"x" * 100)), KILLED_BATCHES
        )
        broker.child.kill()
    (directory / "data" / RECOVERY_POINTS).unlink()
    for snapshot in directory.glob(f"data/{TOPIC}-0/*.snapshot"):
        snapshot.unlink()
    figures = measure_start(side, directory)
    return {
        "after a kill, CPU s": figures["start, CPU s"],
        "after a kill, s": figures["start, s"],
    }


ROWS: Final[dict[str, Callable[[Side, Path], Measured]]] = {
    "start": measure_start,
    "raw": measure_raw,
    "batches": measure_batches,
    "killed": measure_killed,
}


@contextmanager
def _connected(broker: Running) -> Iterator[wire.Connection]:
    """Yield a connection to a broker with the topic of a row, led by it."""
    connection = wire.Connection(broker.port)
    try:
        wire.create_topic(connection, TOPIC)
        wire.wait_for_leader(connection, TOPIC)
        yield connection
    finally:
        connection.close()


def _pipeline(connection: wire.Connection, frame: bytes, count: int, in_flight: int = 10) -> None:
    """Send a Produce frame `count` times, `in_flight` at once. Raises WireError."""
    request_count = answered = 0
    while answered < count:
        while request_count < count and request_count - answered < in_flight:
            connection.socket.sendall(frame)
            request_count += 1
        error, _ = wire.produce_answer(connection.receive(), TOPIC)
        if error:
            raise wire.WireError(f"Produce answered error {error}")
        answered += 1


def _fetch_all(connection: wire.Connection, records: int) -> None:
    """Fetch the topic from its second record to its end."""
    offset = 1  # the first one asked for the leader
    while offset <= records:
        offset = _next_offset(scale_wire.fetch(connection, TOPIC, 0, offset, FETCH_BYTES))


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
    return Side(sha, directory)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def compare(base: Side, own: Side, rows: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Return the ratios here / base of each figure, one for each round."""
    ratios: dict[str, list[float]] = {}
    for number in range(rounds):
        for row in rows:
            figures: dict[str, Measured] = {}
            for side in (base, own) if number % 2 == 0 else (own, base):
                with tempfile.TemporaryDirectory(prefix="minibroker-diff-") as name:
                    figures[side.name] = ROWS[row](side, Path(name))
            for figure, value in figures[own.name].items():
                ratios.setdefault(figure, []).append(value / figures[base.name][figure])
    return ratios


def table(ratios: Mapping[str, Sequence[float]], base: str) -> str:
    """Return the medians and ranges as a Markdown table, the figures of CPU first."""
    lines = [f"| figure | here / {base}, median | range |", "|---|---:|---:|"]
    for figure in sorted(ratios, key=lambda name: "CPU" not in name):
        values = ratios[figure]
        median = statistics.median(values)
        lines.append(f"| {figure} | {median:.3f} | {min(values):.3f} to {max(values):.3f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diff", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each row (default 5)")
    parser.add_argument(
        "--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)} (default: all)"
    )
    options = parser.parse_args(arguments)
    base, own = checkout_of(options.base), Side("here", ROOT)
    print(table(compare(base, own, options.rows.split(","), options.rounds), base.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
