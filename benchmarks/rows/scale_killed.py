"""Row `killed`: a start after kill -9 with many small batches in one log.

One client produces records in batches of ten, many requests in flight, and the broker is killed
when the last is answered. Then it starts again. The clock stops when Metadata is answered, the end
offset is right and the last batch can be fetched. Afterwards every batch is fetched and counted.

A recovery that looks at every batch takes seconds here. One that begins at a recovery point near
the end does not.
"""

import struct
import time

from benchmarks import scale_wire, wire
from benchmarks.peers import Minibroker
from benchmarks.rows.scale_session import SESSION_S, ScaleSession, retrying
from benchmarks.rows.session import RowError
from minibroker.kafka.records.batch import iterate_headers

TOPIC = "bench-killed"
BATCH_RECORDS, VALUE_BYTES = 10, 100
_IN_FLIGHT = 50
_FETCH_BYTES = 4 << 20
_END = -1


def measure(session: ScaleSession) -> None:
    """Fill, kill, start, look."""
    count = session.plan.killed_records
    _fill(session, count // BATCH_RECORDS)
    session.child.kill()
    if not isinstance(session.peer, Minibroker):
        time.sleep(SESSION_S)
    answered_s = session.start()
    connection = session.connect()
    try:
        retrying(lambda: _look_at_end(connection, count))
        right_s = time.perf_counter() - session.child.started_at
        session.add("scale_killed_cpu", session.child.cpu_seconds())
        session.add("scale_killed_many_read", session.read_bytes() / 1e6)
        _count_all(connection, count)
    finally:
        connection.close()
    session.add("scale_killed_answer", answered_s)
    session.add("scale_killed_right", right_s)


def _fill(session: ScaleSession, batch_count: int) -> None:
    """Produce so many batches. Raises WireError."""
    connection = session.connect()
    try:
        wire.create_topic(connection, TOPIC, 1)
        batch = scale_wire.Batches(BATCH_RECORDS, VALUE_BYTES).at(time.time_ns() // 1_000_000)
        retrying(lambda: scale_wire.produce(connection, TOPIC, 0, batch))
        request = wire.produce_frame(TOPIC, batch)
        wire.pipeline(connection, TOPIC, request, batch_count - 1, _IN_FLIGHT)
    finally:
        connection.close()


def _look_at_end(connection: wire.Connection, count: int) -> None:
    """Ask where the log ends, and for its last batch. Raises RowError, WireError."""
    _, end = scale_wire.offset_at(connection, TOPIC, _END)
    if end != count:
        raise RowError(f"the log ends at {end}, {count} records were acknowledged")
    last = scale_wire.fetch(connection, TOPIC, 0, count - BATCH_RECORDS, _FETCH_BYTES)
    (base_offset,) = struct.unpack_from(">q", last)
    if base_offset != count - BATCH_RECORDS:
        raise RowError(f"the last batch begins at {base_offset}")


def _count_all(connection: wire.Connection, count: int) -> None:
    """Fetch every batch. Raises RowError where an offset is missing or there twice."""
    offset = 0
    while offset < count:
        begun_at = offset
        for _, header in iterate_headers(
            scale_wire.fetch(connection, TOPIC, 0, offset, _FETCH_BYTES)
        ):
            if header.base_offset != offset:
                raise RowError(f"a batch begins at {header.base_offset}, expected {offset}")
            offset = header.last_offset + 1
        if offset == begun_at:
            raise RowError(f"nothing is read at {offset} of {count}")
