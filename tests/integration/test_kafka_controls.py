"""One Apache Kafka 3.9.1 and two minibrokers on one ZooKeeper: Kafka is the controller.

It sends LeaderAndIsr, UpdateMetadata and StopReplica; minibroker sends AlterPartition and
ControlledShutdown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker import Minibroker
from tests.support.peers import KafkaPeer
from tests.support.taking_over import wait_until_unregistered
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from confluent_kafka import Message
    from confluent_kafka.admin import PartitionMetadata

    from tests.support.peers import ZooKeeper

pytestmark = pytest.mark.java

KAFKA = 0
MINIBROKERS = (1, 2)
ALL = {KAFKA, *MINIBROKERS}
SETTINGS = {"replica.fetch.wait.max.ms": "100", "replica.fetch.backoff.ms": "100"}
CHROOT = "kafka-controls"
WAIT_S = 180


class Mixed:
    """The cluster: Kafka has id 0, the minibrokers 1 and 2."""

    def __init__(self, directory: Path, connect: str) -> None:
        settings = {**SETTINGS, "auto.leader.rebalance.enable": "false"}
        self.kafka = KafkaPeer("3.9.1", directory / "kafka", zookeeper=connect, settings=settings)
        self.minibrokers = {
            broker_id: Minibroker(
                directory / f"data-{broker_id}",
                directory / f"minibroker-{broker_id}.log",
                zookeeper=connect,
                settings={**SETTINGS, "broker.id": str(broker_id)},
            )
            for broker_id in MINIBROKERS
        }

    def start(self) -> None:
        """Start Kafka first, so that it is the controller."""
        self.kafka.start()
        for broker in self.minibrokers.values():
            broker.start()
        addresses = [self.kafka.address, *(broker.address for broker in self.minibrokers.values())]
        self.address = ",".join(addresses)
        self.admin = AdminClient({"bootstrap.servers": self.address})
        for broker in (self.kafka, *self.minibrokers.values()):
            admin = AdminClient({"bootstrap.servers": broker.address})
            wait_until(
                lambda admin=admin: len(admin.list_topics(timeout=WAIT_S).brokers) == 3,  # type: ignore[misc]
                "each broker knows all three",
                WAIT_S,
            )
            assert admin.list_topics(timeout=WAIT_S).controller_id == KAFKA

    def kill(self) -> None:
        """End all of them at once."""
        for broker in (*self.minibrokers.values(), self.kafka):
            broker.kill()

    def call(self, broker: int, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Ask one broker; return its answer."""
        peer = self.kafka if broker == KAFKA else self.minibrokers[broker]
        with WireClient(peer.host, peer.port) as client:
            return client.call(api, version, **fields)

    def create(self, name: str, partitions: int = 6) -> None:
        """Create a topic by Kafka's own assignment, and wait until all replicas are in sync."""

        def is_created() -> bool:
            try:
                self.admin.create_topics([NewTopic(name, partitions, 3)])[name].result(WAIT_S)
            except KafkaException as error:  # one of that name is being deleted
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return False
                raise
            return True

        wait_until(is_created, f"{name} is created", WAIT_S)
        self.wait_for_isr(name, ALL)
        wait_until(lambda: set(self.leaders(name)) == ALL, "each broker leads", WAIT_S)

    def partitions(self, topic: str) -> Iterable[PartitionMetadata]:
        """Return what a broker of the cluster says of the topic: nothing if it does not know it."""
        return self.admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions.values()

    def leaders(self, topic: str) -> list[int]:
        return [partition.leader for partition in self.partitions(topic)]

    def wait_for_isr(self, topic: str, isr: set[int]) -> None:
        wait_until(
            lambda: {frozenset(each.isrs) for each in self.partitions(topic)} == {frozenset(isr)},
            f"the ISR of {topic} is {isr}",
            WAIT_S,
        )

    def directories(self) -> list[Path]:
        return [self.kafka.log_dir, *(broker.data_dir for broker in self.minibrokers.values())]

    def wait_until_equal(self, topic: str, partitions: int = 6) -> None:
        """Wait until all replicas have the same bytes, and some."""

        def log_of(directory: Path, index: int) -> bytes:
            segments = sorted((directory / f"{topic}-{index}").glob("*.log"))
            return b"".join(segment.read_bytes() for segment in segments)

        def are_equal() -> bool:
            for index in range(partitions):
                first, *others = (log_of(directory, index) for directory in self.directories())
                if not first or any(other != first for other in others):
                    return False
            return True

        wait_until(are_equal, f"the replicas of {topic} are equal", WAIT_S)

    def produce(self, topic: str, count: int, partitions: int = 6) -> None:
        """Produce so many records to each partition with acks=all; none may fail."""
        errors: list[str] = []

        def note_result(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                errors.append(error.name())

        producer = Producer(
            {"bootstrap.servers": self.address, "acks": "all", "enable.idempotence": True}
        )
        for number in range(count):
            for index in range(partitions):
                producer.produce(
                    topic, f"{index}-{number}", partition=index, on_delivery=note_result
                )
        assert producer.flush(WAIT_S) == 0
        assert errors == []


@pytest.fixture(scope="module")
def mixed(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    """Yield the cluster; each test has a topic of its own and leaves three brokers in sync."""
    cluster = Mixed(tmp_path_factory.mktemp("mixed"), f"{zookeeper.connect}/{CHROOT}")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


def test_minibrokers_lead_and_follow(mixed: Mixed, zookeeper: ZooKeeper) -> None:
    mixed.create("t")
    mixed.produce("t", 100)
    mixed.wait_until_equal("t")
    killed = mixed.minibrokers[1]
    killed.kill()
    wait_until_unregistered(zookeeper, CHROOT, 1)
    mixed.wait_for_isr("t", ALL - {1})
    wait_until(lambda: 1 not in mixed.leaders("t"), "others lead", WAIT_S)
    mixed.produce("t", 100)
    killed.start()
    mixed.wait_for_isr("t", ALL)
    mixed.produce("t", 100)
    mixed.wait_until_equal("t")
    log = mixed.minibrokers[2].log_path.read_text()
    assert "the controller was asked for ISR" in log


def test_leaders_move_before_a_broker_stops(mixed: Mixed) -> None:
    mixed.create("stopping")
    stopped = mixed.minibrokers[2]
    stopped.stop()
    log = stopped.log_path.read_text()
    assert "did not prepare the stop" not in log
    assert "without having handed over" not in log
    wait_until(lambda: set(mixed.leaders("stopping")) == ALL - {2}, "others lead", WAIT_S)
    stopped.start()
    mixed.wait_for_isr("stopping", ALL)
    mixed.produce("stopping", 10)
    mixed.wait_until_equal("stopping")


def test_a_deleted_topic_is_gone_everywhere_and_may_come_back(mixed: Mixed) -> None:
    mixed.create("going")
    mixed.produce("going", 10)
    mixed.admin.delete_topics(["going"])["going"].result(WAIT_S)
    wait_until(
        lambda: (
            not [path for directory in mixed.directories() for path in directory.glob("going-?")]
        ),
        "no broker has a log of the deleted topic",
        WAIT_S,
    )
    mixed.create("going")  # the same name, another id
    mixed.produce("going", 10)
    mixed.wait_until_equal("going")


def test_refusals_are_those_of_kafka(mixed: Mixed) -> None:
    """The test asks both in the controller's name; nothing that it asks changes a state."""
    mixed.create("asked")
    mixed.produce("asked", 1)
    mixed.wait_until_equal("asked")
    topics = [{"topic_id": bytes(16), "name": "asked"}]
    (topic,) = mixed.call(KAFKA, "metadata", 12, topics=topics)["topics"]
    for api, version, fields in refused_requests(topic["topic_id"]):
        of_kafka, ours = (mixed.call(n, api, version, **fields) for n in (KAFKA, MINIBROKERS[0]))
        assert ours == of_kafka, (api, version, fields)


def refused_requests(topic_id: bytes) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield API, version and fields of requests, in each version of the three APIs."""
    now, deposed = ({"controller_id": KAFKA, "controller_epoch": n} for n in (1, 0))
    for version in range(8):
        for name, index, epoch, replicas in (("asked", 0, -1, [0, 1]), ("gone", 0, 9, [7, 8])):
            state = {"partition_index": index, "leader_epoch": epoch, "replicas": replicas}
            for other_id in (topic_id, bytes(15) + b"1") if name == "asked" else (bytes(16),):
                fields = lead_or_follow(version, name, other_id, state)
                yield "leader_and_isr", version, {**now, **fields}
                yield "leader_and_isr", version, {**deposed, **fields}
                if version >= 2:
                    yield "leader_and_isr", version, {**now, **fields, "broker_epoch": 0}
    for version in range(5):
        for name in ("asked", "never made"):  # Kafka remembers the topic `gone` by now
            fields = stop(version, name)
            if name != "asked" or version >= 3:  # older versions fence no leader epoch
                yield "stop_replica", version, {**now, **fields}
            yield "stop_replica", version, {**deposed, **fields}
            if version >= 1:
                yield "stop_replica", version, {**now, **fields, "broker_epoch": 0}
    for version in range(9):
        yield "update_metadata", version, deposed
        if version >= 5:
            yield "update_metadata", version, {**now, "broker_epoch": 0}


def lead_or_follow(
    version: int, topic: str, topic_id: bytes, state: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields of a LeaderAndIsr request about one partition."""
    if version < 2:
        return {"ungrouped_partition_states": [{"topic_name": topic, **state}]}
    states: dict[str, Any] = {"topic_name": topic, "partition_states": [state]}
    if version >= 5:
        states["topic_id"] = topic_id
    return {"topic_states": [states]}


def stop(version: int, topic: str) -> dict[str, Any]:
    """Return the fields of a StopReplica request about partition 0, in an old leader epoch."""
    if version == 0:
        return {"ungrouped_partitions": [{"topic_name": topic, "partition_index": 0}]}
    if version < 3:
        return {"topics": [{"name": topic, "partition_indexes": [0]}]}
    state = {"partition_index": 0, "leader_epoch": -3, "delete_partition": True}
    return {"topic_states": [{"topic_name": topic, "partition_states": [state]}]}
