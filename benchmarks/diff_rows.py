"""The rows by the clock of a comparison of commits: each measures one broker, or one cluster.

A row starts the broker of a side in an empty directory and gives it a load. `diff` runs the rows
for both sides in turns.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import replicated, scale_wire, wire
from benchmarks.metrics import SPREAD_LOADS
from benchmarks.plan import QUICK
from benchmarks.results import Results
from benchmarks.rows import latency, load, topics
from benchmarks.rows.raw import RawClient
from benchmarks.rows.session import Session
from benchmarks.sides import (
    START_PATIENCE_S,
    TOPIC,
    Measured,
    Side,
    connected,
    fetch_all,
    started,
)
from tests.support import peers
from tests.support.processes import free_port

BURST_S: Final = 1.5
BATCH_RECORDS: Final = 16
FILL_BYTES: Final = 64 << 20
FETCH_PASSES: Final = 16
KILLED_BATCHES: Final = 200_000
"""Batches of one record of 100 bytes that a killed broker leaves: some 34 MB."""
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOADS: Final = ((100, 1_000_000), (1_000, 200_000), (10_000, 20_000))
"""Bytes and number of the records that Kafka's tools produce to one partition and consume."""
SPREAD_BYTES: Final = 100_000_000
CODECS: Final = ("lz4", "zstd")
COMPRESSED_LOAD: Final = (1_000, 300_000)
REPLICATED_RECORDS: Final = 150_000
MANY_TOPICS, MANY_PARTITIONS = 10, 1_000
LATENCIES: Final = QUICK._replace(latency_warm_up=1_000, latency_samples=2_000, topics=100)


