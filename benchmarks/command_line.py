"""`minibroker produce` and `consume` beside kcat: a million records of 200 bytes, in turns.

    python -m benchmarks.command_line [--records N] [--rounds N]

Both write the same lines into topics of four partitions of one minibroker, and read the same topic
into a file of this machine. A round has lines of one length and lines of 100 to 300 bytes. The
table has medians; the ratio is the rate of minibroker over that of kcat, by wall clock and by the
CPU time of the client alone, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.peers import Minibroker

PROGRAM: Final = (sys.executable, "-m", "minibroker")
LINE_BYTES: Final = 200
_MB: Final = 1 << 20


class Spent(NamedTuple):
    """One run of a client."""

    wall_s: float
    cpu_s: float
    memory_mb: float
    """Most memory that was resident."""


def main() -> int:
    """Measure, and print the table; return 1 if kcat is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if shutil.which("kcat") is None:
        print("kcat is not installed: apt-get install kcat", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        directory = Path(name)
        broker, port = Minibroker().start(directory)
        try:
            rows = measured(directory, f"127.0.0.1:{port}", arguments.records, arguments.rounds)
        finally:
            broker.kill()
    print_table(rows)
    return 0


def measured(
    directory: Path, address: str, records: int, rounds: int
) -> dict[str, list[tuple[Spent, Spent]]]:
    """Return the runs of kcat and of minibroker for each line of the table."""
    rows: dict[str, list[tuple[Spent, Spent]]] = {}
    files = {
        f"{LINE_BYTES} bytes": lines_of(directory / "same", records, 0),
        f"{LINE_BYTES // 2} to {LINE_BYTES * 3 // 2} bytes": lines_of(
            directory / "varied", records, LINE_BYTES // 2
        ),
    }
    for number in range(rounds):
        for label, lines in files.items():
            topics = [f"{owner}-{lines.name}-{number}" for owner in ("kcat", "own")]
            verb(address, "topics", *(word for t in topics for word in ("--create", f"{t}:4")))
            produce_rate = (
                run(["kcat", "-P", "-q", "-b", address, "-t", topics[0]], lines),
                run([*PROGRAM, "produce", "--bootstrap", address, topics[1]], lines),
            )
            outputs = [directory / owner for owner in ("kcat", "own")]
            consume_rate = (
                run(["kcat", "-C", "-q", "-e", "-b", address, "-t", topics[1]], None, outputs[0]),
                run([*PROGRAM, "consume", "--bootstrap", address, topics[1]], None, outputs[1]),
            )
            sizes = {path.stat().st_size for path in (lines, *outputs)}
            assert len(sizes) == 1, f"a client lost records: {sizes}"
            rows.setdefault(f"produce, {label}", []).append(produce_rate)
            rows.setdefault(f"consume, {label}", []).append(consume_rate)
            verb(address, "topics", *topics, "--delete")
    return rows


def lines_of(path: Path, records: int, spread: int) -> Path:
    """Write so many lines of about `LINE_BYTES`, up to `spread` bytes more or less."""
    lengths = random.Random(1)
    with path.open("wb") as file:
        for number in range(records):
            size = LINE_BYTES - 1 + lengths.randint(-spread, spread)
            file.write(b"%0*d\n" % (size, number))
    return path


def verb(address: str, name: str, *words: str) -> None:
    """Run a verb, without its output."""
    command = [*PROGRAM, name, "--bootstrap", address, *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def run(command: list[str], lines: Path | None, output: Path | None = None) -> Spent:
    """Run a client to its end. Raises AssertionError if it fails."""
    with (
        (lines or Path(os.devnull)).open("rb") as source,
        (output or Path(os.devnull)).open("wb") as out,
    ):
        start_s = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start_s
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Spent(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / _MB)


def print_table(rows: dict[str, list[tuple[Spent, Spent]]]) -> None:
    """Print the medians as a table of Markdown."""
    print("| | kcat, s | minibroker, s | rate | rate by CPU | memory, MB |")
    print("|---|---:|---:|---:|---:|---:|")
    for label, runs in rows.items():
        kcat, own = (median([pair[at] for pair in runs]) for at in (0, 1))
        print(
            f"| {label} | {kcat.wall_s:.2f} (CPU {kcat.cpu_s:.2f}) "
            f"| {own.wall_s:.2f} (CPU {own.cpu_s:.2f}) | {kcat.wall_s / own.wall_s:.2f}x "
            f"| {kcat.cpu_s / own.cpu_s:.2f}x | {kcat.memory_mb:.0f}, {own.memory_mb:.0f} |"
        )


def median(runs: list[Spent]) -> Spent:
    """Return the median of each number."""
    return Spent(*(statistics.median(column) for column in zip(*runs, strict=True)))


if __name__ == "__main__":
    raise SystemExit(main())
