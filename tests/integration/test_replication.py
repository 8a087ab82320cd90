"""Three brokers on one ZooKeeper: records are on all of them before acks=all is answered."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker import wait_until_acquainted
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import KafkaError, Message
    from confluent_kafka.admin import PartitionMetadata

    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

pytestmark = pytest.mark.java

BROKERS = (0, 1, 2)
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "3000",
    "zookeeper.session.timeout.ms": "6000",
}
WAIT_S = 180


class Brokers:
    """Brokers 0, 1 and 2, each with a data directory of its own."""

    def __init__(self, new_broker: Callable[..., Minibroker], zookeeper: str) -> None:
        self._new_broker = new_broker
        self._zookeeper = zookeeper
        self.all: list[Minibroker] = []

    def start(self, others: Mapping[str, str] | None = None, **settings: str) -> None:
        """Start the brokers, and wait until each knows all. `others`: settings of all but 0."""
        for broker_id in BROKERS:
            own = {
                **SETTINGS,
                **settings,
                **((broker_id and others) or {}),
                "broker.id": str(broker_id),
            }
            self.all.append(
                self._new_broker(f"data-{broker_id}", zookeeper=self._zookeeper, settings=own)
            )
        self.address = ",".join(broker.address for broker in self.all)
        self.admin = AdminClient({"bootstrap.servers": self.address})
        wait_until_acquainted(self.all)

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; the first replica of partition 0 is on broker 0."""
        replicas = [[(n + turn) % 3 for n in BROKERS] for turn in range(partitions)]
        topic = NewTopic(name, partitions, replica_assignment=replicas, config=configs)
        self.admin.create_topics([topic])[name].result(WAIT_S)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        return self._partition(topic, partition).leader

    def isr_of(self, topic: str, partition: int = 0) -> set[int]:
        return set(self._partition(topic, partition).isrs)

    def _partition(self, topic: str, partition: int) -> PartitionMetadata:
        """Return what some broker knows, once it knows the topic: one that made it tells others."""
        partitions: dict[int, PartitionMetadata] = {}

        def is_known() -> bool:
            partitions.update(
                self.admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
            )
            return partition in partitions

        wait_until(is_known, f"{topic}-{partition} is known", WAIT_S)
        return partitions[partition]

    def end_of(self, topic: str) -> int:
        """Return the high watermark of partition 0."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "ends"})
        end: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S)[1]
        consumer.close()
        return end

    def wait_until_in_sync(self, topic: str, partitions: int = 1) -> None:
        for partition in range(partitions):
            wait_until(
                lambda partition=partition: self.isr_of(topic, partition) == set(BROKERS),  # type: ignore[misc]
                f"all replicas of {topic}-{partition} are in sync",
                WAIT_S,
            )

    def logs_of(self, topic: str, partition: int = 0) -> list[bytes]:
        """Return the bytes of the partition's segments, one entry a broker."""
        return [
            b"".join(
                segment.read_bytes()
                for segment in sorted((broker.data_dir / f"{topic}-{partition}").glob("*.log"))
            )
            for broker in self.all
        ]

    def wait_until_equal(self, topic: str, partition: int = 0) -> None:
        """Wait until all replicas have the same bytes, and some."""

        def are_equal() -> bool:
            logs = self.logs_of(topic, partition)
            return bool(logs[0]) and logs[0] == logs[1] == logs[2]

        wait_until(are_equal, f"the replicas of {topic}-{partition} are equal", WAIT_S)


@pytest.fixture
def brokers(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, new_broker: Callable[..., Minibroker]
) -> Brokers:
    return Brokers(new_broker, f"{zookeeper.connect}/{request.node.name}")


def produce(
    brokers: Brokers, topic: str, values: list[str], partitions: int = 1, **settings: object
) -> list[str]:
    """Produce one record a value, by turns to the partitions; return the errors."""
    errors: list[str] = []

    def note_result(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            errors.append(error.name())

    producer = Producer(
        {"bootstrap.servers": brokers.address, "linger.ms": 1, "acks": "all", **settings}
    )
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions, on_delivery=note_result)
    assert producer.flush(WAIT_S) == 0
    return errors


def consume(brokers: Brokers, topic: str, partitions: int, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": brokers.address, "group.id": "readers"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    values: list[str] = []

    def has_all() -> bool:
        for message in consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            values.append(message.value().decode())
        return len(values) >= count

    wait_until(has_all, f"{count} records", WAIT_S)
    consumer.close()
    return values


def test_records_acknowledged_with_acks_all_survive_the_leader(brokers: Brokers) -> None:
    brokers.start()
    brokers.create("t", 3, **{"min.insync.replicas": "2"})
    first_values = [f"before-{n}" for n in range(3000)]
    later_values = [f"after-{n}" for n in range(3000)]
    assert produce(brokers, "t", first_values, 3, **{"enable.idempotence": True}) == []
    killed = brokers.all[brokers.leader_of("t")]
    killed.kill()
    assert produce(brokers, "t", later_values, 3, **{"enable.idempotence": True}) == []
    assert sorted(consume(brokers, "t", 3, 6000)) == sorted(first_values + later_values)
    killed.start()
    brokers.wait_until_in_sync("t", 3)
    for partition in range(3):
        brokers.wait_until_equal("t", partition)


def test_too_few_in_sync_refuse_acks_all(brokers: Brokers) -> None:
    brokers.start()
    brokers.create("t", **{"min.insync.replicas": "2"})
    leader = brokers.leader_of("t")
    for broker_id in BROKERS:
        if broker_id != leader:
            brokers.all[broker_id].kill()
    wait_until(lambda: brokers.isr_of("t") == {leader}, "the leader is alone in sync", WAIT_S)
    at_once = {"message.send.max.retries": 0}
    assert produce(brokers, "t", ["x"], **at_once) == ["NOT_ENOUGH_REPLICAS"]
    assert produce(brokers, "t", ["y"], **at_once, acks=1) == []


def test_a_leader_that_comes_back_drops_what_nobody_else_had(brokers: Brokers) -> None:
    """Its followers stand still, it takes records with acks=1 and is killed (KIP-101).

    A fetch that waits on the leader is answered, so followers may have a part of it: at most
    `replica.fetch.max.bytes` of the 3 MB. However long they stand still, they stay registered and
    in sync, or none of them could lead afterwards.
    """
    brokers.start(
        others={"zookeeper.session.timeout.ms": "20000"}, **{"replica.lag.time.max.ms": "60000"}
    )
    brokers.create("t")
    assert produce(brokers, "t", ["on all"]) == []
    leader = brokers.leader_of("t")
    followers = [brokers.all[n] for n in BROKERS if n != leader]
    for follower in followers:
        os.kill(follower.pid, signal.SIGSTOP)
    on_one = [f"on one {n:04d} {'.' * 10_000}" for n in range(300)]
    to_leader = {"bootstrap.servers": brokers.all[leader].address}  # the others do not answer
    assert produce(brokers, "t", on_one, acks=1, **to_leader) == []
    brokers.all[leader].kill()
    for follower in followers:
        os.kill(follower.pid, signal.SIGCONT)
    wait_until(lambda: brokers.leader_of("t") not in (-1, leader), "another broker leads", WAIT_S)
    assert produce(brokers, "t", ["on two"]) == []
    brokers.all[leader].start()
    brokers.wait_until_in_sync("t")
    brokers.wait_until_equal("t")
    count = brokers.end_of("t")
    first, *remaining, last = consume(brokers, "t", 1, count)
    assert (first, last) == ("on all", "on two")
    assert remaining == on_one[: len(remaining)]
    assert len(remaining) < len(on_one)
