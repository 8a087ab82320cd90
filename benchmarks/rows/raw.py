"""Row `raw`: Produce requests per second over one connection, a fixed number in flight, with one
record for one partition and for each of several.

The client must not be what is measured: the frames are built before the clock starts, as many as
there is room for go out with one call, answers are only counted (all have one size) and checked
when the clock has stopped.
"""

import math
import struct
import time
from typing import NamedTuple

from benchmarks import wire
from benchmarks.metrics import IN_FLIGHT, RAW_PARTITIONS
from benchmarks.rows.session import RowError, Session

TOPIC = "bench-raw"
_RING = 4096
_READ_BYTES = 1 << 16
_MAX_ANSWER_BYTES = 1 << 28
_CORRELATION_POSITION = 8


class Burst(NamedTuple):
    """The result of a stretch of requests; `client_share` is the client's part of a core."""

    requests_per_s: float
    client_share: float


def measure(session: Session) -> None:
    """Warm up, then every depth in turn, `repeats` times over; so for one partition and several."""
    connection = wire.Connection(session.port)
    try:
        _measure_topic(session, connection, TOPIC, 1, "raw")
        for partitions in RAW_PARTITIONS:
            topic = f"{TOPIC}-{partitions}"
            _measure_topic(session, connection, topic, partitions, f"raw_to_{partitions}")
    finally:
        connection.close()


def _measure_topic(
    session: Session, connection: wire.Connection, topic: str, partitions: int, name: str
) -> None:
    wire.create_topic(connection, topic, partitions=partitions)
    wire.wait_for_leader(connection, topic, partitions=partitions)
    batch = wire.one_record_batch(b"x" * 100)
    client = RawClient(connection, topic, batch, partitions=partitions)
    client.run(max(IN_FLIGHT), session.plan.warm_up_s)
    client.run(1, session.plan.warm_up_s / 2)
    for _ in range(session.plan.repeats):
        for in_flight in IN_FLIGHT:
            burst = client.run(in_flight, session.plan.raw_s)
            session.add(f"{name}_{in_flight}", burst.requests_per_s)
            session.add(f"{name}_{in_flight}_client_share", burst.client_share)
    wire.delete_topic(connection, topic)


class RawClient:
    """Sends one and the same batch again and again, each time under another correlation id, to the
    first `partitions` of a topic."""

    def __init__(
        self, connection: wire.Connection, topic: str, batch: bytes, *, partitions: int = 1
    ) -> None:
        self._socket = connection.socket
        self._topic = topic
        self._partitions = partitions
        template = bytearray(wire.produce_frame(topic, batch, partitions=partitions))
        self._frame_bytes = len(template)
        ring = bytearray()
        for correlation_id in range(_RING):
            struct.pack_into(">i", template, _CORRELATION_POSITION, correlation_id)
            ring += template
        # A burst may begin anywhere in the ring, so its first frames stand at the end once more.
        self._frames = memoryview(ring + ring[: max(IN_FLIGHT) * self._frame_bytes])
        body = connection.ask(bytes(template))
        answers = wire.produce_answers(body, topic, partitions)
        for error, _ in answers:
            if error:
                raise RowError(f"Produce answered error {error}")
        self._next_offsets = [offset + 1 for _, offset in answers]
        self._answer_bytes = len(body) + 8
        self._answers = memoryview(bytearray(_MAX_ANSWER_BYTES))

    def run(self, in_flight: int, duration_s: float) -> Burst:
        """Keep `in_flight` requests on their way for `duration_s`; RowError on a wrong answer."""
        cpu_before, begun_at = time.process_time(), time.perf_counter()
        count = self._exchange(in_flight, begun_at + duration_s)
        elapsed_s = time.perf_counter() - begun_at
        client_share = (time.process_time() - cpu_before) / elapsed_s
        self._check(count)
        return Burst(count / elapsed_s, client_share)

    def exchange(self, in_flight: int, count: int) -> int:
        """Send exactly `count` requests, `in_flight` at once, and return `count`; RowError on a
        wrong answer."""
        self._check(self._exchange(in_flight, math.inf, count))
        return count

    def _exchange(self, in_flight: int, deadline: float, most: float = math.inf) -> int:
        """Send until `deadline` or `most` requests, receive everything; returns the number of
        requests, `in_flight` at least."""
        receive, answer_bytes = self._socket.recv_into, self._answer_bytes
        answers, limit = self._answers, len(self._answers) - _READ_BYTES
        count, answered, position = in_flight, 0, 0
        self._send(0, in_flight)
        while answered < count:
            got = receive(answers[position : position + _READ_BYTES])
            if not got:
                raise RowError("the broker closed the connection")
            position += got
            fresh = position // answer_bytes - answered
            answered += fresh
            if fresh and count < most and time.perf_counter() < deadline and position < limit:
                fresh = int(min(fresh, most - count))
                self._send(count, fresh)
                count += fresh
        return count

    def _send(self, first: int, count: int) -> None:
        start = first % _RING * self._frame_bytes
        self._socket.sendall(self._frames[start : start + count * self._frame_bytes])

    def _check(self, count: int) -> None:
        """Check that answers have their correlation ids, no error and the next offsets."""
        position = 8 + wire.produce_answer_position(self._topic, self._partitions)
        between = wire.PRODUCE_STRIDE - 10
        rest = self._answer_bytes - position - 10 - (self._partitions - 1) * wire.PRODUCE_STRIDE
        more = f"{between}xhq" * (self._partitions - 1)
        form = struct.Struct(f">ii{position - 8}xhq{more}{rest}x")
        size_bytes = self._answer_bytes - 4
        received = self._answers[: count * self._answer_bytes]
        for number, answer in enumerate(form.iter_unpack(received)):
            results = [part for offset in self._next_offsets for part in (0, offset + number)]
            expected = (size_bytes, number % _RING, *results)
            if answer != expected:
                raise RowError(f"answer {number} is {answer}, expected {expected}")
        self._next_offsets = [offset + count for offset in self._next_offsets]
