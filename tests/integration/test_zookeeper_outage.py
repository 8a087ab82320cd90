"""A serving broker while ZooKeeper is away, wrong, slow or back again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.cluster import Cluster, ClusterSettings
from minibroker.broker.cluster.image import Endpoint
from minibroker.broker.cluster.tree import Create, SessionEvent, Set
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from tests.support.peers import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.java
SESSION_TIMEOUT_MS = 10_000
WAIT_S = 180
OWN_S = 10
"""Less than the default time-out of a session: who waits for the old session fails."""


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    """Yield a ZooKeeper of this test's own."""
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


def addresses(zookeeper: ZooKeeper) -> str:
    """Return the address of a ZooKeeper that is stopped and started, three times.

    ZooKeeper never answers a connection that comes while it starts: its log has a
    NullPointerException then. A client waits for the answer as long as its session lasts, divided
    by the number of addresses: with one the session would be over.
    """
    return ",".join([zookeeper.connect] * 3)


@pytest.fixture
async def tree(zookeeper: ZooKeeper) -> AsyncIterator[ZooKeeperTree]:
    """Yield an open client."""
    zookeeper_tree = ZooKeeperTree(
        addresses(zookeeper) + "/base", session_timeout_ms=SESSION_TIMEOUT_MS
    )
    await zookeeper_tree.open()
    yield zookeeper_tree
    await zookeeper_tree.close()


class Sessions:
    """Collects session events and waits for one."""

    def __init__(self, tree: ZooKeeperTree) -> None:
        self.events: list[SessionEvent] = []
        self._changed = asyncio.Event()
        tree.on_session(self._on_session)

    def _on_session(self, event: SessionEvent) -> None:
        self.events.append(event)
        self._changed.set()

    async def wait_for(self, event: SessionEvent) -> None:
        """Return when the event has been seen."""
        async with asyncio.timeout(WAIT_S):
            while event not in self.events:
                await self._changed.wait()
                self._changed.clear()


async def test_short_outage_keeps_the_session(zookeeper: ZooKeeper, tree: ZooKeeperTree) -> None:
    """Back within the session's time: operations are refused at once meanwhile, then go on."""
    sessions = Sessions(tree)
    await tree.create("/me", ephemeral=True)
    watched = asyncio.Event()
    await tree.watch("/data", watched.set)
    session_id = tree.session_id
    zookeeper.stop()
    await sessions.wait_for(SessionEvent.SUSPENDED)
    for call in (tree.get("/me"), tree.get_many(["/me", "/data"]), tree.watch("/other", print)):
        # A first step that ends it: it waits for nothing, however slow the machine.
        with pytest.raises(CoordinationError, match="cannot be reached now"):
            call.send(None)
    zookeeper.start()
    await sessions.wait_for(SessionEvent.RESUMED)
    assert tree.session_id == session_id
    stat = await tree.exists("/me")
    assert stat is not None
    assert stat.ephemeral_owner == session_id
    async with asyncio.timeout(WAIT_S):
        await watched.wait()  # fires once after a reconnection
        watched.clear()
        await tree.create("/data")
        await watched.wait()  # and is armed again


async def test_empty_values_are_null_as_kafka_writes_them(
    zookeeper: ZooKeeper, tree: ZooKeeperTree
) -> None:
    """Kafka reads a block of producer ids out of an empty value, and none out of null."""
    from kazoo.client import KazooClient  # noqa: PLC0415

    await tree.create("/created")
    await tree.multi([Create("/in-multi"), Create("/set", b"x"), Set("/set", b"")])

    def read() -> list[object]:
        client = KazooClient(zookeeper.connect)
        client.start()
        values = [client.get(f"/base/{name}")[0] for name in ("created", "in-multi", "set")]
        client.stop()
        client.close()
        return values

    assert await asyncio.to_thread(read) == [None, None, None]


async def test_unanswered_operation_ends(zookeeper: ZooKeeper, tree: ZooKeeperTree) -> None:
    """A server hangs with its port open: the caller gets an error within the operation's time."""
    assert zookeeper.process is not None
    zookeeper.process.popen.send_signal(signal.SIGSTOP)
    pid = zookeeper.process.popen.pid
    await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED)  # all of its threads
    try:
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(CoordinationError):
                await tree.get("/")
    finally:
        zookeeper.process.popen.send_signal(signal.SIGCONT)


class OneCluster:
    """A cluster with its tree, and a listener that ignores changes."""

    def __init__(self, address: str, broker_id: int = 0) -> None:
        self.tree = ZooKeeperTree(address, session_timeout_ms=SESSION_TIMEOUT_MS)
        self.cluster = Cluster(
            broker_id=broker_id,
            tree=self.tree,
            clock=SystemClock(),
            endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
            settings=ClusterSettings(registration_timeout_s=SESSION_TIMEOUT_MS / 1000 + 5),
        )
        self.sessions = Sessions(self.tree)


