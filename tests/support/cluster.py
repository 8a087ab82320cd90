"""Clusters for tests of `minibroker/broker/cluster`, and a listener that records its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.cluster import Cluster, ClusterSettings
from minibroker.broker.cluster.codecs import (
    PartitionState,
    TopicAssignment,
    encode_broker,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.image import BrokerInfo, Endpoint, TopicImage
from minibroker.broker.cluster.tree import Create
from minibroker.clock import SystemClock

if TYPE_CHECKING:
    import pytest

    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.kafka.errors import KafkaError


class Recorder:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def on_topic_created(self, topic: TopicImage) -> None:
        self.events.append(("created", topic.name, len(topic.partitions)))

    def on_topic_deleted(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        self.events.append(("deleted", topic.name, evidence.kind))

    def on_topic_missing(self, topic: TopicImage) -> None:
        self.events.append(("missing", topic.name))

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        self.events.append(("added", topic.name, old_count, len(topic.partitions)))

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        self.events.append(("leadership", topic.name, partition))

    def on_steps_begin(self) -> None:
        self.events.append(("steps begin",))

    def on_steps_end(self) -> None:
        self.events.append(("steps end",))

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        self.events.append(("config", entity_type, entity_name))

    def take(self) -> list[tuple[object, ...]]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        return events


def new_cluster(tree: Tree, listener: Recorder, broker_id: int = 0, **options: Any) -> Cluster:
    """Return a cluster of one broker, not started. `options`: those of `ClusterSettings`, and what
    else `Cluster` takes.
    """
    names = options.keys() & set(ClusterSettings.__slots__)
    cluster = Cluster(
        broker_id=broker_id,
        tree=tree,
        clock=SystemClock(),
        settings=ClusterSettings(**{name: options.pop(name) for name in names}),
        endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
        **options,
    )
    cluster.subscribe(listener)
    return cluster


async def add_broker(
    cluster: Cluster, tree: Tree, broker_id: int, *, is_minibroker: bool = True
) -> None:
    """Register a broker that does nothing; the cluster knows it when this returns."""
    endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", 9093),)
    other = BrokerInfo(broker_id, endpoints, is_minibroker=is_minibroker)
    async with cluster._context.lock:
        await tree.create(paths.broker(broker_id), encode_broker(other, 0), ephemeral=True)
        _, stat = await tree.get(paths.broker(broker_id))
        other = other._replace(epoch=stat.czxid)
        await cluster._updater.apply_brokers({**cluster.image.brokers, broker_id: other})


async def stop_following(cluster: Cluster) -> None:
    """End the task that follows the watches: from now on only the test changes the states."""
    await cluster._follower.close()


async def add_topic_of_kafka(
    cluster: Cluster,
    tree: Tree,
    name: str,
    replicas: list[int],
    *,
    leader: int | None = None,
    isr: list[int] | None = None,
) -> None:
    """Write a topic with one partition of several replicas, as Kafka's brokers write it.

    The cluster knows it when this returns. Leader and ISR are the first and all of the replicas
    unless they are given.
    """
    state = PartitionState(
        replicas[0] if leader is None else leader, 0, replicas if isr is None else isr, 1
    )
    topic_id = new_topic_id()
    async with cluster._context.lock:
        await tree.multi(
            [
                Create(paths.topic(name), encode_topic(topic_id, [replicas])),
                Create(paths.partitions(name)),
                Create(paths.partition(name, 0)),
                Create(paths.partition_state(name, 0), encode_state(state)),
            ]
        )
        assignment = TopicAssignment(topic_id, {0: replicas}, {}, {})
        updater = cluster._updater
        partitions = list(updater.known_partitions(name, assignment, [(state, 0)]))
        await updater.apply_topic(TopicImage(name, topic_id, partitions))


def code_of(caught: pytest.ExceptionInfo[KafkaError]) -> tuple[ErrorCode, str | None]:
    return caught.value.code, caught.value.detail
