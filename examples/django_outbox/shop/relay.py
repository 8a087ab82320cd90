"""The relay: it moves records from the outbox to Kafka, in their order.

A record leaves the outbox when Kafka has it. A relay that dies in between leaves it there, and the
next one writes it again with the same `event-id`, by which a consumer knows it.
"""

import json

from confluent_kafka import Producer

from shop.models import OutboxRecord

BATCH = 100


def make_producer(bootstrap_servers: str, **settings) -> Producer:
    """Return a producer that neither repeats nor reorders records."""
    return Producer(
        {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, **settings}
    )


def relay_batch(producer: Producer, timeout_s: float = 30) -> int:
    """Write the oldest records of the outbox to Kafka; return how many are there now.

    A record that Kafka refuses stays in the outbox, and so do those behind it: a later batch writes
    them again, in their order.
    """
    delivered = []
    for record in OutboxRecord.objects.order_by("number")[:BATCH]:
        producer.produce(
            record.topic,
            json.dumps(record.value).encode(),
            record.key,
            headers={"event-id": str(record.event_id)},
            on_delivery=lambda error, _, number=record.number: delivered.append((number, error)),
        )
    producer.flush(timeout_s)
    numbers = []
    for number, error in sorted(delivered):
        if error is not None:
            break
        numbers.append(number)
    OutboxRecord.objects.filter(number__in=numbers).delete()
    return len(numbers)
