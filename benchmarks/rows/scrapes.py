"""Row `scrapes`: what Prometheus costs those who produce.

Requests leave at a rate that fills no core, and rounds of three blocks, in changing order, have

- nothing beside them,
- `/health/live` asked for, which answers 15 bytes: what any HTTP request costs here,
- `/metrics` asked for.

It is asked over a connection that is kept, as Prometheus does, but 10 times a second: Prometheus
does so every 15 s, the most eager settings every second. The figure is by how much a block's
p99 is above that of the quiet block of its round (`pairs`); the second kind is the control: what is
within its interval of zero, this machine cannot tell from nothing. Rounds are added until the
scrapes' interval is narrow enough to say something, or there are too many.
"""

import random
import socket
import statistics
import tempfile
from pathlib import Path

from benchmarks import wire
from benchmarks.children import Child
from benchmarks.open_loop import Stream, http_size, kafka_size, run, spread
from benchmarks.pairs import changes, median_interval
from benchmarks.peers import START_PATIENCE_S, Minibroker, Peer
from benchmarks.plan import Plan
from benchmarks.results import Results
from benchmarks.rows.session import RowError
from tests.support.processes import free_port

TOPICS, VALUE_BYTES = 50, 1_000
REQUESTS_PER_S = 1_000
SCRAPES_PER_S = 10
BLOCK_SCRAPES = 20
WIDTH_MAX_PERCENT = 10.0
"""Widest interval; the bar is as wide."""
BLOCK_REQUESTS = BLOCK_SCRAPES * REQUESTS_PER_S // SCRAPES_PER_S
_TOPIC = "bench-scrapes"
_ALONE, _LIVE, _SCRAPED = "scrapes_alone", "scrapes_live", "scrapes_during"
_PATHS = {_ALONE: "", _LIVE: "/health/live", _SCRAPED: "/metrics"}
"""Metric → what is asked for beside the requests."""


def measure(peer: Peer, scratch: Path, results: Results, plan: Plan) -> None:
    """Measure one broker with its control API. Raises RowError, WireError."""
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
        p99s_ms = _rounds(port, control, plan)
    finally:
        child.kill()
    report(p99s_ms, peer.name, results)


def report(p99s_ms: dict[str, list[float]], broker: str, results: Results) -> None:
    """From the blocks of each kind, round by round, to the table."""
    for name, values in p99s_ms.items():
        for value in values:
            results.add(broker, name, value)
    for kind, name in ((_LIVE, "scrapes_control"), (_SCRAPED, "scrapes_cost")):
        of_rounds = costs(p99s_ms, kind)
        for cost in of_rounds:
            results.add(broker, name, cost)
        for end, value in zip(("least", "most"), median_interval(of_rounds), strict=True):
            results.add(broker, f"{name}_{end}", value)


def costs(p99s_ms: dict[str, list[float]], kind: str) -> list[float]:
    """By how many percent each round's block is above its quiet one."""
    return [part * 100 for part in changes(p99s_ms[_ALONE], p99s_ms[kind])]


def is_enough(p99s_ms: dict[str, list[float]], plan: Plan) -> bool:
    """Return whether no further round is needed, or wanted."""
    scrapes = len(p99s_ms[_SCRAPED]) * BLOCK_SCRAPES
    if not plan.scrapes <= scrapes < plan.scrapes_most:
        return scrapes >= plan.scrapes_most
    least, most = median_interval(costs(p99s_ms, _SCRAPED))
    return most - least <= WIDTH_MAX_PERCENT


def _rounds(port: int, control: int, plan: Plan) -> dict[str, list[float]]:
    """Return the p99s in ms of each kind's blocks, after a round that warms everything up."""
    connection = wire.Connection(port)
    asking = socket.create_connection(("127.0.0.1", control), START_PATIENCE_S)
    try:
        for number in range(TOPICS):
            wire.create_topic(connection, f"{_TOPIC}-{number}")
        frame = wire.produce_frame(f"{_TOPIC}-0", wire.one_record_batch(b"x" * VALUE_BYTES))
        requests = Stream(connection.socket, frame, kafka_size)
        scrapes = {name: _scrapes(asking, path) for name, path in _PATHS.items()}
        p99s_ms: dict[str, list[float]] = {name: [] for name in _PATHS}
        number = -1
        while number < 0 or not is_enough(p99s_ms, plan):
            for name in random.Random(number).sample(list(_PATHS), len(_PATHS)):
                _block(requests, scrapes[name], number, is_quiet=name == _ALONE)
                if number >= 0:
                    p99 = statistics.quantiles(requests.taken_s, n=100)[98]
                    p99s_ms[name].append(p99 * 1000)
            number += 1
        return p99s_ms
    finally:
        connection.close()
        asking.close()


def _scrapes(asking: socket.socket, path: str) -> Stream:
    get = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    return Stream(asking, get, http_size, in_flight=1)


def _block(requests: Stream, scrapes: Stream, number: int, *, is_quiet: bool) -> None:
    """Send a block of requests and scrapes, at times that hang on its number alone. Raises RowError
    for a wrong answer.
    """
    requests.plan(spread(BLOCK_REQUESTS, REQUESTS_PER_S, seed=number))
    scrapes.plan(() if is_quiet else spread(BLOCK_SCRAPES, SCRAPES_PER_S, seed=number))
    run([requests, scrapes])
    for answer in requests.answers:
        error, _ = wire.produce_answer(answer[8:], f"{_TOPIC}-0")
        if error:
            raise RowError(f"Produce answered error {error}")
    for answer in scrapes.answers:
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RowError(f"the control API answered {answer[:50]!r}")
