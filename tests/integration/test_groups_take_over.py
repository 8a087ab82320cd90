"""Groups in Kafka's tools and in Kafka itself: each broker goes on with the groups of the other.

Kafka's DumpLogSegments and ConsumerGroupCommand understand our groups; Kafka 3.9.1, started on the
same ZooKeeper chroot and log directory, continues every group where it was, and the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support import java
from tests.support.taking_over import SETTINGS as KAFKA_SETTINGS
from tests.support.taking_over import wait_until_unregistered
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer, ZooKeeper

pytestmark = pytest.mark.java


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Return settings for `new_kafka`."""
    return KAFKA_SETTINGS


SETTINGS = {"offsets.topic.num.partitions": "5"}
TOPIC = "orders"
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
READY_S = 180.0
LOAD_IN_PROGRESS = 14
NOT_COORDINATOR = 16


def produce(address: str, prefix: str, count: int) -> list[str]:
    """Produce `count` values into partition 0."""
    producer = Producer({"bootstrap.servers": address})
    values = [f"{prefix}{number}" for number in range(count)]
    for value in values:
        producer.produce(TOPIC, value.encode(), partition=0)
    assert producer.flush(READY_S) == 0
    return values


def read_some(address: str, count: int, protocol: str = "range") -> list[str]:
    """Read and commit the next `count` values of partition 0 as a member of `readers`, then leave.

    A record of a transaction is in partition 1: it may come before them or behind them.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": protocol,
        }
    )
    consumer.subscribe([TOPIC])
    values: list[str] = []
    try:
        while len(values) < count:
            messages = consumer.consume(count - len(values), READY_S)
            assert messages, f"{len(values)} of {count} values came"
            for message in messages:
                assert message.error() is None, message.error()
                value = message.value()
                assert value is not None
                if message.partition() == 0:
                    values.append(value.decode())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return values


def commit_alone(address: str, offset: int, metadata: str) -> None:
    """Commit under the id `loner` as a consumer that assigns its partition itself."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "loner"})
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset, metadata)], asynchronous=False)
    finally:
        consumer.close()


def what_is_stored(host: str, port: int) -> dict[str, Any]:
    """Return every group with its offsets and state, once it is loaded."""
    stored: dict[str, Any] = {}
    with WireClient(host, port, timeout_s=READY_S) as client:
        for group_id in ("loner", "readers", "transactions", "old"):
            answer: dict[str, Any] = {"error_code": LOAD_IN_PROGRESS}
            while answer["error_code"] in {LOAD_IN_PROGRESS, NOT_COORDINATOR}:
                answer = client.call("offset_fetch", 5, group_id=group_id, topics=None)
            assert answer["error_code"] == 0
            offsets = {
                (topic["name"], partition["partition_index"]): (
                    partition["committed_offset"],
                    partition["committed_leader_epoch"],
                    partition["metadata"].rstrip("\0"),  # confluent-kafka sends C's last byte too
                )
                for topic in answer["topics"]
                for partition in topic["partitions"]
            }
            described = client.call("describe_groups", 4, groups=[group_id])["groups"][0]
            state = described["group_state"], described["protocol_type"]
            stored[group_id] = offsets, state
        old = [{"name": TOPIC, "partition_indexes": [0]}]
        stored["in the tree"] = client.call("offset_fetch", 0, group_id="old", topics=old)["topics"]
    return stored


