"""The real clients of the tests, with one interface: produce values, read every value back.

Each writes `prefix0 … prefix(count-1)` to a topic with acks=all, idempotent, in any of the five
codecs, and reads a whole topic from its beginning by assigning the partitions itself (no group).
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import subprocess
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Callable

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DEADLINE_SECONDS = 180.0
POLL_SECONDS = 0.2
FLUSH_EVERY = 1000
BATCH_RECORDS = 200  # several batches, and where segments are small several of those


class Client(NamedTuple):
    """One client library or tool."""

    name: str
    produce: Callable[[str, str, str, str, int], None]
    """(address, topic, codec, prefix, count): returns when all are acknowledged."""
    consume: Callable[[str, str, int], list[str]]
    """(address, topic, count): returns at least `count` values, or those that came in time."""
    needs_java: bool = False

    @property
    def missing(self) -> str | None:
        """Return why the client cannot run here, or None."""
        if self.needs_java:
            return java.missing_java()
        if self.name == "kcat" and shutil.which("kcat") is None:
            return "kcat is not installed (Debian: apt install kcat)"
        return None


def _partitions_once_known(ask: Callable[[], list[int]]) -> list[int]:
    """Ask until the broker names partitions: a new one learns of them a bit later."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (partitions := ask()):
        assert time.monotonic() < deadline, f"no partitions after {DEADLINE_SECONDS} s"
    return partitions


# --- confluent-kafka (librdkafka) ---------------------------------------------------------------


def confluent_produce(address: str, topic: str, codec: str, prefix: str, count: int) -> None:
    """Produce with librdkafka, idempotent."""
    from confluent_kafka import Producer  # noqa: PLC0415  # heavy, and each run may use another

    failures: list[str] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": address,
            "compression.codec": codec,
            "enable.idempotence": True,
            "linger.ms": 2,
            "batch.num.messages": BATCH_RECORDS,
        }
    )
    for number in range(count):
        producer.produce(topic, key=f"k{number}", value=f"{prefix}{number}", on_delivery=delivered)
        producer.poll(0)
    remaining = producer.flush(DEADLINE_SECONDS)
    assert not remaining, f"{remaining} records were not acknowledged"
    assert not failures, failures[:3]


def confluent_consume(address: str, topic: str, count: int) -> list[str]:
    """Consume with librdkafka and assigned partitions."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition  # noqa: PLC0415

    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False}
    )
    try:
        partitions = _partitions_once_known(
            lambda: list(
                consumer.list_topics(topic, timeout=POLL_SECONDS * 50).topics[topic].partitions
            )
        )
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
        values: list[str] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            messages = consumer.consume(FLUSH_EVERY, timeout=POLL_SECONDS)
            for message in messages:
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
            if not messages and len(values) >= count:
                break
        return values
    finally:
        consumer.close()


# --- kafka-python -------------------------------------------------------------------------------


def kafka_python_produce(address: str, topic: str, codec: str, prefix: str, count: int) -> None:
    """Produce with kafka-python, idempotent."""
    producer = kafka_python().KafkaProducer(
        bootstrap_servers=address,
        compression_type=None if codec == "none" else codec,
        acks="all",
        enable_idempotence=True,
        linger_ms=2,
    )
    try:
        futures = [
            producer.send(topic, key=b"k%d" % n, value=f"{prefix}{n}".encode())
            for n in range(count)
        ]
        producer.flush(DEADLINE_SECONDS)
        for future in futures:
            future.get(DEADLINE_SECONDS)
    finally:
        producer.close()


def kafka_python_consume(address: str, topic: str, count: int) -> list[str]:
    """Consume with kafka-python, assigned partitions and no group."""
    kafka = kafka_python()
    consumer = kafka.KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    try:
        partitions = _partitions_once_known(
            lambda: list(consumer.partitions_for_topic(topic) or ())
        )
        places = [kafka.TopicPartition(topic, index) for index in partitions]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        values: list[str] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            batches = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
            values += [record.value.decode() for records in batches.values() for record in records]
            if not batches and len(values) >= count:
                break
        return values
    finally:
        consumer.close()


def kafka_python() -> Any:
    """Return the library, without its warnings about its own schemas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module("kafka")


# --- aiokafka -----------------------------------------------------------------------------------


def aiokafka_produce(address: str, topic: str, codec: str, prefix: str, count: int) -> None:
    """Produce with aiokafka, idempotent."""
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415

    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=True,
            linger_ms=2,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(topic, key=b"k%d" % n, value=f"{prefix}{n}".encode())
                for n in range(count)
            ]
            await asyncio.wait_for(asyncio.gather(*futures), DEADLINE_SECONDS)
        finally:
            await producer.stop()

    asyncio.run(produce())


def aiokafka_consume(address: str, topic: str, count: int) -> list[str]:
    """Consume with aiokafka, assigned partitions and no group."""
    from aiokafka import AIOKafkaConsumer, TopicPartition  # noqa: PLC0415

    async def consume() -> list[str]:
        consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await consumer.start()
        try:
            await consumer._client.force_metadata_update()
            await consumer._client.set_topics([topic])
            places = [
                TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic)
            ]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            values: list[str] = []
            deadline = time.monotonic() + DEADLINE_SECONDS
            while time.monotonic() < deadline:
                batches = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
                values += [r.value.decode() for records in batches.values() for r in records]
                if not batches and len(values) >= count:
                    break
            return values
        finally:
            await consumer.stop()

    return asyncio.run(consume())


# --- kcat ---------------------------------------------------------------------------------------


def kcat_produce(address: str, topic: str, codec: str, prefix: str, count: int) -> None:
    """Produce with kcat -P, one line a record, idempotent."""
    text = "".join(f"k{n}:{prefix}{n}\n" for n in range(count))
    options = ["-K:", "-X", "enable.idempotence=true", "-z", codec]
    _kcat("-P", "-b", address, "-t", topic, *options, stdin=text)


def kcat_consume(address: str, topic: str, count: int) -> list[str]:
    """Consume with kcat -C from the beginning to the end."""
    del count
    return _kcat("-C", "-b", address, "-t", topic, "-o", "beginning", "-e", "-q").splitlines()


def _kcat(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["kcat", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"kcat ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


# --- Java ---------------------------------------------------------------------------------------


def java_produce(address: str, topic: str, codec: str, prefix: str, count: int) -> None:
    """Produce with Kafka's own client 4.4.0, idempotent."""
    _java("produce", address, topic, codec, prefix, str(count))


def java_consume(address: str, topic: str, count: int) -> list[str]:
    """Consume with Kafka's own client 4.4.0 and assigned partitions."""
    return _java("consume", address, topic, str(count)).splitlines()


def _java(*arguments: str) -> str:
    classes = java.compiled("Records")
    return java.run_java(java.KAFKA_44, "Records", *arguments, classes=classes, with_errors=False)


CLIENTS = (
    Client("confluent-kafka", confluent_produce, confluent_consume),
    Client("kafka-python", kafka_python_produce, kafka_python_consume),
    Client("aiokafka", aiokafka_produce, aiokafka_consume),
    Client("kcat", kcat_produce, kcat_consume),
    Client("Java 4.4.0", java_produce, java_consume, needs_java=True),
)


def expected(prefix: str, count: int) -> list[str]:
    """Return the values that `produce` wrote."""
    return [f"{prefix}{n}" for n in range(count)]
