"""minibroker and Apache Kafka 3.9.1 on one ZooKeeper: each reads the other's nodes."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.cluster import Cluster
from minibroker.broker.cluster.image import Endpoint
from minibroker.broker.cluster.updates import ClusterListener
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.clock import SystemClock
from minibroker.kafka.ids import topic_id_to_text
from tests.support import java
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port
from tests.support.taking_over import wait_until_tree_is_read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]
WAIT_S = 180


class Changes(ClusterListener):
    """A listener that wakes a wait for a condition on the image."""

    def __init__(self, cluster: Cluster) -> None:
        self._changed = asyncio.Event()
        cluster.subscribe(self)

    def _wake(self, *_: object) -> None:
        self._changed.set()

    on_topic_created = on_topic_deleted = on_topic_missing = _wake
    on_partitions_added = on_leadership = on_config_changed = _wake

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Return when the condition is true; it is tried after every change."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await self._changed.wait()
                self._changed.clear()


async def wait_until_childless(tree: ZooKeeperTree, path: str) -> None:
    """Wait until the node has no children; look after every change of them."""
    changed = asyncio.Event()
    cancel = await tree.watch_children(path, changed.set)
    try:
        async with asyncio.timeout(WAIT_S):
            while await tree.children(path):
                await changed.wait()
                changed.clear()
    finally:
        cancel()


def new_cluster(connect: str, broker_id: int) -> tuple[Cluster, ZooKeeperTree]:
    tree = ZooKeeperTree(connect, session_timeout_ms=10_000)
    cluster = Cluster(
        broker_id=broker_id,
        tree=tree,
        clock=SystemClock(),
        endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", free_port())],
    )
    return cluster, tree


async def tool(main_class: str, *arguments: str) -> str:
    """Run one of Kafka's command line classes on a thread and return its output."""
    return await asyncio.to_thread(java.run_java, java.KAFKA_39, main_class, *arguments)


async def test_kafka_reads_records_of_minibroker(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """A tree made by minibroker alone; then Kafka starts on it with the same broker id."""
    connect = f"{zookeeper.connect}/kafka-reads"
    cluster, tree = new_cluster(connect, 0)
    await cluster.start()
    topic = await cluster.create_topic("made.here", 3, configs={"retention.ms": "86400001"})
    await cluster.create_topic("deleted")
    await cluster.delete_topic("deleted")
    await cluster.alter_config("users", "al%20ice/clients/c1", {"producer_byte_rate": "1024"})
    await cluster.alter_config("brokers", "0", {"message.max.bytes": "2000000"})
    last_id = await cluster.producer_ids.next()  # type: ignore[misc]
    cluster_id = cluster.image.cluster_id
    await cluster.close()

    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect)
    await asyncio.to_thread(kafka.start)
    try:
        await asyncio.to_thread(wait_until_tree_is_read, kafka)
        bootstrap = ("--bootstrap-server", kafka.address)
        described = await tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--describe")
        assert re.search(
            rf"Topic: made.here\s+TopicId: {re.escape(topic_id_to_text(topic.topic_id))}"
            r"\s+PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: retention.ms=86400001",
            described,
        ), described
        assert described.count("Leader: 0\tReplicas: 0\tIsr: 0") == 3, described
        assert "deleted" not in described
        configs = "kafka.admin.ConfigCommand"
        quotas = await tool(
            configs, *bootstrap, "--describe", "--entity-type", "users", "--entity-name", "al ice",
            "--entity-type", "clients", "--entity-name", "c1",
        )  # fmt: skip
        assert "producer_byte_rate=1024.0" in quotas
        broker = await tool(
            configs, *bootstrap, "--describe", "--entity-type", "brokers", "--entity-name", "0"
        )
        assert "message.max.bytes=2000000" in broker
        meta = (kafka.log_dir / "meta.properties").read_text()
        assert f"cluster.id={cluster_id}" in meta
        # A producer id from Kafka comes from a later block than ours.
        await tree.open()
        data, _ = await tree.get(paths.PRODUCER_ID_BLOCK)
        assert b'"block_start":"0"' in data
        assert last_id == 0
        await tree.close()
    finally:
        await asyncio.to_thread(kafka.kill)


