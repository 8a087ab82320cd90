"""Configs of kinds that Kafka keeps in KRaft only: beside the others, but never announced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.clock import SystemClock
from minibroker.cluster.cluster import Cluster
from minibroker.cluster.image import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.cluster.tree import Tree


def make_cluster(tree: Tree) -> Cluster:
    endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
    return Cluster(broker_id=0, tree=tree, clock=SystemClock(), endpoints=endpoints)


async def test_groups_and_client_metrics_are_there_again_after_a_restart(
    new_tree: Callable[[], Tree],
) -> None:
    cluster = make_cluster(new_tree())
    await cluster.start()
    await cluster.alter_config("client-metrics", "all%20apps", {"interval.ms": "1000"})
    await cluster.alter_config("groups", "g", {"share.auto.offset.reset": "earliest"})
    await cluster.close()
    again = make_cluster(new_tree())
    await again.start()
    assert again.config_of("client-metrics", "all%20apps") == {"interval.ms": "1000"}
    assert again.config_of("groups", "g") == {"share.auto.offset.reset": "earliest"}
    await again.close()


async def test_kafka_3_9_is_not_told_of_kinds_it_does_not_know(
    new_tree: Callable[[], Tree],
) -> None:
    """Kafka's ZkConfigManager throws at such a notification, and so at all that follow it."""
    tree = new_tree()
    cluster = make_cluster(tree)
    await cluster.start()
    await cluster.alter_config("client-metrics", "m", {"interval.ms": "1000"})
    assert await tree.children("/config/changes") == []
    await cluster.alter_config("client-metrics", "m", {"interval.ms": None})
    assert await tree.children("/config/client-metrics") == []
    await cluster.close()
