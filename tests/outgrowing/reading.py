"""Whole topics, read by librdkafka to their ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WAIT_S = 120.0
POLL_S = 0.2
WAIT_OF_FETCH_MS = 20


class ReadRecord(NamedTuple):
    """A record where it stands."""

    partition: int
    offset: int
    key: str
    value: str


def read_record(message: Message) -> ReadRecord:
    """Return a message as a record."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return ReadRecord(
        partition, offset, (message.key() or b"").decode(), (message.value() or b"").decode()
    )


def read_to_ends(
    consumer: Consumer, take: Callable[[ReadRecord], None], has_ended: Callable[[set[int]], bool]
) -> None:
    """Poll until `has_ended` says so of the partitions whose ends were seen."""
    ends: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while not has_ended(ends):
        assert time.monotonic() < deadline, f"after {WAIT_S} s only these ended: {ends}"
        message = consumer.poll(POLL_S)
        if message is None:
            continue
        error = message.error()
        partition = message.partition()
        if error is None:
            assert partition is not None
            ends.discard(partition)
            take(read_record(message))
            continue
        if error.code() == KafkaError._PARTITION_EOF:
            assert partition is not None
            ends.add(partition)


def read_topic(
    clients: Mapping[str, str], topic: str, *, is_committed: bool = True
) -> list[ReadRecord]:
    """Return the records of a topic; of each partition in its order."""
    consumer = Consumer(
        {
            **clients,
            "group.id": "reads-all",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": WAIT_OF_FETCH_MS,
            "isolation.level": "read_committed" if is_committed else "read_uncommitted",
        }
    )
    records: list[ReadRecord] = []
    try:
        numbers = set(consumer.list_topics(topic, timeout=WAIT_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        read_to_ends(consumer, records.append, lambda ends: ends >= numbers)
    finally:
        consumer.close()
    return records


def values_of(records: list[ReadRecord]) -> dict[int, list[str]]:
    """Return partition → values in their order."""
    values: dict[int, list[str]] = {}
    for record in records:
        values.setdefault(record.partition, []).append(record.value)
    return values
