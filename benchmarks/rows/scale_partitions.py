"""Row `partitions`: thousands of empty partitions. How fast they are made, what they weigh, and
whether anybody else notices them.
"""

import time

from benchmarks import scale_wire, wire
from benchmarks.rows import raw
from benchmarks.rows.scale_session import ScaleSession, retrying

_TOPICS = 10
_IN_FLIGHT = 5
_ROUNDS = 5


def measure(session: ScaleSession) -> None:
    """Measure the raw rate with one partition, the partitions, the raw rate again."""
    plan = session.plan
    connection = session.connect()
    try:
        wire.create_topic(connection, raw.TOPIC)
        wire.wait_for_leader(connection, raw.TOPIC)
        client = raw.RawClient(connection, raw.TOPIC, wire.one_record_batch(b"x" * 100))
        client.run(_IN_FLIGHT, plan.raw_s)
        alone = _best_rate(client, plan.raw_s)
        memory_before, files_before = session.child.resident_bytes(), session.open_file_count()
        begun_at = time.perf_counter()
        _create(connection, plan.empty_partitions)
        session.add("scale_create", plan.empty_partitions / (time.perf_counter() - begun_at))
        crowded = _best_rate(client, plan.raw_s)
        grown = session.child.resident_bytes() - memory_before
        session.add("scale_idle_bytes", grown / plan.empty_partitions)
        session.add("scale_files", session.open_file_count() - files_before)
        session.add("scale_raw", crowded / alone)
    finally:
        connection.close()


def _create(connection: wire.Connection, count: int) -> None:
    """In topics of equal size, each waited for until its last partition takes a record."""
    each = count // _TOPICS
    batch = wire.one_record_batch(b"leader?")
    for index in range(_TOPICS):
        name = f"bench-empty-{index}"
        wire.create_topic(connection, name, each)
        retrying(
            lambda name=name: scale_wire.produce(  # type: ignore[misc]
                connection, name, each - 1, batch
            )
        )


def _best_rate(client: raw.RawClient, duration_s: float) -> float:
    """Return the best of several bursts: what disturbs one is not the number of partitions."""
    return max(client.run(_IN_FLIGHT, duration_s).requests_per_s for _ in range(_ROUNDS))
