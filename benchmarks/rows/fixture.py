"""Row `fixture`: what a test waits for a broker of its own, in its process.

A start ends when clients can connect. A reset is what stands between two tests that share a broker;
the one before has made a topic and written to it.
"""

import time
from pathlib import Path

from benchmarks.metrics import SUBJECT
from benchmarks.peers import Peer
from benchmarks.plan import Plan
from benchmarks.results import Results
from minibroker.testing import Broker


def measure(peer: Peer, scratch: Path, results: Results, plan: Plan) -> None:
    """Brokers after each other; the first loads what the import had left out."""
    del scratch  # these keep their files in memory
    if peer.name != SUBJECT:
        results.note(peer.name, "fixture", "not to be had: it is no part of a process in Python")
        return
    for number in range(plan.fixtures + 1):
        start_ms, reset_ms = _one()
        if number == 0:
            results.add(peer.name, "fixture_first", start_ms)
        else:
            results.add(peer.name, "fixture_start", start_ms)
            results.add(peer.name, "fixture_reset", reset_ms)


def _one() -> tuple[float, float]:
    """Return the milliseconds to start and to reset one broker."""
    begun_at = time.perf_counter()
    with Broker() as broker:
        started_at = time.perf_counter()
        broker.create_topic("orders")
        broker.produce("orders", b"value")
        used_at = time.perf_counter()
        broker.reset()
        reset_at = time.perf_counter()
    return (started_at - begun_at) * 1000, (reset_at - used_at) * 1000
