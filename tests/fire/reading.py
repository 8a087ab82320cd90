"""Everything committed in a topic, as a reader of committed records finds it in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import confluent_kafka

from tests.fire.plan import PARTITIONS, WAIT_S
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.fire.history import Read

LEADER_CHANGES = {
    confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
    confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE,
    confluent_kafka.KafkaError.OFFSET_NOT_AVAILABLE,
    confluent_kafka.KafkaError.FENCED_LEADER_EPOCH,
    confluent_kafka.KafkaError.UNKNOWN_LEADER_EPOCH,
}
"""Errors of a question that another broker, or the same one later, answers; the call tries once."""


def end_of(consumer: confluent_kafka.Consumer, name: confluent_kafka.TopicPartition) -> int:
    """Return the high watermark of a partition; while its leader changes, ask again."""
    ends: list[int] = []

    def is_told() -> bool:
        try:
            ends.append(consumer.get_watermark_offsets(name, WAIT_S, cached=False)[1])
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable() and error.args[0].code() not in LEADER_CHANGES:
                raise
        return bool(ends)

    wait_until(is_told, f"the end of {name.topic}-{name.partition} is told", WAIT_S)
    return ends[0]


def committed_records(address: str, topic: str) -> Read:
    """Return every committed record, once no transaction is open in any partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    records: Read = [[] for _ in range(PARTITIONS)]
    names = [confluent_kafka.TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
    ended: set[int] = set()
    try:
        # For readers of everything: below it an open transaction holds us up until it times out.
        ends = {name.partition: end_of(consumer, name) for name in names}
        consumer.assign(names)
        while len(ended) < PARTITIONS:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{topic} is not read to its end: {ends}, {ended}"
            error = message.error()
            if error is None:
                value = int.from_bytes(message.value(), "big")
                records[message.partition()].append((message.offset(), value))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                if message.offset() >= ends[message.partition()]:
                    ended.add(message.partition())
            elif not error.retriable():
                raise AssertionError(error)
    finally:
        consumer.close()
    return records
