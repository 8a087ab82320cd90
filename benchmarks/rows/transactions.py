"""Row `transactions`: ProducerPerformance committing every 100 ms, and transactions of one record.

The first is the load of an exactly-once job, the second shows what one transaction costs: the way
there and back of begin, one record and commit, with librdkafka.
"""

import statistics
import time

import confluent_kafka

from benchmarks import wire
from benchmarks.rows.load import parse_producer, run_tool, tool_command
from benchmarks.rows.session import Session

RECORD_BYTES = 1_000
DURATION_MS = 100
_TIMEOUT_S = 30.0
_TOPIC = "bench-transactions"


def measure(session: Session) -> None:
    """Both, on a topic of their own."""
    connection = wire.Connection(session.port)
    try:
        wire.create_topic(connection, _TOPIC)
    finally:
        connection.close()
    count = session.plan.load_counts[1]
    arguments = f"--topic {_TOPIC} --num-records {count} --record-size {RECORD_BYTES}"
    arguments += f" --throughput -1 --transaction-duration-ms {DURATION_MS}"
    arguments += f" --bootstrap-server {session.bootstrap}"
    command = tool_command("ProducerPerformance", arguments)
    output, cpu_s = run_tool(session, command)
    session.add("transactions", parse_producer(output))
    session.add("transactions_cpu", cpu_s / (RECORD_BYTES * count / 1e9))
    session.add("transaction_p50", statistics.median(_single(session)))


def _single(session: Session) -> list[float]:
    """Milliseconds of each transaction."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": session.bootstrap,
            "transactional.id": "bench",
            "linger.ms": 0,
        }
    )
    producer.init_transactions(_TIMEOUT_S)
    samples = []
    for number in range(session.plan.latency_samples // 10 + 20):
        begun_at = time.perf_counter()
        producer.begin_transaction()
        producer.produce(_TOPIC, b"x" * 100, partition=0)
        producer.commit_transaction(_TIMEOUT_S)
        if number >= 20:  # connections are open, code is warm
            samples.append((time.perf_counter() - begun_at) * 1000)
    return samples
