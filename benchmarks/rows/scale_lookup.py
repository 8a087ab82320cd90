"""Row `lookup`: the offset of a time (ListOffsets) in a partition of a thousand segments.

The times asked for are spread evenly over the whole log. `scale_lookup_tenth` is the same in the
first tenth of the log, before the rest is written: growing with the logarithm of the entries, the
two hardly differ.
"""

import random
import statistics
import time

from benchmarks import scale_wire, wire
from benchmarks.rows.scale_session import ScaleSession, retrying
from benchmarks.rows.session import RowError

TOPIC = "bench-lookup"
_BATCH_RECORDS, _VALUE_BYTES = 100, 10
_FIRST_MS = 1_600_000_000_000


def measure(session: ScaleSession) -> None:
    """Fill a tenth, look up; fill the rest, look up."""
    plan = session.plan
    batches = scale_wire.Batches(_BATCH_RECORDS, _VALUE_BYTES)
    batch_count = plan.lookup_records // _BATCH_RECORDS
    segment_bytes = batch_count // plan.lookup_segments * batches.size_bytes
    connection = session.connect()
    try:
        wire.create_topic(
            connection,
            TOPIC,
            1,
            {
                "segment.bytes": str(segment_bytes),
                "retention.ms": "-1",
                "index.interval.bytes": "4096",
            },
        )
        retrying(lambda: scale_wire.produce(connection, TOPIC, 0, batches.at(_FIRST_MS)))
        _append(connection, batches, range(1, batch_count // 10))
        session.add("scale_lookup_tenth", _median_ms(connection, batch_count // 10, plan.lookups))
        _append(connection, batches, range(batch_count // 10, batch_count))
        session.add("scale_lookup", _median_ms(connection, batch_count, plan.lookups))
    finally:
        connection.close()


def _append(connection: wire.Connection, batches: scale_wire.Batches, numbers: range) -> None:
    for number in numbers:
        scale_wire.produce(connection, TOPIC, 0, batches.at(_FIRST_MS + number * _BATCH_RECORDS))


def _median_ms(connection: wire.Connection, batch_count: int, lookups: int) -> float:
    """Return the median. Every record has its own millisecond, so the answer is known. Raises
    RowError.
    """
    chance = random.Random(1)
    last = batch_count * _BATCH_RECORDS
    offsets = [chance.randrange(last) for _ in range(lookups)]
    for offset in offsets:  # warm
        scale_wire.offset_at(connection, TOPIC, _FIRST_MS + offset)
    times_ms = []
    for offset in offsets:
        begun_at = time.perf_counter()
        answer = scale_wire.offset_at(connection, TOPIC, _FIRST_MS + offset)
        times_ms.append((time.perf_counter() - begun_at) * 1000)
        if answer != (_FIRST_MS + offset, offset):
            raise RowError(f"time {_FIRST_MS + offset} was found at {answer}")
    return statistics.median(times_ms)
