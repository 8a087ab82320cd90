"""Row `scrapes`: what Prometheus costs those who produce.

Rounds of the same load, a client that keeps some Produce requests in flight, in turn beside

- a scraper that waits,
- one that asks `/health/live`, which answers 15 bytes: what a third process and an HTTP request
  cost on this machine, whatever the answer,
- one that asks `/metrics`.

It asks as Prometheus does, over a connection that it keeps, but 10 times a second: Prometheus does
every 15 s, the most eager settings every second. It runs all the time, so that its start is in no
round. The figures are medians of the rounds' p99.
"""

import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from benchmarks import wire
from benchmarks.children import Child, free_port
from benchmarks.peers import START_PATIENCE_S, Minibroker, Peer
from benchmarks.plan import Plan
from benchmarks.results import Results
from benchmarks.rows.session import RowError

TOPICS, IN_FLIGHT, VALUE_BYTES = 50, 8, 1_000
RATE_PER_S = 10
ROUND_SCRAPES = 25
_TOPIC = "bench-scrapes"
_KINDS = {"scrapes_alone": "", "scrapes_live": "/health/live", "scrapes_during": "/metrics"}
"""Metric → what is asked beside the load."""


def measure(peer: Peer, scratch: Path, results: Results, plan: Plan) -> None:
    """One broker with its control API. Raises RowError where a scrape fails."""
    if not isinstance(peer, Minibroker):
        results.note(peer.name, "scrapes", "not to be had: it has no such endpoint")
        return
    directory = Path(tempfile.mkdtemp(dir=scratch, prefix="scrapes-"))
    port, control = free_port(), free_port()
    command = [*peer.command(directory, port), "--control", f"127.0.0.1:{control}"]
    child = Child(command, output=directory / "output.log")
    try:
        wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        wire.wait_for_listener(control, timeout_s=START_PATIENCE_S, check=child.check)
        _measure(port, control, results, peer.name, plan)
    finally:
        child.kill()


def _measure(port: int, control: int, results: Results, broker: str, plan: Plan) -> None:
    connection = wire.Connection(port)
    try:
        for number in range(TOPICS):
            wire.create_topic(connection, f"{_TOPIC}-{number}")
        frame = wire.produce_frame(f"{_TOPIC}-0", wire.one_record_batch(b"x" * VALUE_BYTES))
        with _Scraper(control) as scraper:
            for path in _KINDS.values():  # connections are open, code is warm
                _round(connection.socket, frame, scraper, path)
            p99s_ms: dict[str, list[float]] = {name: [] for name in _KINDS}
            for number in range(plan.scrapes // ROUND_SCRAPES):
                for name in list(_KINDS)[:: -1 if number % 2 else 1]:
                    taken = _round(connection.socket, frame, scraper, _KINDS[name])
                    p99s_ms[name].append(statistics.quantiles(taken, n=100)[98] * 1000)
    finally:
        connection.close()
    p99_ms = {name: statistics.median(of_rounds) for name, of_rounds in p99s_ms.items()}
    for name, value in p99_ms.items():
        results.add(broker, name, value)
    cost = p99_ms["scrapes_during"] / p99_ms["scrapes_alone"] - 1
    results.add(broker, "scrapes_cost", cost * 100)


def _round(peer: socket.socket, frame: bytes, scraper: "_Scraper", path: str) -> list[float]:
    if path:
        scraper.begin(path)
    taken = _load(peer, frame, ROUND_SCRAPES / RATE_PER_S)
    if path:
        scraper.finish()
    return taken


class _Scraper:
    """The process that asks; it waits on its input until it is told to."""

    def __init__(self, control: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(control)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=START_PATIENCE_S)

    def begin(self, path: str) -> None:
        """Ask for `path`, `ROUND_SCRAPES` times."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()

    def finish(self) -> None:
        """Wait for the last answer. Raises RowError."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RowError("a scrape failed")


def _load(peer: socket.socket, frame: bytes, duration_s: float) -> list[float]:
    """Seconds from sending to the answer, of each request of a client with `IN_FLIGHT` open."""
    answers = bytearray()
    begun = []
    taken: list[float] = []
    deadline = time.perf_counter() + duration_s
    for _ in range(IN_FLIGHT):
        begun.append(time.perf_counter())
        peer.sendall(frame)
    while len(taken) < len(begun):
        part = peer.recv(1 << 16)
        if not part:
            raise wire.WireError("the broker closed the connection")
        answers += part
        while len(answers) >= 4:
            size_bytes = 4 + int.from_bytes(answers[:4], "big")
            if len(answers) < size_bytes:
                break
            del answers[:size_bytes]
            now = time.perf_counter()
            taken.append(now - begun[len(taken)])
            if now < deadline:
                begun.append(now)
                peer.sendall(frame)
    return taken


def _scrape(peer: socket.socket, path: str) -> None:
    """Raises RowError."""
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    answer = bytearray()
    while (end := answer.find(b"\r\n\r\n")) < 0:
        answer += _receive(peer)
    head = bytes(answer[:end]).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RowError(f"{path} answered {head[:50]!r}")
    size_bytes = int(head.partition(b"content-length: ")[2].split()[0])
    while len(answer) < end + 4 + size_bytes:
        answer += _receive(peer)


def _receive(peer: socket.socket) -> bytes:
    part = peer.recv(1 << 16)
    if not part:
        raise RowError("the control API closed the connection")
    return part


def _main(control: int) -> None:
    with socket.create_connection(("127.0.0.1", control), START_PATIENCE_S) as peer:
        for path in sys.stdin:
            next_at = time.perf_counter()
            for _ in range(ROUND_SCRAPES):
                _scrape(peer, path.strip())
                next_at += 1 / RATE_PER_S
                time.sleep(max(0.0, next_at - time.perf_counter()))
            sys.stdout.write("done\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
