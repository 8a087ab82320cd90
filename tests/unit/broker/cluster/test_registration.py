"""Parents, cluster id and this broker's own node, over both homes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.cluster import Cluster, ClusterSettings
from minibroker.broker.cluster.image import Endpoint
from minibroker.broker.cluster.registration import create_parents, get_cluster_id
from minibroker.broker.cluster.tree import Create
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.tree import Tree


async def test_parents_are_made_once_and_kept(tree: Tree) -> None:
    await tree.create("/brokers/topics/t", b"kept", make_parents=True)
    await create_parents(tree)
    await create_parents(tree)
    assert all(await tree.get_many(paths.PERSISTENT))
    assert (await tree.get("/brokers/topics/t"))[0] == b"kept"


async def test_cluster_id_is_made_once(tree: Tree) -> None:
    made = await get_cluster_id(tree, None)
    assert len(made) == 22
    assert await get_cluster_id(tree, "another") == made


async def test_registration_of_another_broker_is_not_taken_over(tree: Tree) -> None:
    """A node that no session of ours made stays; the message names its address."""
    await create_parents(tree)
    other = (
        b'{"version":5,"endpoints":["PLAINTEXT://other:1"],"host":"other","port":1,"jmx_port":-1}'
    )
    await tree.create("/brokers/ids/0", other)
    cluster = Cluster(
        broker_id=0,
        tree=tree,
        clock=SystemClock(),
        settings=ClusterSettings(registration_timeout_s=0.05),
    )
    with pytest.raises(CoordinationError, match=r"registered by another process \(other:1\)"):
        await cluster._registration.register(0.05)
    assert (await tree.get("/brokers/ids/0"))[0] == other


async def test_registration_waits_for_the_old_node_to_go(tree: Tree) -> None:
    await create_parents(tree)
    await tree.create("/brokers/ids/0", b"{}")
    cluster = Cluster(
        broker_id=0,
        tree=tree,
        clock=SystemClock(),
        endpoints=[Endpoint("PLAINTEXT", "h", 1)],
    )
    waiting = asyncio.ensure_future(cluster._registration.register(20))
    seen = asyncio.Event()
    await tree.watch("/brokers/ids/0", seen.set)
    await tree.delete("/brokers/ids/0")
    await waiting
    stat = await tree.exists("/brokers/ids/0")
    assert stat is not None
    assert cluster.this_broker.epoch == stat.czxid


async def test_own_node_is_replaced_after_a_lost_reply(tree: Tree) -> None:
    """The node is there and ours: it was made by a request whose answer never came."""
    await create_parents(tree)
    await tree.multi([Create("/brokers/ids/0", b"{}", ephemeral=True)])
    cluster = Cluster(broker_id=0, tree=tree, clock=SystemClock())
    await cluster._registration.register(5)
    assert (await tree.get("/brokers/ids/0"))[0] != b"{}"
    await cluster._registration.unregister()
    await cluster._registration.unregister()
    assert await tree.exists("/brokers/ids/0") is None


async def test_proposed_cluster_id_counts_only_in_a_new_tree(new_tree: Callable[[], Tree]) -> None:
    for proposal in ("first-proposal", "second-proposal"):
        cluster = Cluster(
            broker_id=0,
            tree=new_tree(),
            clock=SystemClock(),
            settings=ClusterSettings(cluster_id=proposal),
        )
        cluster.set_endpoints([Endpoint("PLAINTEXT", "h", 1)])
        await cluster.start()
        assert cluster.image.cluster_id == "first-proposal"
        assert cluster.image.brokers[0].endpoints == (Endpoint("PLAINTEXT", "h", 1),)
        await cluster.close()
