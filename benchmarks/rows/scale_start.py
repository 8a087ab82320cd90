"""Row `start`: a start with gigabytes in a thousand partitions, after a clean stop and after
kill -9.

The data is produced over the wire, real batches all of them. Before the kill every tenth partition
gets one batch more, so that there is something behind the recovery points: what the broker then
reads until it answers shows whether it looks at more than that.
"""

import time

from benchmarks import scale_wire, wire
from benchmarks.peers import Minibroker
from benchmarks.rows.scale_session import SESSION_S, ScaleSession, retrying

TOPIC = "bench-scale"
_BATCH_RECORDS, _VALUE_BYTES = 100, 10_000


def measure(session: ScaleSession) -> None:
    """Fill, stop, start again a few times; then append a little, kill, start."""
    plan = session.plan
    batches = scale_wire.Batches(_BATCH_RECORDS, _VALUE_BYTES)
    rounds = max(plan.start_bytes // plan.start_partitions // batches.size_bytes, 1)
    _fill(session, batches, rounds)
    session.stop()
    for _ in range(plan.start_repeats):
        session.add("scale_start", session.start())
        session.add("scale_start_read", session.read_bytes() / 1e6)
        session.stop()
    session.start()
    _append(session, batches, range(0, plan.start_partitions, 10))
    session.child.kill()
    if not isinstance(session.peer, Minibroker):
        # Kafka cannot come back before ZooKeeper has forgotten the dead one; that is not counted.
        time.sleep(SESSION_S)
    session.add("scale_killed", session.start())
    session.add("scale_killed_read", session.read_bytes() / 1e6)


def _fill(session: ScaleSession, batches: scale_wire.Batches, rounds: int) -> None:
    connection = session.connect()
    try:
        wire.create_topic(connection, TOPIC, session.plan.start_partitions)
    finally:
        connection.close()
    for _ in range(rounds):
        _append(session, batches, range(session.plan.start_partitions))


def _append(session: ScaleSession, batches: scale_wire.Batches, partitions: range) -> None:
    connection = session.connect()
    try:
        for partition in partitions:
            batch = batches.at(time.time_ns() // 1_000_000)
            retrying(
                lambda partition=partition, batch=batch: scale_wire.produce(  # type: ignore[misc]
                    connection, TOPIC, partition, batch
                )
            )
    finally:
        connection.close()