async def wait_registered(tree: ZooKeeperTree, path: str, owner: int) -> None:
    """Return when the node is there and belongs to this session."""
    changed = asyncio.Event()
    cancel = await tree.watch(path, changed.set)
    async with asyncio.timeout(WAIT_S):
        while True:
            stat = await tree.exists(path)
            if stat is not None and stat.ephemeral_owner == owner:
                break
            await changed.wait()
            changed.clear()
    cancel()


async def test_expired_session_is_renewed_with_everything_it_held(zookeeper: ZooKeeper) -> None:
    """The session is ended from outside: broker id, controller and watches come back."""
    cluster = OneCluster(zookeeper.connect)
    await cluster.cluster.start()
    await cluster.cluster.create_topic("before")
    first_id = await cluster.cluster.producer_ids.next()  # type: ignore[misc]
    first_epoch = cluster.cluster.image.controller_epoch
    old_session = cluster.tree.session_id

    await cluster.tree.lose_session()
    await cluster.sessions.wait_for(SessionEvent.RENEWED)

    assert cluster.tree.session_id != old_session
    await wait_registered(cluster.tree, "/brokers/ids/0", cluster.tree.session_id)
    await wait_registered(cluster.tree, "/controller", cluster.tree.session_id)
    async with cluster.cluster._context.lock:  # the follower has finished its step
        pass
    assert cluster.cluster.is_controller
    assert cluster.cluster.image.controller_epoch == first_epoch + 1
    assert "before" in cluster.cluster.image.topics
    topic = await cluster.cluster.create_topic("after")
    assert topic.partitions[0].controller_epoch == first_epoch + 1
    assert cluster.cluster.producer_ids.next() == first_id + 1
    await cluster.cluster.close()


async def test_outage_while_serving(zookeeper: ZooKeeper) -> None:
    """Reading goes on, known ids are given out, writes get retriable errors; all recovers."""
    cluster = OneCluster(addresses(zookeeper))
    await cluster.cluster.start()
    await cluster.cluster.create_topic("t")
    first = await cluster.cluster.producer_ids.next()  # type: ignore[misc]
    zookeeper.stop()
    await cluster.sessions.wait_for(SessionEvent.SUSPENDED)

    assert cluster.cluster.image.topics["t"].partitions[0].leader == 0
    assert cluster.cluster.producer_ids.next() == first + 1
    with pytest.raises(CoordinationError):
        await cluster.cluster.create_topic("u")
    with pytest.raises(CoordinationError):
        await cluster.cluster.alter_config("topics", "t", {"retention.ms": "1"})
    for _ in range(998):
        cluster.cluster.producer_ids.next()
    with pytest.raises(KafkaError) as caught:
        await cluster.cluster.producer_ids.next()  # type: ignore[misc]
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    zookeeper.start()
    await cluster.sessions.wait_for(SessionEvent.RESUMED)
    await cluster.cluster.create_topic("u")
    assert await cluster.cluster.producer_ids.next() == first + 1000  # type: ignore[misc]
    await cluster.cluster.close()


async def test_closing_while_zookeeper_is_away_ends(zookeeper: ZooKeeper) -> None:
    cluster = OneCluster(zookeeper.connect)
    await cluster.cluster.start()
    zookeeper.stop()
    await cluster.sessions.wait_for(SessionEvent.SUSPENDED)
    async with asyncio.timeout(WAIT_S):
        await cluster.cluster.close()


async def test_taken_broker_id_is_one_sentence(zookeeper: ZooKeeper) -> None:
    first, second = OneCluster(zookeeper.connect), OneCluster(zookeeper.connect)
    await first.cluster.start()
    second.cluster._settings = ClusterSettings(registration_timeout_s=0.5)
    with pytest.raises(
        CoordinationError, match=r"broker id 0 is registered by another process \(127.0.0.1:9092\)"
    ):
        await second.cluster.start()
    assert first.cluster.is_controller
    await first.cluster.close()


