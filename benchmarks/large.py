"""`python -m benchmarks.large`: jobs of the pipeline on a topic that is larger than memory.

    archive  the topic into Parquet files
    compare  the topic with that archive
    replay   that archive into another topic

Each job is a command of its own, one behind the other on one minibroker. The topic has
`--gigabytes 20` in records of 1 KB, which no codec makes smaller, and `--partitions 8`. A row has
the time, and the most memory that each kind of process held at once: Spark's JVM, the Python of the
driver, its workers together (what they share counts for each), the broker. The scratch directory
takes three times the topic with `replay`, else twice.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from benchmarks import filling, machine
from benchmarks.children import Child, ChildDiedError
from benchmarks.memory import Memory
from benchmarks.peers import Minibroker

TOPIC: Final = "large"
RECORD_BYTES: Final = 1_000
POOL_BYTES: Final = 1 << 24
JOBS: Final = ("archive", "compare", "replay")
KINDS: Final = ("JVM", "driver", "workers", "broker")


class Measured(NamedTuple):
    """One job: its time, and the most bytes that each kind of process held at once."""

    job: str
    seconds: float
    most_bytes: Counter[str]


def fill(address: str, partitions: int, count: int) -> None:
    """Make the topic and write `count` records: keys in turn, values by a seed."""
    pool = random.Random(7).randbytes(POOL_BYTES)
    starts = (number * 4_099 % (POOL_BYTES - RECORD_BYTES) for number in range(count))
    records = (
        {
            "value": pool[start : start + RECORD_BYTES],
            "key": b"%010d" % number,
            "partition": number % partitions,
        }
        for number, start in enumerate(starts)
    )
    settings = {"linger.ms": "50", "batch.size": "900000", "queue.buffering.max.kbytes": "262144"}
    filling.fill(address, TOPIC, partitions, records, settings)


def measured(job: str, address: str, archive: Path) -> Measured:
    """Run a job as a command. Raises ChildDiedError if it fails."""
    words = {
        "archive": ["archive", "--topic", TOPIC, "--to", str(archive)],
        "compare": ["compare", TOPIC, str(archive)],
        "replay": ["replay", "--from", str(archive), "--to-topic", f"{TOPIC}-again"],
    }[job]
    command = [sys.executable, "-m", "minibroker", "pipeline", *words, "--bootstrap", address]
    start_s = time.perf_counter()
    with Memory(kind_of) as memory:
        child = Child(command, output=archive.parent / f"{job}.log")
        try:
            code = child.wait(filling.WAIT_S)
            seconds = time.perf_counter() - start_s
        finally:
            child.kill()
    if code:
        raise ChildDiedError(f"{job} ended with {code}: {child.tail()}")
    return Measured(job, seconds, memory.most)


def kind_of(process: psutil.Process) -> str:
    """Return the kind of a process, one of KINDS."""
    if process.name() == "java":
        return "JVM"
    arguments = process.cmdline()
    if "serve" in arguments:
        return "broker"
    return "driver" if "minibroker" in arguments else "workers"


def main(words: list[str] | None = None) -> int:
    """Return 0. Raises ChildDiedError for a job that fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where the data goes")
    arguments = parser.parse_args(words)
    machine.warn_if_busy(machine.facts())
    peer = Minibroker()
    with tempfile.TemporaryDirectory(prefix="minibroker-large-", dir=arguments.scratch) as name:
        directory = Path(name, "broker")
        directory.mkdir()
        broker, port = peer.start(directory)
        try:
            address, archive = f"127.0.0.1:{port}", Path(name, "archive")
            count = int(arguments.gigabytes * 1e9) // RECORD_BYTES
            start_s = time.perf_counter()
            fill(address, arguments.partitions, count)
            print(f"{count:,} records written in {time.perf_counter() - start_s:.0f} s", flush=True)
            print(
                f"{'':8} {'s':>6} {'MB/s':>6}" + "".join(f"{kind + ', MB':>13}" for kind in KINDS)
            )
            for job in arguments.jobs:
                measurement = measured(job, address, archive)
                rate = arguments.gigabytes * 1e3 / measurement.seconds
                columns = "".join(f"{measurement.most_bytes[kind] / 1e6:>13.0f}" for kind in KINDS)
                print(f"{job:8} {measurement.seconds:>6.0f} {rate:>6.0f}{columns}", flush=True)
            sizes = [path.stat().st_size / 1e6 for path in archive.rglob("*.parquet")]
            print(f"{len(sizes)} files, {sum(sizes):,.0f} MB, the largest {max(sizes):.0f} MB")
        finally:
            broker.kill()
            peer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