async def test_minibroker_follows_kafkas_changes(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """Kafka is the controller, minibroker a second broker that sees its topics and configs."""
    connect = f"{zookeeper.connect}/minibroker-reads"
    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect)
    await asyncio.to_thread(kafka.start)
    cluster, tree = new_cluster(connect, 5)
    changes = Changes(cluster)
    topics = "org.apache.kafka.tools.TopicCommand"
    bootstrap = ("--bootstrap-server", kafka.address)
    try:
        options = ("--topic", "before", "--partitions", "2", "--config", "retention.ms=11")
        await tool(topics, *bootstrap, "--create", *options)
        await cluster.start()
        image = cluster.image
        assert (image.controller_id, cluster.is_controller) == (0, False)
        assert set(image.brokers) == {0, 5}
        assert image.brokers[0].endpoints == (Endpoint("PLAINTEXT", "127.0.0.1", kafka.port),)
        assert [partition.leader for partition in image.topics["before"].partitions] == [0, 0]
        assert cluster.config_of("topics", "before") == {"retention.ms": "11"}

        # Created, configured, grown and deleted by Kafka's tools while we look on.
        created = (
            "--topic",
            "while",
            "--replica-assignment",
            "0",
            "--config",
            "segment.bytes=2222",
        )
        await tool(topics, *bootstrap, "--create", *created)
        await changes.wait_until(
            lambda: "while" in image.topics and image.topics["while"].partitions[0].leader == 0
        )
        assert cluster.config_of("topics", "while") == {"segment.bytes": "2222"}
        await tool(
            "kafka.admin.ConfigCommand", *bootstrap, "--alter", "--entity-type", "topics",
            "--entity-name", "while", "--add-config", "retention.ms=33",
        )  # fmt: skip
        await changes.wait_until(
            lambda: cluster.config_of("topics", "while").get("retention.ms") == "33"
        )
        await tool(
            "kafka.admin.ConfigCommand", *bootstrap, "--alter", "--entity-type", "clients",
            "--entity-default", "--add-config", "consumer_byte_rate=44",
        )  # fmt: skip
        await changes.wait_until(lambda: bool(cluster.config_of("clients", paths.DEFAULT_ENTITY)))
        grown = ("--topic", "while", "--partitions", "2", "--replica-assignment", "0,0")
        await tool(topics, *bootstrap, "--alter", *grown)
        await changes.wait_until(
            lambda: [partition.leader for partition in image.topics["while"].partitions] == [0, 0]
        )

        # Asked for by us, done by Kafka's controller.
        ours = await cluster.create_topic("ours", assignment={0: [0]}, timeout_s=WAIT_S)
        assert ours.partitions[0].leader == 0
        description = await tool(topics, *bootstrap, "--describe", "--topic", "ours")
        assert f"TopicId: {topic_id_to_text(ours.topic_id)}" in description
        await cluster.alter_config("topics", "ours", {"retention.ms": "55"})
        await cluster.delete_topic("while", timeout_s=WAIT_S)
        assert "while" not in image.topics
        # Kafka's controller takes the mark away last, after the topic's own nodes.
        await wait_until_childless(tree, "/admin/delete_topics")
        described = await tool(
            "kafka.admin.ConfigCommand", *bootstrap, "--describe", "--entity-type", "topics",
            "--entity-name", "ours",
        )  # fmt: skip
        assert "retention.ms=55" in described
    finally:
        await cluster.close()
        await asyncio.to_thread(kafka.kill)


async def test_kafka_stays_the_controller_until_it_stops(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Kafka was the controller first; then minibroker takes over."""
    connect = f"{zookeeper.connect}/kafka-controls"
    cluster, _ = new_cluster(connect, 5)
    changes = Changes(cluster)
    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect)
    try:
        await asyncio.to_thread(kafka.start)  # ready means: a client was told of a controller
        await cluster.start()
        bootstrap = ("--bootstrap-server", kafka.address)
        created = ("--topic", "by-kafka", "--replica-assignment", "0")
        await tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--create", *created)
        await changes.wait_until(lambda: "by-kafka" in cluster.image.topics)
        assert (cluster.image.controller_id, cluster.is_controller) == (0, False)
        await asyncio.to_thread(kafka.stop)
        await changes.wait_until(lambda: cluster.image.topics["by-kafka"].partitions[0].leader < 0)
        topic_state = await cluster.create_topic("after", timeout_s=WAIT_S)
        assert topic_state.partitions[0].leader == 5
        assert cluster.is_controller
    finally:
        await cluster.close()
        await asyncio.to_thread(kafka.kill)