_KILLED = """
import asyncio, os, sys
from minibroker.clock import SystemClock
from minibroker.broker.cluster.cluster import Cluster, ClusterSettings
from minibroker.broker.cluster.image import Endpoint
from minibroker.broker.cluster.zookeeper import ZooKeeperTree

async def main() -> None:
    tree = ZooKeeperTree(sys.argv[1], session_timeout_ms=4000)
    cluster = Cluster(broker_id=0, tree=tree, clock=SystemClock(),
                      endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092)])
    await cluster.start()
    await cluster.create_topic("t")
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_restart_after_kill_9_waits_for_the_old_session(zookeeper: ZooKeeper) -> None:
    """Kafka fails with "node exists" here; we wait for the old registration to end."""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", _KILLED, zookeeper.connect], check=False
    )
    assert done.returncode == -9
    again = OneCluster(zookeeper.connect)
    await again.cluster.start()
    assert again.cluster.is_controller
    partition = again.cluster.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch) == (0, 0)
    await again.cluster.close()


async def test_session_kept_in_the_data_directory_is_taken_up_at_once(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """After a kill a start with the session's file waits for no old session: its nodes are ours."""
    path = tmp_path / "session"
    script = _KILLED.replace(
        "session_timeout_ms=4000", f"session_file=__import__('pathlib').Path({str(path)!r})"
    )
    command = [sys.executable, "-c", script, zookeeper.connect]
    done = await asyncio.to_thread(subprocess.run, command, check=False)
    assert done.returncode == -9
    tree = ZooKeeperTree(zookeeper.connect, session_file=path)
    again = Cluster(
        broker_id=0,
        tree=tree,
        clock=SystemClock(),
        settings=ClusterSettings(registration_timeout_s=OWN_S),
    )
    await again.start()
    assert again.is_controller
    assert again.image.controller_epoch == 2
    assert again.image.topics["t"].partitions[0].leader == 0
    await again.close()
    assert not path.exists()


async def test_a_broker_that_takes_up_its_session_again_is_noticed_by_the_controller(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """The new process replaces the registration at once: for the controller, a bounce."""
    first = OneCluster(zookeeper.connect, 1)
    await first.cluster.start()

    def second() -> Cluster:
        tree = ZooKeeperTree(zookeeper.connect, session_file=tmp_path / "session")
        return Cluster(
            broker_id=2,
            tree=tree,
            clock=SystemClock(),
            settings=ClusterSettings(registration_timeout_s=OWN_S),
        )

    killed, again = second(), second()
    await killed.start()
    async with asyncio.timeout(WAIT_S):
        while 2 not in first.cluster.image.brokers:  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)
    await first.cluster.create_topic("t", assignment={0: [2]})
    async with first.cluster._context.lock:  # the controller looks when all of it is done
        await killed.abandon()
        await again.start()
    await first.cluster._updater.wait_for_topic(
        "t", lambda topic: topic is not None and topic.partitions[0].leader_epoch == 2, WAIT_S
    )
    assert first.cluster.image.topics["t"].partitions[0].leader == 2
    await again.close()
    await first.cluster.close()


async def test_two_brokers_see_each_other(zookeeper: ZooKeeper) -> None:
    """Registration, topics, configs and deletions are seen; the second becomes controller."""
    first, second = OneCluster(zookeeper.connect, 1), OneCluster(zookeeper.connect, 2)
    await first.cluster.start()
    await second.cluster.start()
    assert second.cluster.image.controller_id == 1
    assert set(second.cluster.image.brokers) == {1, 2}
    await first.cluster._updater.wait_for_topic("none", lambda topic: topic is None, WAIT_S)

    created = await second.cluster.create_topic("t", 2, assignment={0: [2], 1: [1]})
    assert [partition.leader for partition in created.partitions] == [2, 1]
    await first.cluster._updater.wait_for_topic("t", lambda topic: topic is not None, WAIT_S)
    assert first.cluster.image.topics["t"].topic_id == created.topic_id
    grown = await second.cluster.topics.add_partitions("t", 3, [[2]])
    assert grown.partitions[2].leader == 2

    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    first.cluster.subscribe(ConfigQueue(heard))
    await second.cluster.alter_config("topics", "t", {"retention.ms": "7"})
    async with asyncio.timeout(WAIT_S):
        assert await heard.get() == ("topics", "t")
    assert first.cluster.config_of("topics", "t") == {"retention.ms": "7"}

    await first.cluster.close()
    await second.cluster._updater.wait_for_topic(
        "t", lambda topic: topic is not None and topic.partitions[1].leader == -1, WAIT_S
    )
    assert second.cluster.is_controller
    assert second.cluster.image.topics["t"].partitions[1].offline == [1]
    await second.cluster.delete_topic("t")
    await second.cluster.close()


class ConfigQueue:
    """A listener for configs only."""

    def __init__(self, queue: asyncio.Queue[tuple[str, str]]) -> None:
        self.queue = queue

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        self.queue.put_nowait((entity_type, entity_name))

    def __getattr__(self, name: str) -> object:
        return lambda *_: None
