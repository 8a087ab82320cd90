"""Compacted topics with real clients and real brokers: gaps, transactions, and Apache Kafka before
and after us on the same directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.support.check import broken_things
from tests.support.peers import KafkaPeer
from tests.support.taking_over import assert_dump_is_clean, wait_until_unregistered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

Rows = list[tuple[int | None, bytes | None, bytes | None]]
"""(offset, key, value), as a consumer gets them."""

WAIT_S = 180
KEYS = [b"key-%d" % number for number in range(10)]
SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": "0",
    "minibroker.log.cleaner.idle.ms": "200",
}
TOPIC_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "4000"}


def produce(address: str, topic: str, round_number: int, count: int = 200) -> dict[bytes, bytes]:
    """Write values for the ten keys, one batch each; return key → the last one."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "batch.num.messages": 1})
    last = {}
    for number in range(count):
        key, value = KEYS[number % 10], b"%d/%d " % (round_number, number) * 4
        producer.produce(topic, key=key, value=value, partition=0)
        last[key] = value
    assert producer.flush(WAIT_S) == 0
    return last


def read(address: str, topic: str, offset: int = 0) -> Rows:
    """Return everything from `offset` to the end that a consumer of committed records sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, offset)])
    rows = []
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None, "nothing came"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            break
        rows.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return rows


def last_values(rows: Rows) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in rows}


def wait_until_compacted(broker: Minibroker | KafkaPeer, data_dir: Path, offset: int) -> None:
    """Wait until the cleaner's checkpoint says that topic c is compacted up to `offset`."""
    path = data_dir / "cleaner-offset-checkpoint"

    def is_there() -> bool:
        lines = path.read_text().splitlines() if path.exists() else []
        ends = [int(line.split()[2]) for line in lines[2:] if line.startswith("c 0 ")]
        return bool(ends) and ends[0] >= offset

    assert broker.process is not None
    broker.process.wait_until(is_there, WAIT_S, f"a compaction up to {offset}")


@pytest.fixture
def broker(new_broker: Callable[..., Minibroker]) -> Minibroker:
    settings = ":".join(f"{key}={value}" for key, value in TOPIC_SETTINGS.items())
    return new_broker(settings=SETTINGS, topics=[f"c:1:{settings}"])


def test_a_consumer_reads_across_gaps(broker: Minibroker) -> None:
    last = produce(broker.address, "c", 0)
    wait_until_compacted(broker, broker.data_dir, 200)
    rows = read(broker.address, "c")
    assert [offset for offset, _, _ in rows] == list(range(190, 200))
    assert last_values(rows) == last
    for inside_a_gap in (57, 189):
        assert read(broker.address, "c", inside_a_gap) == rows
    assert read(broker.address, "c", 195) == rows[5:]
    last = produce(broker.address, "c", 1, 15)
    assert last_values(read(broker.address, "c"))[KEYS[0]] == last[KEYS[0]]
    broker.stop()
    assert broken_things(broker.data_dir) == []


def test_it_survives_a_kill(broker: Minibroker) -> None:
    last = produce(broker.address, "c", 0)
    wait_until_compacted(broker, broker.data_dir, 200)
    broker.kill()
    assert broken_things(broker.data_dir, is_strict=False) == []
    broker.start()
    assert last_values(read(broker.address, "c")) == last
    wait_until_compacted(broker, broker.data_dir, 200)


def test_a_compacted_topic_with_transactions(broker: Minibroker) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": "t", "linger.ms": 0}
    )
    producer.init_transactions(WAIT_S)
    committed: dict[bytes, bytes] = {}
    for number in range(12):
        producer.begin_transaction()
        key, value = KEYS[number % 5], b"%d" % number
        producer.produce("c", key=key, value=value, partition=0)
        producer.produce("c", key=b"also", value=value, partition=0)
        assert producer.flush(WAIT_S) == 0, "an abort would drop what was not sent"
        if number % 3:
            producer.commit_transaction(WAIT_S)
            committed |= {key: value, b"also": value}
        else:
            producer.abort_transaction(WAIT_S)
    wait_until_compacted(broker, broker.data_dir, 36)
    rows = read(broker.address, "c")
    assert last_values(rows) == committed
    assert len(rows) == len(committed)
    broker.kill()
    broker.start()
    assert read(broker.address, "c") == rows
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "t"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("c", key=b"also", value=b"new", partition=0)
    producer.commit_transaction(WAIT_S)
    assert last_values(read(broker.address, "c")) == committed | {b"also": b"new"}


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Return settings for `new_kafka`, without those of minibroker only."""
    return {key: value for key, value in SETTINGS.items() if not key.startswith("mini")}


@pytest.mark.java
def test_each_broker_goes_on_with_a_log_that_the_other_compacted(
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
) -> None:
    chroot = "compaction"
    broker = new_broker(zookeeper=f"{zookeeper.connect}/{chroot}", settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic("c", 1, 1, config=TOPIC_SETTINGS)])["c"].result(WAIT_S)
    ours = produce(broker.address, "c", 0)
    wait_until_compacted(broker, broker.data_dir, 200)
    old_rows = read(broker.address, "c")
    broker.stop()
    wait_until_unregistered(zookeeper, chroot)

    kafka = new_kafka(chroot, broker.data_dir)
    assert read(kafka.address, "c") == old_rows
    assert last_values(old_rows) == ours
    kafkas = produce(kafka.address, "c", 1, 400)
    wait_until_compacted(kafka, broker.data_dir, 500)
    between = read(kafka.address, "c")
    assert last_values(between) == kafkas
    kafka.stop()
    assert broken_things(broker.data_dir) == []
    wait_until_unregistered(zookeeper, chroot)

    broker.start()
    assert last_values(read(broker.address, "c")) == kafkas
    ours = produce(broker.address, "c", 2)
    wait_until_compacted(broker, broker.data_dir, 800)
    assert last_values(read(broker.address, "c")) == ours
    broker.stop()
    assert broken_things(broker.data_dir) == []
    assert_dump_is_clean(broker.data_dir)
