"""ACLs in the tree: several brokers read and change the same nodes."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.announcements import EXPIRATION_MS
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import ensure_node
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.broker.security import acl_nodes
from minibroker.broker.security.acl_store import AclStore
from minibroker.broker.security.acls import (
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError
from minibroker.rig.clock import MovableClock
from tests.support.in_process import TIMEOUT_S
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.broker.cluster.tree import Tree
    from tests.support.peers import ZooKeeper

_chroots = count()
TOPIC = Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL)
PREFIX = Pattern(ResourceType.GROUP, "app-", PatternType.PREFIXED)
READ = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)
WRITE = Entry("User:bob", "*", Operation.WRITE, Permission.ALLOW)


class Reader:
    """A broker's store, and the ACLs that it knows."""

    def __init__(self, tree: Tree, clock: MovableClock) -> None:
        self.tree = tree
        self.known: dict[Pattern, frozenset[Entry]] = {}
        self.store = AclStore(tree, clock, self.known.__setitem__)

    async def add(self, pattern: Pattern, entry: Entry) -> None:
        await self.store.update(pattern, lambda entries: entries | {entry})


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture(params=["shared", pytest.param("zookeeper", marks=pytest.mark.java)])
def new_tree(
    request: pytest.FixtureRequest, tmp_path: Path, clock: MovableClock
) -> Callable[[], Tree]:
    """Makes sessions with one tree, in this process or in a ZooKeeper; each test has its own."""
    if request.param == "shared":
        return SharedTree(tmp_path / "metadata.db", clock).session
    server: ZooKeeper = request.getfixturevalue("zookeeper")
    connect = f"{server.connect}/acls-{next(_chroots)}"
    return lambda: ZooKeeperTree(connect)


@pytest.fixture
async def readers(new_tree: Callable[[], Tree], clock: MovableClock) -> AsyncIterator[list[Reader]]:
    """Two brokers on one tree, not started."""
    made = [Reader(new_tree(), clock) for _ in range(2)]
    for reader in made:
        await reader.tree.open()
    yield made
    for reader in made:
        await reader.store.close()
        await reader.tree.close()


async def test_acls_are_there_after_a_restart(tmp_path: Path, clock: MovableClock) -> None:
    tree = EmbeddedTree(tmp_path / "metadata.db", SystemClock())
    await tree.open()
    first = Reader(tree, clock)
    await first.store.start()
    await first.add(TOPIC, READ)
    await first.add(PREFIX, WRITE)
    assert await tree.children(acl_nodes.CHANGES[PatternType.LITERAL]) == []
    second = Reader(tree, clock)
    await second.store.start()
    assert second.known == first.known == {TOPIC: {READ}, PREFIX: {WRITE}}
    await tree.close()


async def test_the_other_broker_follows_changes(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    await writer.add(TOPIC, READ)
    await other.store.start()
    assert other.known == {TOPIC: {READ}}
    await writer.add(TOPIC, WRITE)
    await writer.add(PREFIX, READ)
    await eventually(lambda: other.known == {TOPIC: {READ, WRITE}, PREFIX: {READ}})
    await other.store.update(TOPIC, lambda _: frozenset())
    await eventually(lambda: not writer.known[TOPIC])
    assert await writer.tree.exists(acl_nodes.path_of(TOPIC)) is None


async def test_a_change_starts_from_what_another_broker_wrote(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    await other.store.start()
    seen: list[frozenset[Entry]] = []

    def edit(entries: frozenset[Entry]) -> frozenset[Entry]:
        seen.append(entries)
        return entries | {WRITE}

    await writer.add(TOPIC, READ)
    await other.store.update(TOPIC, edit)
    assert seen == [{READ}]
    assert other.known[TOPIC] == {READ, WRITE}


async def test_an_unchanged_pattern_is_not_announced(readers: list[Reader]) -> None:
    writer, _ = readers
    await writer.store.start()
    await writer.add(TOPIC, READ)
    await writer.add(TOPIC, READ)
    assert len(await writer.tree.children(acl_nodes.CHANGES[PatternType.LITERAL])) == 1


@pytest.mark.parametrize("new_tree", ["shared"], indirect=True)  # ZooKeeper's time is not moved
async def test_old_announcements_are_removed(readers: list[Reader], clock: MovableClock) -> None:
    writer, other = readers
    await writer.store.start()
    await other.store.start()
    await writer.add(TOPIC, READ)
    await eventually(lambda: other.known.get(TOPIC) == {READ})
    clock.move(EXPIRATION_MS + 1)
    await writer.add(TOPIC, WRITE)
    changes = acl_nodes.CHANGES[PatternType.LITERAL]
    old = f"{changes}/{acl_nodes.CHANGE_NAME}{0:010d}"
    await eventually(lambda: other.known[TOPIC] == {READ, WRITE})
    async with asyncio.timeout(TIMEOUT_S):
        while await writer.tree.exists(old) is not None:  # noqa: ASYNC110  either removes it
            await asyncio.sleep(0)
    assert len(await writer.tree.children(changes)) == 1


async def test_a_name_with_a_slash_has_nodes(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    long, short = TOPIC._replace(name="a/b"), TOPIC._replace(name="a")
    await writer.add(long, READ)
    await writer.add(short, READ)
    await writer.store.update(short, lambda _: frozenset())
    await other.store.start()
    assert {pattern: entries for pattern, entries in other.known.items() if entries} == {
        long: {READ}
    }


async def test_a_broken_node_keeps_a_broker_from_starting(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    await ensure_node(writer.tree, acl_nodes.path_of(TOPIC), b"{")
    with pytest.raises(CoordinationError, match="/kafka-acl/Topic/orders does not hold ACLs"):
        await other.store.start()


async def test_a_broken_announcement_stops_nobody(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    await other.store.start()
    path, _ = acl_nodes.encode_change(TOPIC)
    await writer.tree.create(path, b"nonsense", sequence=True)
    await writer.add(TOPIC, READ)
    await eventually(lambda: other.known.get(TOPIC) == {READ})
