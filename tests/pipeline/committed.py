"""Reads the committed records of a topic, and the offsets of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from confluent_kafka import Message

SECONDS: Final = 300.0


class Record(NamedTuple):
    """One record, without its offset."""

    value: bytes | None
    key: bytes | None
    timestamp_ms: int
    headers: list[tuple[str, bytes | None]] | None


def records(address: str, topic: str) -> dict[int, list[Record]]:
    """Return partition → its committed records in order, once no transaction is open."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "finds-what-is-committed",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, SECONDS).topics[topic].partitions)
        names = [TopicPartition(topic, number, 0) for number in partitions]
        ends = {
            name.partition: consumer.get_watermark_offsets(name, SECONDS, cached=False)[1]
            for name in names
        }
        records_of: dict[int, list[Record]] = {number: [] for number in partitions}
        consumer.assign(names)
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(SECONDS)
            assert message is not None, f"{topic} is not read to its end: {ends}, {ended}"
            _add(message, records_of, ends, ended)
        return records_of
    finally:
        consumer.close()


def _add(
    message: Message, records_of: dict[int, list[Record]], ends: dict[int, int], ended: set[int]
) -> None:
    partition, offset, error = message.partition(), message.offset(), message.error()
    assert partition is not None
    assert offset is not None
    if error is None:
        headers = message.headers()
        records_of[partition].append(
            Record(
                message.value(),
                message.key(),
                message.timestamp()[1],
                [(key, bytes(value) if value is not None else None) for key, value in headers]
                if headers
                else None,
            )
        )
    elif error.code() == KafkaError._PARTITION_EOF:
        if offset >= ends[partition]:
            ended.add(partition)
    elif not error.retriable():
        raise AssertionError(error)


def values(address: str, topic: str) -> list[bytes]:
    """Return the values of all partitions, sorted."""
    return sorted(
        record.value or b"" for part in records(address, topic).values() for record in part
    )


def offsets(address: str, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    """Return (topic, partition) → committed offset and metadata."""
    client = AdminClient({"bootstrap.servers": address})
    request = [ConsumerGroupTopicPartitions(group)]
    answer = client.list_consumer_group_offsets(request, require_stable=True)
    partitions = answer[group].result(SECONDS).topic_partitions
    return {
        (partition.topic, partition.partition): (partition.offset, partition.metadata)
        for partition in partitions
    }


def commit(address: str, group: str, topic: str, new_offsets: dict[int, int]) -> None:
    """Commit offsets of a group."""
    client = AdminClient({"bootstrap.servers": address})
    partitions = [TopicPartition(topic, number, offset) for number, offset in new_offsets.items()]
    changes = client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)])
    changes[group].result(SECONDS)


def rest(address: str, topic: str, partition: int, offset: int) -> list[bytes | None]:
    """Return the committed values from an offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reads-the-rest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        rest_values = []
        while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
            rest_values.append(message.value())
        return rest_values
    finally:
        consumer.close()
