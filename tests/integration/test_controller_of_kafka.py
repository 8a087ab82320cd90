"""minibroker is the controller of an Apache Kafka 3.9.1 broker, which leads and follows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.in_process import RawClient
from tests.support.peers import KafkaPeer
from tests.support.taking_over import wait_until_unregistered
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from confluent_kafka import KafkaError, Message
    from confluent_kafka.admin import PartitionMetadata

    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]

WAIT_S = 180
KAFKA = 2
ALL = {0, 1, KAFKA}
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "100",
    "offsets.topic.num.partitions": "1",
    "replica.fetch.backoff.ms": "100",
    "replica.fetch.wait.max.ms": "100",
}


class Mixed:
    """minibrokers 0 and 1, then Kafka's broker 2; the first is the controller."""

    def __init__(
        self, new_broker: Callable[..., Minibroker], zookeeper: str, directory: Path
    ) -> None:
        self.minibrokers = [
            new_broker(
                f"data-{broker_id}",
                zookeeper=zookeeper,
                settings={**SETTINGS, "broker.id": str(broker_id)},
            )
            for broker_id in (0, 1)
        ]
        self.kafka = KafkaPeer(
            "3.9.1",
            directory / "kafka",
            zookeeper=zookeeper,
            settings={**SETTINGS, "broker.id": str(KAFKA)},
        )
        self.kafka.start()
        addresses = [broker.address for broker in self.minibrokers]
        self.admin = AdminClient({"bootstrap.servers": ",".join([*addresses, self.kafka.address])})
        self.wait_for_brokers(3)

    def wait_for_brokers(self, count: int) -> None:
        wait_until(
            lambda: len(self.admin.list_topics(timeout=WAIT_S).brokers) == count,
            f"{count} brokers",
            WAIT_S,
        )

    @property
    def controller(self) -> int:
        return int(self.admin.list_topics(timeout=WAIT_S).controller_id)

    def create(self, name: str, partitions: int, **configs: str) -> None:
        topic = NewTopic(name, partitions, 3, config=configs)
        self.admin.create_topics([topic])[name].result(WAIT_S)

    def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Return the partitions that the asked broker knows, maybe not all yet."""
        return list(self.admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions.values())

    def leaders(self, topic: str) -> set[int]:
        return {partition.leader for partition in self.partitions(topic)}

    def wait_until_in_sync(self, topic: str, count: int) -> None:
        def are_in_sync() -> bool:
            states = self.partitions(topic)
            return len(states) == count and all(set(state.isrs) == ALL for state in states)

        wait_until(are_in_sync, f"all replicas of {topic} are in sync", WAIT_S)

    def wait_for_leaders(self, topic: str, leaders: set[int]) -> None:
        wait_until(lambda: self.leaders(topic) == leaders, f"{leaders} lead {topic}", WAIT_S)

    def elect_preferred(self, topic: str, partitions: int) -> None:
        """Have the preferred replicas elected, and wait until each broker leads again."""
        names = [TopicPartition(topic, index) for index in range(partitions)]
        self.admin.elect_leaders(ElectionType.PREFERRED, names).result(WAIT_S)
        self.wait_for_leaders(topic, ALL)

    def wait_until_equal(self, topic: str, partitions: int) -> None:
        """Wait until all replicas have the same bytes, and some."""
        directories = [*(broker.data_dir for broker in self.minibrokers), self.kafka.log_dir]

        def are_equal(index: int) -> bool:
            logs = [
                b"".join(
                    segment.read_bytes()
                    for segment in sorted((directory / f"{topic}-{index}").glob("*.log"))
                )
                for directory in directories
            ]
            return bool(logs[0]) and logs[0] == logs[1] == logs[2]

        for index in range(partitions):
            wait_until(
                lambda index=index: are_equal(index),  # type: ignore[misc]
                f"the replicas of {topic}-{index} are equal",
                WAIT_S,
            )

    def produce(self, topic: str, count: int, partitions: int) -> None:
        """Produce to each partition, and wait for every answer."""
        errors: list[KafkaError] = []

        def note_result(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                errors.append(error)

        producer = Producer(
            {
                "bootstrap.servers": f"{self.minibrokers[1].address},{self.kafka.address}",
                "linger.ms": 1,
                "enable.idempotence": True,
            }
        )
        for number in range(count):
            producer.produce(
                topic, f"{number}", partition=number % partitions, on_delivery=note_result
            )
        assert producer.flush(WAIT_S) == 0
        assert errors == []


@pytest.fixture
def mixed(
    request: pytest.FixtureRequest,
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    tmp_path: Path,
) -> Iterator[Mixed]:
    cluster = Mixed(new_broker, f"{zookeeper.connect}/{request.node.name}", tmp_path)
    yield cluster
    cluster.kafka.kill()


async def producer_id_of(address: str) -> int:
    """Return a new producer id of the broker at this address, -1 while it has none."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    async with RawClient(reader, writer, "raw") as client:
        answer = await client.call(InitProducerIdRequest(transactional_id=None), 1)
        return -1 if answer.error_code else int(answer.producer_id)


