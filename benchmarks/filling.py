"""Topics that a benchmark fills itself, through librdkafka."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

WAIT_S: Final = 3600.0


def fill(
    address: str,
    topic: str,
    partitions: int,
    records: Iterable[Mapping[str, Any]],
    settings: Mapping[str, str],
) -> None:
    """Make a topic and write records into it.

    Args:
        address: of the broker.
        topic: its name.
        partitions: how many it gets.
        records: arguments of `Producer.produce` besides the topic, for each record.
        settings: of the producer.

    Raises TimeoutError for records that are not acknowledged.
    """
    client = AdminClient({"bootstrap.servers": address})
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(WAIT_S)
    producer = Producer({"bootstrap.servers": address, **settings})
    for record in records:
        while True:
            try:
                producer.produce(topic, **record)
                break
            except BufferError:
                producer.poll(0.1)
    unacknowledged = producer.flush(WAIT_S)
    if unacknowledged:
        raise TimeoutError(
            f"{unacknowledged} records of {topic} were not acknowledged in {WAIT_S:.0f} s"
        )
