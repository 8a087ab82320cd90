"""Rows `retention` and `compaction`: what a producer feels of gigabytes that are deleted or
compacted beside it (KAFKA-4614 is the tale of what happens otherwise).

A producer sends one small batch after the other, one in flight; its 99th percentile while the
broker cleans another topic is divided by the one before.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import scale_wire, wire
from benchmarks.rows.scale_session import ScaleSession, retrying
from benchmarks.rows.session import RowError

SETTINGS = {
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.backoff.ms": "500",
}
"""So that the work begins when it is asked for. Both brokers get them."""
DATA, PROBE = "bench-cleaned", "bench-probe"
_BATCH_RECORDS, _VALUE_BYTES = 100, 1_000
_SEGMENTS = 20
_KEYS_OF_A_BATCH = 100
_LOOK_S = 0.05
_PATIENCE_S = 600.0
_AFTER_S = 1.0


def measure_retention(session: ScaleSession) -> None:
    """Measure retention: everything but the active segment goes at once."""
    size_bytes = session.plan.deleted_bytes
    with_producer = _Producer(session)
    try:
        _fill(with_producer.connection, size_bytes, {"file.delete.delay.ms": "100"})
        quiet = with_producer.percentile(lambda: False, session.plan.quiet_s)
        scale_wire.set_topic_config(
            with_producer.connection, DATA, "retention.bytes", str(size_bytes // _SEGMENTS)
        )
        directory = session.log_directory(DATA)
        busy = with_producer.percentile(lambda: _bytes_in(directory) < size_bytes // 4, _PATIENCE_S)
    finally:
        with_producer.close()
    session.add("scale_retention_quiet", quiet)
    session.add("scale_retention_busy", busy)
    session.add("scale_retention", busy / quiet)


def measure_compaction(session: ScaleSession) -> None:
    """All records have one of a hundred keys, so next to nothing stays."""
    size_bytes = session.plan.compacted_bytes
    with_producer = _Producer(session)
    try:
        _fill(
            with_producer.connection,
            size_bytes,
            {"file.delete.delay.ms": "100", "min.cleanable.dirty.ratio": "0.01"},
            key_count=_KEYS_OF_A_BATCH,
        )
        quiet = with_producer.percentile(lambda: False, session.plan.quiet_s)
        scale_wire.set_topic_config(with_producer.connection, DATA, "cleanup.policy", "compact")
        directory = session.log_directory(DATA)
        busy = with_producer.percentile(lambda: _bytes_in(directory) < size_bytes // 4, _PATIENCE_S)
    finally:
        with_producer.close()
    session.add("scale_compaction_quiet", quiet)
    session.add("scale_compaction_busy", busy)
    session.add("scale_compaction", busy / quiet)


def _fill(
    connection: wire.Connection, size_bytes: int, configs: dict[str, str], key_count: int = 0
) -> None:
    batches = scale_wire.Batches(_BATCH_RECORDS, _VALUE_BYTES, key_count=key_count)
    wire.create_topic(
        connection, DATA, 1, {"segment.bytes": str(size_bytes // _SEGMENTS), **configs}
    )
    for _ in range(size_bytes // batches.size_bytes):
        batch = batches.at(time.time_ns() // 1_000_000)
        retrying(lambda batch=batch: scale_wire.produce(connection, DATA, 0, batch))  # type: ignore[misc]


class _Producer:
    """One batch after the other to a topic of its own."""

    def __init__(self, session: ScaleSession) -> None:
        self.connection = session.connect()
        wire.create_topic(self.connection, PROBE)
        wire.wait_for_leader(self.connection, PROBE)
        self._request = wire.produce_frame(PROBE, wire.one_record_batch(b"x" * 1000))

    def close(self) -> None:
        self.connection.close()

    def percentile(self, is_over: Callable[[], bool], duration_s: float) -> float:
        """Return the 99th of the answers' times, ms, until `is_over` (and a second more) or the
        time is.

        Raises RowError where `is_over` should have come true and did not.
        """
        times_ms = sorted(self._times_ms(is_over, duration_s))
        return times_ms[len(times_ms) * 99 // 100]

    def _times_ms(self, is_over: Callable[[], bool], duration_s: float) -> Iterator[float]:
        now = begun_at = looked_at = time.perf_counter()
        end = begun_at + duration_s
        while now < end:
            error, _ = wire.produce_answer(self.connection.ask(self._request), PROBE)
            if error:
                raise RowError(f"Produce answered error {error}")
            answered_at = time.perf_counter()
            yield (answered_at - now) * 1000
            if answered_at - looked_at > _LOOK_S and is_over():
                end = min(end, answered_at + _AFTER_S)
                looked_at = end
            elif answered_at - looked_at > _LOOK_S:
                looked_at = answered_at
            now = time.perf_counter()
        if duration_s == _PATIENCE_S and now - begun_at >= duration_s:
            raise RowError(f"the broker did not clean within {duration_s:g} s")


def _bytes_in(directory: Path) -> int:
    """Return the size of the partition's record files, including those marked deleted."""
    total = 0
    for path in directory.iterdir():
        if ".log" in path.name:
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue  # removed meanwhile
    return total
