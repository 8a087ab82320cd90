"""Topics for the pipeline: every format and codec, gaps, markers, odd records.

They are filled once per broker and only read afterwards. A test compares three readers: a plain
consumer (`read_all`), our source and Spark's connector.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.new_topics import grow_topic, make_topic, remove_topic
from tests.support.old_clients import OLD_CLIENTS
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS: Final = 300.0
BROKER_ID: Final = "0"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
FOR_EVER: Final = {"retention.ms": "-1"}
"""Settings of a topic with old records: the retention of a shared broker would delete them."""

OLD_FORMATS: Final = {"0.9.0": "0.8.2", "0.10.2": "0.10"}
"""message.format.version of a topic (Kafka 3.9 ignores it and keeps v2) → the client that writes to
it.
"""


def create(
    address: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Make a topic that is served when this returns."""
    make_topic(address, topic, partitions, config)


def add_partitions(address: str, topic: str, count: int) -> None:
    """Raise the number of partitions to `count`."""
    grow_topic(address, topic, count)


def delete(address: str, topic: str) -> None:
    """Delete a topic that is unknown when this returns."""
    remove_topic(address, topic)


def delete_records(address: str, topic: str, first_offset: int) -> None:
    """Remove the records of partition 0 before an offset."""
    client = AdminClient({"bootstrap.servers": address})
    (done,) = client.delete_records([TopicPartition(topic, 0, first_offset)]).values()
    done.result(SECONDS)


def producer(address: str, **settings: str) -> Producer:
    """Return a producer that sends at once; underscores in `settings` stand for dots."""
    named_settings = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": address, "linger.ms": "5", **named_settings})


def send(address: str, topic: str, count: int, *, partition: int = 0, codec: str = "none") -> None:
    """Send `count` records with keys and values of their own, in one batch.

    `flush` waits for no linger. On a busy machine there could be a batch for each record otherwise,
    which librdkafka does not compress, since that is smaller.
    """
    client = producer(address, compression_type=codec, linger_ms="5000")
    for number in range(count):
        client.produce(
            topic, f"{codec}-{number}".encode() * 3, f"key-{number}".encode(), partition=partition
        )
    assert client.flush(SECONDS) == 0


def fill_formats(address: str, prefix: str) -> list[str]:
    """Make topics of v2, v1 and v0, each with every codec of its clients; return them."""
    create(address, f"{prefix}v2", 2)
    for index, codec in enumerate(CODECS):
        send(address, f"{prefix}v2", 20, partition=index % 2, codec=codec)
    names = [f"{prefix}v2"]
    for version, of_client in OLD_FORMATS.items():
        name = f"{prefix}format-{version}"
        create(address, name, 1, {"message.format.version": version})
        client = next(
            client
            for client in OLD_CLIENTS
            if client.library == "kafka-python" and client.version == of_client
        )
        assert not client.missing, client.missing
        codecs = ("none", "gzip", "snappy", "lz4") if of_client != "0.8.2" else ("none", "gzip")
        client.produce(address, [name], {codec: f"{codec}-" for codec in codecs}, 10)
        names.append(name)
    return names


def fill_odd(address: str, prefix: str) -> list[str]:
    """Write tombstones, null keys, empty keys, headers of each kind; and a topic of the broker's
    time.
    """
    odd, appended = f"{prefix}odd", f"{prefix}appended"
    create(address, odd, 1, FOR_EVER)
    create(address, appended, 1, {"message.timestamp.type": "LogAppendTime"})
    client = producer(address)
    client.produce(odd, None, b"tombstone", timestamp=1_700_000_000_123)
    client.produce(odd, b"no key", None, timestamp=1)
    client.produce(odd, b"", b"", timestamp=1_700_000_000_000)
    client.produce(odd, None, None)
    client.produce(odd, bytes(range(256)), "schlüssel".encode())
    client.produce(odd, b"one header", headers=[("a", b"1")])
    client.produce(odd, b"no value of a header", headers=[("null", None), ("empty", b"")])
    client.produce(odd, b"twice the same", headers=[("a", b"1"), ("a", b"2"), ("ü", b"\x00")])
    client.produce(odd, b"large" * 40_000, b"k")
    assert client.flush(SECONDS) == 0
    send(address, appended, 5)
    return [odd, appended]


def fill_transactional(address: str, topic: str) -> None:
    """Write committed, aborted, plain, committed records: markers between, one at the end."""
    create(address, topic)
    client = producer(address, transactional_id=f"of-{topic}")
    client.init_transactions(SECONDS)
    for number, outcome in enumerate(("commit", "abort", "commit", "abort", "abort", "commit")):
        client.begin_transaction()
        for index in range(3):
            client.produce(topic, f"{outcome}-{number}-{index}".encode(), b"k", partition=0)
        if outcome == "commit":
            client.commit_transaction(SECONDS)
        else:
            assert client.flush(SECONDS) == 0
            client.abort_transaction(SECONDS)
        send(address, topic, 1)


def fill_aborted_at_the_end(address: str, topic: str) -> None:
    """Write one record, then an aborted transaction."""
    create(address, topic)
    send(address, topic, 1)
    client = producer(address, transactional_id=f"of-{topic}")
    client.init_transactions(SECONDS)
    client.begin_transaction()
    client.produce(topic, b"never", b"k", partition=0)
    assert client.flush(SECONDS) == 0
    client.abort_transaction(SECONDS)


def fill_compacted(address: str, topic: str) -> None:
    """Write 400 records of which 11 are left, with gaps between them: the last of each key.

    Every four flushes one key less is written. The last record has a key of its own and fills a
    segment. So all superseded records are in closed segments, and the others stay for good.
    """
    with hastened_cleaner(address):
        fill_and_compact(address, topic)


def fill_and_compact(address: str, topic: str) -> None:
    """Write the records, and wait until they are compacted."""
    create(
        address,
        topic,
        1,
        {"cleanup.policy": "compact", "segment.bytes": "2048", "min.cleanable.dirty.ratio": "0.01"},
    )
    keys = [[max(number, flush // 4) for number in range(10)] for flush in range(39)]
    for flush in (*keys, [9] * 9):
        client = producer(address)
        for key in flush:
            client.produce(topic, b"v" * 20, f"{key}".encode(), partition=0)
        assert client.flush(SECONDS) == 0
    client = producer(address)
    client.produce(topic, b"v" * 1900, b"the last", partition=0)
    assert client.flush(SECONDS) == 0
    wait_until(lambda: len(read_all(address, topic)) == 11, f"{topic} is compacted")


@contextmanager
def hastened_cleaner(address: str) -> Iterator[None]:
    """Make the cleaner look every 100 ms instead of every 15 s, as long as the block runs."""
    client = AdminClient({"bootstrap.servers": address})

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, BROKER_ID, incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(SECONDS)

    alter(AlterConfigOpType.SET)
    try:
        yield
    finally:
        alter(AlterConfigOpType.DELETE)


Read = tuple[int, bytes | None, bytes | None]


def read_all(
    address: str, topic: str, partition: int = 0, isolation: str = "read_uncommitted"
) -> list[Read]:
    """Return offset, key and value of every record up to the end of the partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reads-all",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    records: list[Read] = []
    try:
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, f"no word from {address} about {topic}"
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return records
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            records.append((offset, message.key(), message.value()))
    finally:
        consumer.close()