def test_kafka_leads_and_follows_under_minibroker(
    mixed: Mixed, zookeeper: ZooKeeper, request: pytest.FixtureRequest
) -> None:
    assert mixed.controller == 0
    mixed.create("t", 3, **{"min.insync.replicas": "2"})
    mixed.wait_until_in_sync("t", 3)
    mixed.wait_for_leaders("t", ALL)
    mixed.produce("t", 300, 3)
    mixed.wait_until_equal("t", 3)
    wait_until(lambda: asyncio.run(producer_id_of(mixed.kafka.address)) >= 0, "an id", WAIT_S)

    # Kafka dies and comes back; others lead meanwhile.
    mixed.kafka.kill()
    wait_until_unregistered(zookeeper, request.node.name, KAFKA)
    mixed.wait_for_leaders("t", {0, 1})
    mixed.produce("t", 300, 3)
    mixed.kafka.start()
    mixed.wait_until_in_sync("t", 3)
    mixed.elect_preferred("t", 3)
    mixed.produce("t", 300, 3)
    mixed.wait_until_equal("t", 3)

    # It stops cleanly: the controller lets others lead first.
    mixed.kafka.stop()
    mixed.wait_for_leaders("t", {0, 1})
    mixed.kafka.start()
    mixed.wait_until_in_sync("t", 3)
    assert mixed.controller == 0

    # A topic goes from all disks.
    mixed.admin.delete_topics(["t"])["t"].result(WAIT_S)
    wait_until(lambda: not (mixed.kafka.log_dir / "t-0").exists(), "Kafka's log goes", WAIT_S)


def test_the_controller_moves_to_kafka_and_back(mixed: Mixed) -> None:
    mixed.create("t", 3)
    mixed.wait_until_in_sync("t", 3)
    mixed.produce("t", 300, 3)
    assert mixed.controller == 0
    # The controller last: two elections in a few ms may leave Kafka without a look at the second,
    # and no node changes any more.
    for broker in reversed(mixed.minibrokers):
        broker.stop()
    wait_until(lambda: mixed.controller == KAFKA, "Kafka is the controller", WAIT_S)
    for broker in mixed.minibrokers:
        broker.start()
    mixed.wait_for_brokers(3)
    mixed.wait_until_in_sync("t", 3)
    assert mixed.controller == KAFKA
    mixed.produce("t", 300, 3)
    mixed.kafka.stop()
    wait_until(lambda: mixed.controller in {0, 1}, "minibroker is the controller", WAIT_S)
    mixed.kafka.start()
    mixed.wait_for_brokers(3)
    mixed.wait_until_in_sync("t", 3)
    mixed.elect_preferred("t", 3)
    mixed.produce("t", 300, 3)
    mixed.wait_until_equal("t", 3)
