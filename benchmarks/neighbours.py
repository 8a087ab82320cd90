"""`python -m benchmarks.neighbours`: a producer's p99 while somebody else waits for a disk.

    cold    a consumer reads segments that were dropped from memory (`--gigabytes`, default 5)
    slow    the other one of two log directories takes 2 s for each fsync, new file and rename

Of minibroker alone: what it is to show is a ratio, disturbed by quiet. Takes about two minutes.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import uvloop

from benchmarks import open_loop, scale_wire, wire
from minibroker.broker.app import Broker
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.storage.files import Files
from tests.support.processes import free_port

DELAY_S: Final = 2.0
RATE_PER_S: Final = 300
SECONDS: Final = 15
FETCH_BYTES: Final = 1 << 20
_COMMAND: Final = (sys.executable, "-m", "benchmarks.neighbours")
_pause = threading.Event().wait


class SlowFiles(Files):
    """Files of which those below one directory are on a disk that takes its time, once `is_slow`
    says so.
    """

    __slots__ = ("_slow", "is_slow")

    def __init__(self, slow: str) -> None:
        self._slow = slow
        self.is_slow = False

    def _wait(self, path: str) -> None:
        if self.is_slow and path.startswith(self._slow):
            _pause(DELAY_S)

    def open(self, path: str, *, create: bool = False) -> int:
        """Open; a new file takes its time."""
        if create and not self.exists(path):
            self._wait(path)
        return super().open(path, create=create)

    def sync(self, fd: int) -> None:  # type: ignore[override]
        """fsync, later."""
        self._wait(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115
        os.fsync(fd)

    def sync_directory(self, path: str) -> None:
        """fsync, later."""
        self._wait(path)
        super().sync_directory(path)

    def replace(self, old: str, new: str) -> None:
        """Rename, later."""
        self._wait(old)
        super().replace(old, new)


async def _serve(port: int, quick: str, slow: str) -> None:
    config = BrokerConfig(
        {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": f"{quick},{slow}"}
    )
    files = SlowFiles(slow)
    await Broker(config, files=files).start()
    files.is_slow = True
    await asyncio.get_running_loop().create_future()


class Served:
    """A broker in a process of its own, with the directories `quick` and `slow`."""

    def __init__(self, scratch: Path) -> None:
        self.port = free_port()
        self.slow = scratch / "slow"
        self.quick = scratch / "quick"
        arguments = [str(self.port), str(self.quick), str(self.slow)]
        self._child = subprocess.Popen([*_COMMAND, "--serve", *arguments])
        wire.wait_for_listener(self.port, timeout_s=30)

    def cpu_s(self) -> float:
        """Processor time of the broker so far."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Kill it."""
        self._child.kill()
        self._child.wait()


