"""Records that a real client sends without a timestamp live by the time of their file, as on Kafka.

librdkafka writes "no timestamp" as -1 in the base and 0 in the largest timestamp of the batch.
"""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.testing import Broker
from tests.support.waiting import wait_until

CODECS = ("none", "gzip", "lz4")
SECONDS = 180.0


def send(broker: Broker, topic: str, values: list[bytes], codec: str, timestamp_ms: int) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "compression.type": codec}
    producer = Producer({**settings, "linger.ms": 50})
    errors = []
    for value in values:
        producer.produce(
            topic, value, timestamp=timestamp_ms, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(SECONDS) == 0
    assert errors == [None] * len(values)


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_retention_goes_by_the_time_of_the_file() -> None:
    """A topic beside them with an old record shows that retention runs.

    It has a broker of its own: a file has the machine's time, so the clock must not be ahead
    before.
    """
    originals = [b"value %d" % n for n in range(40)]
    with Broker() as broker:
        for topic in ("old", *CODECS):
            broker.create_topic(topic, config={"retention.ms": 1_800_000})
        send(broker, "old", [b"old"], "none", timestamp_ms=1_000_000_000_000)
        for codec in CODECS:
            send(broker, codec, originals, codec, timestamp_ms=-1)
        broker.clock.advance(minutes=10)
        wait_until(lambda: values(broker, "old") == [], "the record of long ago is deleted")
        assert all(values(broker, codec) == originals for codec in CODECS)
        broker.clock.advance(minutes=40)
        for codec in CODECS:
            wait_until(lambda codec=codec: values(broker, codec) == [], "the file is old enough")


def test_look_ups_by_time_pass_them_by(kafka: Broker) -> None:
    kafka.create_topic("mixed", config={"retention.ms": -1})
    send(kafka, "mixed", [b"without"] * 3, "lz4", timestamp_ms=-1)
    send(kafka, "mixed", [b"with"], "lz4", timestamp_ms=1_700_000_000_000)
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "g"}
    consumer = Consumer(settings)
    offsets = [
        consumer.offsets_for_times([TopicPartition("mixed", 0, time)], timeout=SECONDS)[0].offset
        for time in (1, 1_700_000_000_000, 1_700_000_000_001)
    ]
    consumer.close()
    assert offsets == [3, 3, -1]
