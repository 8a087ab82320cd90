"""Topics that ZooKeeper does not have any more are kept: no log is renamed, and no offset goes.

Three brokers lose a topic's nodes, or the whole tree: it is wiped, or restored from an older copy.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.compat_cluster.three_brokers import IDS, mixed_brokers
from tests.compat_cluster.tree import ClusterTree
from tests.support.broker import Minibroker
from tests.support.peers import ZooKeeper
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.compat_cluster.three_brokers import ThreeBrokers

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
WAIT_S: Final = 180
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "6000",
    # Files of a log that was deleted would be gone at once.
    "file.delete.delay.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
VALUES: Final = [str(number) for number in range(50)]
TOPICS: Final = ("kept", "lost")


on_clusters: Final = pytest.mark.parametrize(
    "kafkas",
    [
        pytest.param(frozenset(), id="minibrokers"),
        pytest.param(frozenset({1}), id="minibroker_controls", marks=pytest.mark.slow),
        pytest.param(frozenset({0}), id="kafka_controls", marks=pytest.mark.slow),
    ],
)
"""Ids of the brokers that are Apache Kafka 3.9.1."""


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    """Yield a ZooKeeper of this test's own."""
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


class Nodes:
    """The tree itself, as somebody with a ZooKeeper client sees it."""

    def __init__(self, address: str) -> None:
        self._address = address

    @contextmanager
    def client(self) -> Iterator[KazooClient]:
        """Yield a client, connected."""
        client = KazooClient(self._address)
        client.start(WAIT_S)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def remove_topic(self, name: str) -> list[tuple[str, bytes]]:
        """Delete the nodes of a topic, the mark of no deletion; return them, parents first."""
        with self.client() as client:
            nodes = list(_below(client, f"/cluster/brokers/topics/{name}"))
            for path, _ in reversed(nodes):
                client.delete(path)
        return nodes

    def write(self, nodes: list[tuple[str, bytes]]) -> None:
        """Make these nodes, all at once: a controller gives a topic without states new ones."""
        with self.client() as client:
            transaction = client.transaction()
            for path, data in nodes:
                transaction.create(path, data or b"")
            assert transaction.commit() == [path for path, _ in nodes]

    def grow_older(self) -> None:
        """Write until the transactions are more than any client has seen before.

        ZooKeeper refuses a client that has seen later ones; in real life other clients write, or
        the clients are restarted.
        """
        with self.client() as client:
            client.ensure_path("/noise")
            for _ in range(1000):
                client.set_async("/noise", b"")
            client.set("/noise", b"")


def _below(client: KazooClient, path: str) -> Iterator[tuple[str, bytes]]:
    yield path, client.get(path)[0]
    for name in sorted(client.get_children(path)):
        yield from _below(client, f"{path}/{name}")


class World:
    """Three brokers, with two topics on all of them and a group that has read both."""

    def __init__(self, brokers: ThreeBrokers, zookeeper: ZooKeeper) -> None:
        self.brokers = brokers
        self.nodes = Nodes(zookeeper.connect)
        self.admin = AdminClient({"bootstrap.servers": brokers.bootstrap})

    def fill(self, *names: str) -> None:
        """Make topics on all brokers, with records and a committed offset each."""
        creations = self.admin.create_topics([NewTopic(name, 2, 3) for name in names])
        for name in names:
            creations[name].result(WAIT_S)
        producer = Producer({"bootstrap.servers": self.brokers.bootstrap, "acks": "all"})
        for name in names:
            for number, value in enumerate(VALUES):
                producer.produce(name, value, partition=number % 2)
        assert producer.flush(WAIT_S) == 0
        consumer = Consumer({"bootstrap.servers": self.brokers.bootstrap, "group.id": "g"})
        consumer.commit(
            offsets=[Place(name, index, 7) for name in names for index in range(2)],
            asynchronous=False,
        )
        consumer.close()
        wait_until(
            lambda: all(self.sizes(n, name) == self.sizes(0, name) for n in IDS for name in names),
            "all replicas have all records",
            WAIT_S,
        )

    def sizes(self, n: int, name: str) -> list[int]:
        """Return the bytes of the segments of a topic on a broker."""
        segments = sorted(self.brokers.log_dir(n).glob(f"{name}-?/*.log"))
        return [segment.stat().st_size for segment in segments]

    def directories(self, n: int) -> set[str]:
        """Return the names of a broker's logs, also of those that are on their way out."""
        paths = self.brokers.log_dir(n).iterdir()
        return {path.name for path in paths if path.is_dir()}

    def known_at(self, n: int) -> set[str]:
        """Return the topics that a broker tells its clients."""
        host, port = self.brokers.address(n)
        admin = AdminClient({"bootstrap.servers": f"{host}:{port}"})
        return set(admin.list_topics(timeout=WAIT_S).topics)

    def read(self, name: str) -> list[str]:
        """Return all records of a topic."""
        consumer = Consumer({"bootstrap.servers": self.brokers.bootstrap, "group.id": "readers"})
        consumer.assign([Place(name, index, 0) for index in range(2)])
        values: list[str] = []
        while len(values) < len(VALUES):
            message = consumer.poll(WAIT_S)
            assert message is not None
            if message.error() is None:
                values.append(str(message.value().decode()))
        consumer.close()
        return sorted(values, key=int)

    def committed(self) -> dict[tuple[str, int], int]:
        """Return the committed offsets of the group."""
        groups = [ConsumerGroupTopicPartitions("g")]
        answer = self.admin.list_consumer_group_offsets(groups)["g"].result(WAIT_S)
        return {(place.topic, place.partition): place.offset for place in answer.topic_partitions}

    def minibrokers(self) -> list[Minibroker]:
        """Return those of the brokers that are minibroker."""
        return [broker for broker in self.brokers._brokers if isinstance(broker, Minibroker)]