def store_everything(address: str, host: str, port: int) -> list[str]:
    """Make all kinds of commits; return the values that are produced and not read yet."""
    values = produce(address, "first-", 20)
    assert read_some(address, 5) == values[:5]
    commit_alone(address, 3, "by hand")
    producer = Producer({"bootstrap.servers": address, "transactional.id": "mover"})
    consumer = Consumer({"bootstrap.servers": address, "group.id": "transactions"})
    try:
        producer.init_transactions(READY_S)
        for offset, is_commit in ((7, True), (9, False)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(
                [TopicPartition(TOPIC, 0, offset)], consumer.consumer_group_metadata(), READY_S
            )
            producer.produce(TOPIC, b"moved", partition=1)
            if is_commit:
                producer.commit_transaction(READY_S)
            else:
                producer.abort_transaction(READY_S)
    finally:
        consumer.close()
    part = {"partition_index": 0, "committed_offset": 11, "committed_metadata": ""}
    with WireClient(host, port, timeout_s=READY_S) as client:
        topics = [{"name": TOPIC, "partitions": [part]}]
        client.call("offset_commit", 0, group_id="old", topics=topics)
    return values[5:]


def make_topic(host: str, port: int) -> None:
    topics = [{"name": TOPIC, "num_partitions": 2, "replication_factor": 1}]
    with WireClient(host, port, timeout_s=READY_S) as client:
        client.call("create_topics", 4, topics=topics)


EXPECTED = {
    "loner": ({(TOPIC, 0): (3, -1, "by hand")}, ("Empty", "")),
    "transactions": ({(TOPIC, 0): (7, -1, "")}, ("Empty", "")),
    "old": ({}, ("Dead", "")),
}


def test_kafka_continues_our_groups(
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
) -> None:
    """Also after a kill; Kafka's decoder reads the files, too."""
    broker = new_broker(zookeeper=f"{zookeeper.connect}/groups-ours", settings=SETTINGS)
    make_topic(broker.host, broker.port)
    unread = store_everything(broker.address, broker.host, broker.port)
    stored = what_is_stored(broker.host, broker.port)
    assert {name: stored[name] for name in EXPECTED} == EXPECTED
    broker.kill()
    files = sorted(str(path) for path in broker.data_dir.glob("__consumer_offsets-*/*.log"))
    text = java.run_java(
        java.KAFKA_39,
        "kafka.tools.DumpLogSegments",
        "--files",
        ",".join(files),
        "--offsets-decoder",
    )
    for group_id in ("loner", "readers", "transactions"):
        assert f'"group":"{group_id}"' in text
    assert '"protocolType":"consumer"' in text
    assert '"metadata":"by hand' in text
    assert "Error" not in text
    wait_until_unregistered(zookeeper, "groups-ours")

    kafka = new_kafka("groups-ours", broker.data_dir)
    assert what_is_stored(kafka.host, kafka.port) == stored
    assert read_some(kafka.address, 5) == unread[:5]
    commit_alone(kafka.address, 4, "by Kafka")
    kafkas = what_is_stored(kafka.host, kafka.port)
    kafka.stop()
    wait_until_unregistered(zookeeper, "groups-ours")

    broker.start()
    assert what_is_stored(broker.host, broker.port) == kafkas
    assert read_some(broker.address, 10) == unread[5:]


def test_we_continue_kafkas_groups(
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
    tmp_path: Path,
) -> None:
    kafka = new_kafka("groups-kafkas", tmp_path / "data")
    make_topic(kafka.host, kafka.port)
    unread = store_everything(kafka.address, kafka.host, kafka.port)
    stored = what_is_stored(kafka.host, kafka.port)
    kafka.stop()
    wait_until_unregistered(zookeeper, "groups-kafkas")

    broker = new_broker("data", zookeeper=f"{zookeeper.connect}/groups-kafkas", settings=SETTINGS)
    assert what_is_stored(broker.host, broker.port) == stored
    assert read_some(broker.address, 15) == unread


def test_kafkas_group_command_works(new_broker: Callable[..., Minibroker]) -> None:
    """Kafka's own tool lists, describes, resets offsets, deletes offsets and deletes."""
    broker = new_broker(settings=SETTINGS)
    make_topic(broker.host, broker.port)
    produce(broker.address, "v-", 20)
    assert len(read_some(broker.address, 5)) == 5
    commit_alone(broker.address, 3, "by hand")

    # Its own limit is 5 s, with the start of its client; then it does nothing, and ends with 0.
    options = ["--bootstrap-server", broker.address, "--timeout", str(int(READY_S * 1000))]

    def run(*arguments: str) -> str:
        return java.run_java(java.KAFKA_39, GROUP_COMMAND, *options, *arguments)

    assert set(run("--list").split()) >= {"readers", "loner"}
    lines = [line.split() for line in run("--describe", "--all-groups").splitlines()]
    rows = {line[0]: line[1:6] for line in lines if len(line) > 5}
    assert rows["readers"] == [TOPIC, "0", "5", "20", "15"]
    assert rows["loner"] == [TOPIC, "0", "3", "20", "17"]
    part = ["--topic", f"{TOPIC}:0"]
    run("--group", "readers", "--reset-offsets", "--to-earliest", *part, "--execute")
    assert len(read_some(broker.address, 20)) == 20
    run("--group", "readers", "--delete-offsets", *part)
    run("--group", "loner", "--delete")
    stored = what_is_stored(broker.host, broker.port)
    assert stored["readers"][0] == {}
    assert stored["loner"] == ({}, ("Dead", ""))