def percentiles(served: Served, seed: int) -> tuple[float, float]:
    """p50 and p99 in ms of small requests to the topic `neighbour`."""
    connection = wire.Connection(served.port)
    request = wire.produce_frame("neighbour", wire.one_record_batch(bytes(1000)))
    stream = open_loop.Stream(connection.socket, request, open_loop.kafka_size)
    stream.plan(open_loop.spread(RATE_PER_S * SECONDS, RATE_PER_S, seed))
    open_loop.run([stream])
    connection.close()
    times_s = sorted(stream.taken_s)
    return times_s[len(times_s) // 2] * 1000, times_s[len(times_s) * 99 // 100] * 1000


def _drop(directory: Path) -> None:
    """Have the system forget what it has of these files."""
    for path in directory.glob("cold-0/*.log"):
        handle = os.open(path, os.O_RDWR)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def _consume(port: int, end: int, stopped: threading.Event | None = None) -> int:
    """Read the topic `cold` from its start; return how many bytes that was."""
    connection = wire.Connection(port)
    offset = size = 0
    while offset < end and not (stopped is not None and stopped.is_set()):
        records = scale_wire.fetch(connection, "cold", 0, offset, FETCH_BYTES)
        size += len(records)
        position = 0
        while position + 61 <= len(records):  # whole batches, as a consumer counts them
            length = int.from_bytes(records[position + 8 : position + 12], "big") + 12
            if position + length > len(records):
                break
            offset = int.from_bytes(records[position : position + 8], "big") + 1
            position += length
    connection.close()
    return size


def cold(scratch: Path, gigabytes: float) -> None:
    """Print what a consumer of cold segments costs its neighbour, and the broker's CPU for it."""
    served = Served(scratch)
    try:
        connection = wire.Connection(served.port)
        for name in ("cold", "neighbour"):
            wire.create_topic(connection, name, 1, {"segment.bytes": str(256 << 20)})
        batch = wire.one_record_batch(os.urandom(500_000))
        count = int(gigabytes * 1e9 / len(batch))
        for _ in range(count):
            scale_wire.produce(connection, "cold", 0, batch)
        command = [*_COMMAND, "--consume", str(served.port), str(count)]
        for state in ("warm", "cold"):
            quiet = percentiles(served, 1)
            if state == "cold":
                _drop(served.quick)
                _drop(served.slow)
            cpu_at_start, start_s = served.cpu_s(), time.perf_counter()
            consumer = subprocess.Popen(command)
            consumer.wait()
            took, cpu = time.perf_counter() - start_s, served.cpu_s() - cpu_at_start
            print(f"{state}: {gigabytes:g} GB in {took:.1f} s, {cpu / gigabytes:.3f} CPU s/GB")
            if state == "cold":
                _drop(served.quick)
                _drop(served.slow)
            consumer = subprocess.Popen(command)
            disturbed = percentiles(served, 2)
            is_over = consumer.poll() is not None
            consumer.wait()
            when = "ended before" if is_over else "all the time"
            _say(f"{state}, {when}", quiet, disturbed)
    finally:
        served.stop()


def slow(scratch: Path) -> None:
    """Print what one slow disk of two costs the partitions of the other one."""
    served = Served(scratch)
    try:
        connection = wire.Connection(served.port)
        wire.create_topic(connection, "slow", 2, {"flush.messages": "1"})
        wire.create_topic(connection, "neighbour", 1)
        if not (served.quick / "neighbour-0").exists():
            raise RuntimeError("the neighbour is on the slow disk")
        index = 0 if (served.slow / "slow-0").exists() else 1
        batch = wire.one_record_batch(bytes(1000))
        scale_wire.produce(connection, "slow", index, batch)  # its file is made on the loop
        quiet = percentiles(served, 1)
        stopped = threading.Event()

        def produce() -> None:
            other = wire.Connection(served.port)
            while not stopped.is_set():
                scale_wire.produce(other, "slow", index, batch)
            other.close()

        thread = threading.Thread(target=produce)
        thread.start()
        disturbed = percentiles(served, 2)
        stopped.set()
        thread.join()
        _say("slow", quiet, disturbed)
    finally:
        served.stop()


def _say(name: str, quiet: tuple[float, float], disturbed: tuple[float, float]) -> None:
    print(
        f"{name}: p50 {quiet[0]:.2f} → {disturbed[0]:.2f} ms, "
        f"p99 {quiet[1]:.2f} → {disturbed[1]:.2f} ms, ratio {disturbed[1] / quiet[1]:.2f}",
        flush=True,
    )


def main() -> None:
    """Measure what was asked for, or be the broker or the consumer of that."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neighbours")
    parser.add_argument("row", nargs="?", choices=["all", "cold", "slow"], default="all")
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--consume", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(int(arguments.serve[0]), *arguments.serve[1:]))
    elif arguments.consume:
        _consume(*arguments.consume)
    else:
        for row in ("cold", "slow") if arguments.row == "all" else (arguments.row,):
            with tempfile.TemporaryDirectory(prefix="neighbours-") as scratch:
                cold(Path(scratch), arguments.gigabytes) if row == "cold" else slow(Path(scratch))


if __name__ == "__main__":
    main()
