"""Rows `latency` and `group`: what a single record takes, with librdkafka on the client's side."""

import statistics
import time
from collections.abc import Callable
from itertools import count

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from benchmarks import wire
from benchmarks.rows.session import RowError, Session

TOPIC = "bench-latency"
_PATIENCE_S = 10.0
_VALUE = b"x" * 100


def measure(session: Session) -> None:
    """Round trip of a produced record, and the time until a waiting consumer has it."""
    _create(session, TOPIC)
    producer = _producer(session)
    _measure_times(session, "round_trip", lambda: _deliver(producer))
    consumer = _consumer(session, "bench-assigned")
    try:
        consumer.assign([TopicPartition(TOPIC, 0, _end_of_log(session))])
        send = _sender(producer)
        _measure_times(session, "end_to_end", lambda: send(consumer))
    finally:
        consumer.close()
        producer.flush(_PATIENCE_S)


def measure_groups(session: Session) -> None:
    """From creating a consumer of a new group to its first record; the first group warms up."""
    if not session.has_groups:
        session.results.note(session.broker, "group", "not yet: it has no consumer groups")
        return
    topic = "bench-groups"
    _create(session, topic)
    times_ms = []
    for index in range(session.plan.groups + 1):
        begun_at = time.perf_counter()
        consumer = _consumer(session, f"bench-group-{index}-{time.monotonic_ns()}")
        try:
            consumer.subscribe([topic])
            _next_record(consumer)
            times_ms.append((time.perf_counter() - begun_at) * 1000)
        finally:
            consumer.close()
    session.add("new_group", statistics.median(times_ms[1:]))


def percentile(times: list[float], share: float) -> float:
    """Return the smallest of `times` that at least `share` of them do not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _measure_times(session: Session, name: str, action: Callable[[], None]) -> None:
    """Warm up, then the percentiles of `action`'s time, once for each repeat."""
    for _ in range(session.plan.latency_warm_up):
        action()
    for _ in range(session.plan.repeats):
        times_ms = []
        for _ in range(session.plan.latency_samples):
            begun_at = time.perf_counter()
            action()
            times_ms.append((time.perf_counter() - begun_at) * 1000)
        session.add(f"{name}_p50", percentile(times_ms, 0.50))
        session.add(f"{name}_p99", percentile(times_ms, 0.99))


def _deliver(producer: Producer) -> None:
    """Produce one record and wait until it is acknowledged."""
    outcome: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        outcome.append(error)

    producer.produce(TOPIC, _VALUE, on_delivery=delivered)
    deadline = time.perf_counter() + _PATIENCE_S
    while not outcome:
        producer.poll(1.0)
        if time.perf_counter() > deadline:
            raise RowError("a record was not acknowledged in time")
    if outcome[0] is not None:
        raise RowError(f"produce failed: {outcome[0]}")


def _sender(producer: Producer) -> Callable[[Consumer], None]:
    """Return a function that produces a numbered record and waits until the consumer has it."""
    numbers = count()

    def send(consumer: Consumer) -> None:
        value = b"%d" % next(numbers)
        producer.produce(TOPIC, value)
        if (got := _next_record(consumer)) != value:
            raise RowError(f"consumed {got!r}, expected {value!r}")
        producer.poll(0)

    return send


def _next_record(consumer: Consumer) -> bytes:
    deadline = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return message.value() or b""
    raise RowError("a record did not arrive in time")


def _create(session: Session, topic: str) -> None:
    """Create the topic with one record in it; it may be there from an earlier row."""
    connection = wire.Connection(session.port)
    try:
        wire.create_topic(connection, topic)
        wire.wait_for_leader(connection, topic)
    finally:
        connection.close()


def _end_of_log(session: Session) -> int:
    connection = wire.Connection(session.port)
    try:
        answer = connection.ask(wire.produce_frame(TOPIC, wire.one_record_batch(b"end")))
        return wire.produce_answer(answer, TOPIC)[1] + 1
    finally:
        connection.close()


def _producer(session: Session) -> Producer:
    return Producer({**_common(session), "acks": "all", "linger.ms": 0})


def _consumer(session: Session, group: str) -> Consumer:
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    return Consumer({**_common(session), **settings})


def _common(session: Session) -> dict[str, str | int | bool]:
    return {
        "bootstrap.servers": session.bootstrap,
        "socket.nagle.disable": True,
        "enable.metrics.push": False,
        "log_level": 3,
    }