@contextmanager
def world_of(kafkas: frozenset[int], tmp_path: Path, zookeeper: ZooKeeper) -> Iterator[World]:
    """Start three brokers, those with the ids in `kafkas` are Apache Kafka; fill two topics."""
    connect = f"{zookeeper.connect}/cluster"
    with ClusterTree(connect) as tree:
        brokers = mixed_brokers(kafkas, tmp_path / "brokers", connect, tree, **SETTINGS)
        try:
            brokers.start_all()
            brokers.make_controller(0)
            world = World(brokers, zookeeper)
            world.fill(*TOPICS)
            yield world
        finally:
            brokers.kill_all()


@on_clusters
def test_a_topic_that_is_removed_by_hand_is_kept_and_served_when_it_is_back(
    tmp_path: Path, zookeeper: ZooKeeper, kafkas: frozenset[int]
) -> None:
    with world_of(kafkas, tmp_path, zookeeper) as world:
        ours = [n for n in IDS if n not in kafkas]
        old_names = {n: world.directories(n) for n in IDS}
        offsets = world.committed()
        assert len(offsets) == 4
        nodes = world.nodes.remove_topic("lost")
        wait_until(
            lambda: all(world.known_at(n) & set(TOPICS) == {"kept"} for n in ours),
            "clients are not told of the topic any more",
            WAIT_S,
        )
        assert {n: world.directories(n) for n in IDS} == old_names
        assert world.committed() == offsets
        if 0 in kafkas:
            return  # Kafka's controller does not take up states that are there already
        world.nodes.write(nodes)
        wait_until(
            lambda: all(set(TOPICS) <= world.known_at(n) for n in ours), "the topic is back", WAIT_S
        )
        assert {n: world.directories(n) for n in IDS} == old_names
        assert world.read("lost") == world.read("kept") == VALUES
        assert world.committed() == offsets


@on_clusters
def test_brokers_whose_zookeeper_comes_back_empty_stop_and_keep_everything(
    tmp_path: Path, zookeeper: ZooKeeper, kafkas: frozenset[int]
) -> None:
    with world_of(kafkas, tmp_path, zookeeper) as world:
        old_state = {n: (world.directories(n), world.sizes(n, "lost")) for n in IDS}
        zookeeper.stop()
        shutil.rmtree(zookeeper.directory / "data")
        zookeeper.start()
        world.nodes.grow_older()
        for broker in world.minibrokers():
            assert broker.process is not None
            assert broker.process.popen.wait(WAIT_S) == 1
            assert "the broker stops and keeps all its logs" in broker.process.log_tail()
        assert {n: (world.directories(n), world.sizes(n, "lost")) for n in IDS} == old_state


@on_clusters
def test_a_topic_that_is_younger_than_the_copy_of_zookeeper_is_kept(
    tmp_path: Path, zookeeper: ZooKeeper, kafkas: frozenset[int]
) -> None:
    """The copy is of the same cluster: the brokers go on, with the topics that it has."""
    copy = tmp_path / "copy"
    with world_of(kafkas, tmp_path, zookeeper) as world:
        ours = [n for n in IDS if n not in kafkas]
        shutil.copytree(zookeeper.directory / "data", copy)
        world.fill("younger")
        old_state = {n: (world.directories(n), world.sizes(n, "younger")) for n in IDS}
        offsets = world.committed()
        zookeeper.stop()
        shutil.rmtree(zookeeper.directory / "data")
        shutil.copytree(copy, zookeeper.directory / "data")
        zookeeper.start()
        world.nodes.grow_older()
        wait_until(
            lambda: all(world.known_at(n).isdisjoint({"younger"}) for n in ours),
            "clients are told of the topics of the copy",
            WAIT_S,
        )
        after: dict[int, Any] = {n: (world.directories(n), world.sizes(n, "younger")) for n in IDS}
        assert after == old_state
        assert world.committed() == offsets
        assert world.read("lost") == VALUES
