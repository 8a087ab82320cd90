"""Row `topics`: creating topics one after the other over one connection."""

import statistics
import time

from benchmarks import wire
from benchmarks.rows.session import Session

_WARM_UP = 5


def measure(session: Session) -> None:
    """Measure the median time of `plan.topics` CreateTopics requests with one new topic each."""
    connection = wire.Connection(session.port)
    try:
        for index in range(_WARM_UP):
            wire.create_topic(connection, f"bench-warm-{index}")
        times_ms = []
        for index in range(session.plan.topics):
            begun_at = time.perf_counter()
            wire.create_topic(connection, f"bench-created-{index}")
            times_ms.append((time.perf_counter() - begun_at) * 1000)
    finally:
        connection.close()
    session.add("create_topic", statistics.median(times_ms))