def measure_start(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds to the first answer, and MB of an idle broker."""
    port = free_port()
    child = side.launch(directory, port)
    try:
        answered_at = wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        return {
            "start, CPU s": child.cpu_seconds(),
            "start, s": answered_at - child.started_at,
            "idle memory, MB": child.resident_bytes() / 1e6,
        }
    finally:
        child.stop()


def measure_raw(side: Side, directory: Path) -> Measured:
    """Return CPU and time of a Produce request with one record, 1, 5 and 50 in flight."""
    figures: Measured = {}
    with started(side, directory) as broker, connected(broker) as connection:
        client = RawClient(connection, TOPIC, wire.one_record_batch(b"x" * 100))
        client.run(50, BURST_S / 2)
        for in_flight in (1, 5, 50):
            before_s = broker.child.cpu_seconds()
            burst = client.run(in_flight, BURST_S)
            spent_s = broker.child.cpu_seconds() - before_s
            requests = burst.requests_per_s * BURST_S
            figures[f"raw Produce, {in_flight} in flight, CPU µs"] = spent_s / requests * 1e6
            figures[f"raw Produce, {in_flight} in flight, µs"] = 1e6 / burst.requests_per_s
    return figures


def measure_batches(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB in batches of 16 records of 1 KB: produced, then fetched."""
    with started(side, directory) as broker, connected(broker) as connection:
        batch = scale_wire.Batches(BATCH_RECORDS, 1000).at(time.time_ns() // 1_000_000)
        frame = wire.produce_frame(TOPIC, batch)
        count = FILL_BYTES // len(batch)
        before_s = broker.child.cpu_seconds()
        wire.pipeline(connection, TOPIC, frame, count)
        produced_s = broker.child.cpu_seconds() - before_s
        gigabytes = count * len(batch) / 1e9
        before_s = broker.child.cpu_seconds()
        for _ in range(FETCH_PASSES):
            fetch_all(connection, count * BATCH_RECORDS)
        fetched_s = (broker.child.cpu_seconds() - before_s) / FETCH_PASSES
    return {
        "produced, 1 KB, CPU s/GB": produced_s / gigabytes,
        "fetched, 1 MB, CPU s/GB": fetched_s / gigabytes,
    }


def measure_killed(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds of a start after kill -9 with many small batches.

    The recovery point is removed, so the start looks at every batch. Where the last sync stood at
    the kill depends on the moment, and a second of it outweighs what is compared.
    """
    with started(side, directory) as broker, connected(broker) as connection:
        frame = wire.produce_frame(TOPIC, wire.one_record_batch(b"x" * 100))
        wire.pipeline(connection, TOPIC, frame, KILLED_BATCHES)
        broker.child.kill()
    (directory / "data" / RECOVERY_POINTS).unlink(missing_ok=True)
    for snapshot in directory.glob(f"data/{TOPIC}-0/*.snapshot"):
        snapshot.unlink()
    figures = measure_start(side, directory)
    return {
        "after a kill, CPU s": figures["start, CPU s"],
        "after a kill, s": figures["start, s"],
    }


def measure_loads(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB that Kafka's producer writes, and its consumer reads."""
    labels: dict[str, str] = {}
    with _session(side, directory) as session:
        for size_bytes, count in LOADS:
            topic = f"{TOPIC}-{size_bytes}"
            wire.create_topic_at(session.port, topic)
            load.produce(session, topic, size_bytes, count, name=str(size_bytes))
            load.consume_assigned(session, topic, size_bytes, count)
            labels |= {
                f"{metric}_{size_bytes}": f"{way} by Kafka's client, {size_bytes:,} B, CPU s/GB"
                for way, metric in (("produced", "produce_cpu"), ("consumed", "assigned_cpu"))
            }
    return _figures(session, labels)


def measure_partitions(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB that Kafka's producer writes to topics of many partitions."""
    labels: dict[str, str] = {}
    with _session(side, directory) as session:
        for partitions, size_bytes in SPREAD_LOADS:
            topic, count = f"{TOPIC}-to-{partitions}", SPREAD_BYTES // size_bytes
            wire.create_topic_at(session.port, topic, partitions=partitions)
            load.produce(session, topic, size_bytes, count, name=topic)
            labels[f"produce_cpu_{topic}"] = f"{size_bytes} B to {partitions} partitions, CPU s/GB"
    return _figures(session, labels)


def measure_compressed(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB of records of 1 KB, before compression, for each codec."""
    labels: dict[str, str] = {}
    with _session(side, directory) as session:
        for codec in CODECS:
            topic = f"{TOPIC}-{codec}"
            wire.create_topic_at(session.port, topic)
            load.produce(session, topic, *COMPRESSED_LOAD, name=codec, codec=codec)
            labels[f"produce_cpu_{codec}"] = f"{codec}, 1 KB, CPU s/GB"
    return _figures(session, labels)


def measure_latency(side: Side, directory: Path) -> Measured:
    """Return the times of single records: acknowledged, and seen by a waiting consumer."""
    with _session(side, directory) as session:
        latency.measure(session)
    labels = {
        "end_to_end_p50": "produce to consume, p50, ms",
        "round_trip_p50": "acks=all, p50, ms",
        "round_trip_p99": "acks=all, p99, ms",
    }
    return _figures(session, labels)


def measure_topics(side: Side, directory: Path) -> Measured:
    """Return the time in which a topic is made."""
    with _session(side, directory) as session:
        topics.measure(session)
    return _figures(session, {"create_topic": "create topic, p50, ms"})


def measure_many(side: Side, directory: Path) -> Measured:
    """Return seconds and CPU seconds of a start with 10,000 empty partitions."""
    with started(side, directory) as broker:
        connection = wire.Connection(broker.port, timeout_s=START_PATIENCE_S)
        for index in range(MANY_TOPICS):
            wire.create_topic(connection, f"{TOPIC}-{index}", MANY_PARTITIONS)
            wire.wait_for_leader(connection, f"{TOPIC}-{index}", timeout_s=START_PATIENCE_S)
        connection.close()
    figures = measure_start(side, directory)
    return {
        "10,000 partitions back, CPU s": figures["start, CPU s"],
        "10,000 partitions back, s": figures["start, s"],
    }


def measure_replicated(side: Side, directory: Path) -> Measured:
    """Return CPU seconds of a GB, acks=all, that three brokers keep in three copies."""
    zookeeper = peers.ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    try:
        place = directory / "cluster"
        connect = f"{zookeeper.connect}/cluster"
        cluster = replicated.ClusterOf("minibroker", place, connect, side.environment)
        try:
            cluster.start()
            cluster.create(TOPIC, replicated.PARTITIONS)
            _, cpu_s = replicated.write_records(cluster, TOPIC, REPLICATED_RECORDS)
        finally:
            cluster.stop()
    finally:
        zookeeper.stop()
    gigabytes = replicated.RECORD_BYTES * REPLICATED_RECORDS / 1e9
    return {"three brokers, acks=all, CPU s/GB": cpu_s / gigabytes}


@contextmanager
def _session(side: Side, directory: Path) -> Iterator[Session]:
    """Yield a broker of this side for a row of `benchmarks.rows`."""
    with started(side, directory) as broker:
        yield Session(
            broker=side.name,
            child=broker.child,
            port=broker.port,
            directory=directory,
            has_groups=True,
            plan=LATENCIES,
            results=Results([side.name]),
        )


def _figures(session: Session, labels: Mapping[str, str]) -> Measured:
    """Return the values of a row under their labels here."""
    return {
        label: session.results.values(metric)[session.broker] for metric, label in labels.items()
    }


ROWS: Final[dict[str, Callable[[Side, Path], Measured]]] = {
    "start": measure_start,
    "raw": measure_raw,
    "batches": measure_batches,
    "killed": measure_killed,
    "loads": measure_loads,
    "partitions": measure_partitions,
    "compressed": measure_compressed,
    "latency": measure_latency,
    "topics": measure_topics,
    "many": measure_many,
    "replicated": measure_replicated,
}
