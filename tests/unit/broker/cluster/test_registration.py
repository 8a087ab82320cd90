"""Parents, cluster id and this broker's own node, over both homes."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.cluster import Cluster, ClusterSettings
from minibroker.broker.cluster.codecs import PartitionState, encode_controller, encode_state
from minibroker.broker.cluster.context import ClusterContext
from minibroker.broker.cluster.image import Endpoint, MetadataImage
from minibroker.broker.cluster.paths import CONTROLLER, broker, partition_state
from minibroker.broker.cluster.registration import create_parents, get_cluster_id
from minibroker.broker.cluster.restart import leave_last_run, let_others_lead
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import Create
from minibroker.broker.cluster.updates import ImageUpdater
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError
from tests.support.cluster import Recorder, add_topic_of_kafka, new_cluster
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.broker.cluster.shared import TreeSession
    from minibroker.broker.cluster.tree import Tree


async def test_parents_are_made_once_and_kept(tree: Tree) -> None:
    await tree.create("/brokers/topics/t", b"kept", make_parents=True)
    await create_parents(tree)
    await create_parents(tree)
    assert all(await tree.get_many(paths.PERSISTENT))
    assert (await tree.get("/brokers/topics/t"))[0] == b"kept"


async def test_cluster_id_is_made_once(tree: Tree) -> None:
    cluster_id = await get_cluster_id(tree, None)
    assert len(cluster_id) == 22
    assert await get_cluster_id(tree, "another") == cluster_id


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
        broker_id=0, tree=tree, clock=SystemClock(), endpoints=[Endpoint("PLAINTEXT", "h", 1)]
    )
    waiting = asyncio.ensure_future(cluster._registration.register(20))
    noticed = asyncio.Event()
    await tree.watch("/brokers/ids/0", noticed.set)
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


# A broker that starts again is treated as gone first, also if it was the controller.


NO_WAIT_S = 0.01
LONG_S = 60.0


class World:
    """Broker 0 is about to start, with a session of an earlier run; broker 1 has another one."""

    def __init__(self, home: SharedTree) -> None:
        self.own = home.session()
        self.other = home.session()

    async def open(self) -> None:
        """Make the nodes that the earlier run of broker 0, the controller, has left."""
        for session in (self.own, self.other):
            await session.open()
        await self.make(self.own, broker(0), registration(9000))
        await self.make(self.own, CONTROLLER, encode_controller(0, 0))
        await self.make(self.own, "/controller_epoch", b"1")
        await self.make(self.own, "/brokers/topics")

    async def make(self, tree: Tree, path: str, data: bytes = b"") -> None:
        is_ephemeral = path in {broker(0), broker(1), CONTROLLER}
        await tree.create(path, data, ephemeral=is_ephemeral, make_parents=True)

    async def nodes(self) -> set[str]:
        paths = (broker(0), CONTROLLER)
        values = await self.own.get_many(paths)
        return {path for path, value in zip(paths, values, strict=True) if value is not None}

    async def close(self) -> None:
        for session in (self.own, self.other):
            await session.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    new_world = World(SharedTree(tmp_path / "metadata.db", SystemClock()))
    await new_world.open()
    yield new_world
    await new_world.close()


def registration(port: int) -> bytes:
    endpoint = f"PLAINTEXT://127.0.0.1:{port}"
    names = {"PLAINTEXT": "PLAINTEXT"}
    value = {"version": 5, "host": "127.0.0.1", "port": port, "timestamp": "0", "jmx_port": -1}
    value |= {"endpoints": [endpoint], "listener_security_protocol_map": names}
    return json.dumps(value).encode()


def context_of(tree: TreeSession) -> ClusterContext:
    return ClusterContext(
        broker_id=0,
        tree=tree,
        updater=ImageUpdater(MetadataImage()),
        clock=SystemClock(),
        log=logging.getLogger(__name__),
    )


async def test_nodes_of_its_own_session_go(world: World) -> None:
    await leave_last_run(context_of(world.own))
    assert await world.nodes() == set()


async def test_nodes_of_another_session_stay(world: World) -> None:
    await leave_last_run(context_of(world.other))
    assert await world.nodes() == {broker(0), CONTROLLER}


async def test_the_controller_of_another_id_stays(world: World) -> None:
    await world.own.set(CONTROLLER, encode_controller(1, 0))
    await leave_last_run(context_of(world.own))
    assert await world.nodes() == {CONTROLLER}


async def test_it_waits_until_it_is_in_no_isr_with_a_registered_broker(world: World) -> None:
    path = partition_state("t", 0)
    await world.make(world.other, broker(1), registration(9001))
    await world.make(world.other, path, encode_state(PartitionState(0, 3, [0, 1], 1)))
    waiting = asyncio.create_task(let_others_lead(context_of(world.own), LONG_S))
    done, _ = await asyncio.wait([waiting], timeout=NO_WAIT_S)
    assert not done
    await world.other.set(path, encode_state(PartitionState(1, 4, [1], 2)))
    await asyncio.wait_for(waiting, LONG_S)


async def test_it_waits_no_longer_than_the_limit_where_no_state_changes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.make(world.other, broker(1), registration(9001))
    state = encode_state(PartitionState(0, 3, [0, 1], 1))
    await world.make(world.other, partition_state("t", 0), state)
    await let_others_lead(context_of(world.own), NO_WAIT_S)
    assert "out of the ISR of 1 partitions" in caplog.text


@pytest.mark.parametrize("isr", [[0], [0, 2]])
async def test_it_does_not_wait_for_brokers_that_are_not_registered(
    world: World, isr: list[int]
) -> None:
    await world.make(world.other, broker(1), registration(9001))
    await world.make(
        world.other, partition_state("t", 0), encode_state(PartitionState(0, 3, isr, 1))
    )
    await asyncio.wait_for(let_others_lead(context_of(world.own), 2 * LONG_S), LONG_S)


async def test_another_broker_leads_what_a_controller_led_that_starts_again(world: World) -> None:
    other = new_cluster(world.other, Recorder(), broker_id=1)
    await other.start()
    await add_topic_of_kafka(other, world.other, "t", [0, 1])
    again = new_cluster(world.own, Recorder(), broker_id=0)
    await again.start()
    try:
        state = json.loads((await world.own.get(partition_state("t", 0)))[0])
        assert (state["leader"], state["isr"], state["leader_epoch"]) == (1, [1], 1)
        assert other.is_controller
        await eventually(lambda: 0 in other.image.brokers)
    finally:
        await again.close()
        await other.close()
