"""Records the golden files of `tests/golden/records`: the files of Kafka 3.9.1 for real producers.

    python -m tests.golden.record_records

Starts ZooKeeper and Kafka from `build/jars`, lets every client write the same records with every
codec it has, stops Kafka cleanly and copies the files it left. Needs Java; takes about a minute.
Run it only to add a case: timestamps and producer ids change with every run.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from tests.golden.cases import RECORDS, TIMESTAMP_MS
from tests.support import java
from tests.support.peers import KafkaPeer, ZooKeeper

TARGET = Path(__file__).parent / "records"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KAFKA_PYTHON_CODECS = ("none", "gzip")
"""Codecs of kafka-python; the rest needs further libraries."""


def main() -> None:
    """Record everything."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        zookeeper = ZooKeeper(directory / "zookeeper")
        kafka = KafkaPeer("3.9.1", directory / "kafka", zookeeper=zookeeper.connect)
        try:
            zookeeper.start()
            kafka.start()
            topics = _produce(kafka.address)
            kafka.stop()
            for topic in topics:
                _copy(kafka.log_dir / f"{topic}-0", topic)
        finally:
            kafka.kill()
            zookeeper.stop()


def _produce(address: str) -> list[str]:
    """Produce with every client and every codec; return the topics."""
    topics = [
        f"{client}-{codec}" for client in ("librdkafka", "aiokafka", "java") for codec in CODECS
    ]
    topics += [f"kafka-python-{codec}" for codec in KAFKA_PYTHON_CODECS]
    topics += ["librdkafka-several", "librdkafka-transactions"]
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(60)
    for codec in CODECS:
        _librdkafka(address, codec)
        asyncio.run(_aiokafka(address, codec))
        _java(address, codec)
    for codec in KAFKA_PYTHON_CODECS:
        _kafka_python(address, codec)
    _several_producers(address)
    _transactions(address)
    return topics


def _librdkafka(address: str, codec: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 500,
        }
    )
    for key, value, headers in RECORDS:
        producer.produce(
            f"librdkafka-{codec}", value, key, headers=list(headers), timestamp=TIMESTAMP_MS
        )
    producer.flush(60)


async def _aiokafka(address: str, codec: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=True,
        linger_ms=500,
    )
    await producer.start()
    batches = [
        await producer.send(
            f"aiokafka-{codec}", value, key, headers=list(headers), timestamp_ms=TIMESTAMP_MS
        )
        for key, value, headers in RECORDS
    ]
    await asyncio.gather(*batches)
    await producer.stop()


def _kafka_python(address: str, codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=address,
        compression_type=None if codec == "none" else codec,
        linger_ms=500,
    )
    for key, value, headers in RECORDS:
        producer.send(
            f"kafka-python-{codec}",
            value,
            key,
            headers=[(name, data or b"") for name, data in headers],
            timestamp_ms=TIMESTAMP_MS,
        )
    producer.flush(60)
    producer.close()


def _java(address: str, codec: str) -> None:
    """Produce with the console producer: text only, no null headers, timestamps of its own."""
    lines = [
        "\t".join(
            (
                ",".join(f"{name}:{(data or b'').decode()}" for name, data in headers) or "NULL",
                "NULL" if key is None else key.decode(),
                "NULL" if value is None else value.decode(),
            )
        )
        for key, value, headers in RECORDS
    ]
    java.run_java(
        java.KAFKA_39,
        "kafka.tools.ConsoleProducer",
        "--bootstrap-server",
        address,
        "--topic",
        f"java-{codec}",
        "--compression-codec",
        codec,
        "--timeout",
        "500",
        "--property",
        "parse.key=true",
        "--property",
        "parse.headers=true",
        "--property",
        "null.marker=NULL",
        stdin="\n".join(lines) + "\n",
    )


def _transactions(address: str) -> None:
    """Write one committed transaction, one aborted, one left open.

    Markers have the wall clock's time, and so have the records: else Kafka would roll the segment
    between them.
    """
    producer = Producer({"bootstrap.servers": address, "transactional.id": "golden"})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction, None):
        producer.begin_transaction()
        producer.produce("librdkafka-transactions", b"in doubt", b"key")
        producer.flush(60)
        if end is not None:
            end(60)


def _several_producers(address: str) -> None:
    """Write with three producers into one partition, the second one with two batches."""
    producers = [
        Producer({"bootstrap.servers": address, "enable.idempotence": True}) for _ in range(3)
    ]
    for index in (0, 1, 2, 1):
        producers[index].produce("librdkafka-several", b"value", timestamp=TIMESTAMP_MS)
        producers[index].flush(60)


def _copy(partition: Path, topic: str) -> None:
    shutil.copy(partition / f"{0:020d}.log", TARGET / f"{topic}.log")
    shutil.copy(partition / "leader-epoch-checkpoint", TARGET / f"{topic}.epochs")
    for snapshot in partition.glob("*.snapshot"):
        shutil.copy(snapshot, TARGET / f"{topic}.snapshot")


if __name__ == "__main__":
    main()
