"""ACLs in the tree: several brokers read and change the same nodes."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.announcements import EXPIRATION_MS
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import NotEmpty, ensure_node
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.broker.security import acl_nodes
from minibroker.broker.security.acl_entries import Acl, AclFilter, Entry, Pattern
from minibroker.broker.security.acl_store import AclStore
from minibroker.broker.security.acl_words import (
    PatternType,
    Permission,
    from_stored_name,
    stored_name,
    word_of,
)
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError
from minibroker.rig.clock import MovableClock
from tests.support.in_process import TIMEOUT_S
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from minibroker.broker.cluster.tree import Operation as TreeOperation
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
        self.entries: dict[Pattern, frozenset[Entry]] = {}
        self.store = AclStore(tree, clock, self.entries.__setitem__)

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
    new_readers = [Reader(new_tree(), clock) for _ in range(2)]
    for reader in new_readers:
        await reader.tree.open()
    yield new_readers
    for reader in new_readers:
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
    assert second.entries == first.entries == {TOPIC: {READ}, PREFIX: {WRITE}}
    await tree.close()


async def test_the_other_broker_follows_changes(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    await writer.add(TOPIC, READ)
    await other.store.start()
    assert other.entries == {TOPIC: {READ}}
    await writer.add(TOPIC, WRITE)
    await writer.add(PREFIX, READ)
    await eventually(lambda: other.entries == {TOPIC: {READ, WRITE}, PREFIX: {READ}})
    await other.store.update(TOPIC, lambda _: frozenset())
    await eventually(lambda: not writer.entries[TOPIC])
    assert await writer.tree.exists(acl_nodes.path_of(TOPIC)) is None


async def test_a_change_starts_from_what_another_broker_wrote(readers: list[Reader]) -> None:
    writer, other = readers
    await writer.store.start()
    await other.store.start()
    changes: list[frozenset[Entry]] = []

    def edit(entries: frozenset[Entry]) -> frozenset[Entry]:
        changes.append(entries)
        return entries | {WRITE}

    await writer.add(TOPIC, READ)
    await other.store.update(TOPIC, edit)
    assert changes == [{READ}]
    assert other.entries[TOPIC] == {READ, WRITE}


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
    await eventually(lambda: other.entries.get(TOPIC) == {READ})
    clock.move(EXPIRATION_MS + 1)
    await writer.add(TOPIC, WRITE)
    changes = acl_nodes.CHANGES[PatternType.LITERAL]
    old = f"{changes}/{acl_nodes.CHANGE_NAME}{0:010d}"
    await eventually(lambda: other.entries[TOPIC] == {READ, WRITE})
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
    assert {pattern: entries for pattern, entries in other.entries.items() if entries} == {
        long: {READ}
    }


async def test_a_node_that_stays_without_entries_overwrites_no_change(
    readers: list[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another broker writes between the deletion, which its child forbids, and the next try."""
    writer, other = readers
    await writer.store.start()
    await other.store.start()
    long, short = TOPIC._replace(name="a/b"), TOPIC._replace(name="a")
    await writer.add(long, READ)
    await writer.add(short, READ)
    multi = writer.tree.multi

    async def and_write(operations: Sequence[TreeOperation]) -> list[str | int]:
        try:
            return await multi(operations)
        except NotEmpty:
            await other.add(short, WRITE)
            raise

    monkeypatch.setattr(writer.tree, "multi", and_write)
    await writer.store.update(short, lambda entries: entries - {READ})
    assert writer.entries[short] == {WRITE}


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
    await eventually(lambda: other.entries.get(TOPIC) == {READ})


# Paths and values of the nodes of ACLs: Kafka 3.9 reads and writes the same.


LITERAL = Pattern(ResourceType.TRANSACTIONAL_ID, "pay", PatternType.LITERAL)
PREFIXED = Pattern(ResourceType.TOPIC, "orders-", PatternType.PREFIXED)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (LITERAL, "/kafka-acl/TransactionalId/pay"),
        (PREFIXED, "/kafka-acl-extended/prefixed/Topic/orders-"),
        (Pattern(ResourceType.GROUP, "a/b", PatternType.LITERAL), "/kafka-acl/Group/a/b"),
    ],
)
def test_a_pattern_has_a_node(pattern: Pattern, path: str) -> None:
    assert acl_nodes.path_of(pattern) == path
    assert acl_nodes.pattern_of(path) == pattern


@pytest.mark.parametrize("path", ["/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Planet/earth"])
def test_other_nodes_have_no_pattern(path: str) -> None:
    assert acl_nodes.pattern_of(path) is None


def test_acls_are_json_as_kafka_writes_it() -> None:
    entry = Entry("User:a:b", "10.0.0.1", Operation.DESCRIBE_CONFIGS, Permission.DENY)
    value = acl_nodes.encode_entries({entry})
    assert json.loads(value) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:a:b",
                "permissionType": "Deny",
                "operation": "DescribeConfigs",
                "host": "10.0.0.1",
            }
        ],
    }
    assert acl_nodes.decode_entries("/p", value) == {entry}
    assert acl_nodes.decode_entries("/p", b"") == frozenset()


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        b'{"version":1,"acls":[{"principal":"alice","host":"*","operation":"Read",'
        b'"permissionType":"Allow"}]}',
    ],
)
def test_broken_values_are_refused_with_their_path(value: bytes) -> None:
    with pytest.raises(CoordinationError, match="/kafka-acl/Topic/x does not hold ACLs"):
        acl_nodes.decode_entries("/kafka-acl/Topic/x", value)


async def test_acls_and_their_announcement_are_written_at_once(
    readers: list[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was killed between the two would leave the others with the old ACLs."""
    reader = readers[0]
    await reader.store.start()
    written_paths: list[list[str]] = []
    write = reader.tree.multi

    async def note(operations: Sequence[TreeOperation]) -> list[str | int]:
        written_paths.append([operation.path for operation in operations])
        return await write(operations)

    monkeypatch.setattr(reader.tree, "multi", note)
    await reader.add(TOPIC, READ)
    await reader.add(TOPIC, WRITE)
    await reader.store.update(TOPIC, lambda _entries: frozenset())
    paths = [acl_nodes.path_of(TOPIC), acl_nodes.encode_change(TOPIC)[0]]
    assert [path_pair for path_pair in written_paths if len(path_pair) > 1] == [paths, paths, paths]


def test_changes_are_announced_as_kafka_does() -> None:
    path, value = acl_nodes.encode_change(LITERAL)
    assert (path, value) == ("/kafka-acl-changes/acl_changes_", b"TRANSACTIONAL_ID:pay")
    assert acl_nodes.decode_change(path + "1", value) == LITERAL
    path, value = acl_nodes.encode_change(PREFIXED)
    assert path == "/kafka-acl-extended-changes/acl_changes_"
    assert json.loads(value) == {
        "version": 1,
        "resourceType": "TOPIC",
        "name": "orders-",
        "patternType": "PREFIXED",
    }
    assert acl_nodes.decode_change(path + "1", value) == PREFIXED


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/kafka-acl-changes/acl_changes_1", b"TOPIC"),
        ("/kafka-acl-changes/acl_changes_1", b"PLANET:earth"),
        ("/kafka-acl-extended-changes/acl_changes_1", b"{}"),
        ("/kafka-acl-extended-changes/acl_changes_1", b'{"version":2}'),
    ],
)
def test_broken_announcements_are_refused(path: str, value: bytes) -> None:
    with pytest.raises(CoordinationError, match="does not announce a change of ACLs"):
        acl_nodes.decode_change(path, value)


# Codes, names and filters of ACLs.


READ_BY_ALICE = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> Acl:
    return Acl(Pattern(ResourceType.TOPIC, name, pattern_type), READ_BY_ALICE)


def filter_of(name: str | None, pattern_type: PatternType, **others: object) -> AclFilter:
    everything = AclFilter(
        ResourceType.TOPIC, name, pattern_type, None, None, Operation.ANY, Permission.ANY
    )
    return everything._replace(**others)


ACLS = (
    topic("*"),
    topic("orders"),
    topic("orders-eu"),
    topic("ord", PatternType.PREFIXED),
    topic("orders", PatternType.PREFIXED),
    topic("pay", PatternType.PREFIXED),
)


@pytest.mark.parametrize(
    ("acl_filter", "expected"),
    [
        (filter_of(None, PatternType.ANY), "* orders orders-eu ord~ orders~ pay~"),
        (filter_of("orders", PatternType.ANY), "orders orders~"),
        (filter_of("orders", PatternType.LITERAL), "orders"),
        (filter_of("orders", PatternType.PREFIXED), "orders~"),
        (filter_of("orders", PatternType.MATCH), "* orders ord~ orders~"),
        (filter_of("*", PatternType.MATCH), "*"),
        (filter_of(None, PatternType.PREFIXED), "ord~ orders~ pay~"),
        (filter_of("orders", PatternType.LITERAL, resource_type=ResourceType.ANY), "orders"),
        (filter_of("orders", PatternType.LITERAL, resource_type=ResourceType.GROUP), ""),
        (filter_of("orders", PatternType.UNKNOWN), ""),
        (filter_of("orders", PatternType.LITERAL, principal="User:bob"), ""),
        (filter_of("orders", PatternType.LITERAL, principal="User:alice"), "orders"),
        (filter_of("orders", PatternType.LITERAL, host="10.0.0.1"), ""),
        (filter_of("orders", PatternType.LITERAL, operation=Operation.ALL), ""),
        (filter_of("orders", PatternType.LITERAL, operation=Operation.UNKNOWN), ""),
        (filter_of("orders", PatternType.LITERAL, permission=Permission.DENY), ""),
    ],
)
def test_a_filter_finds_acls(acl_filter: AclFilter, expected: str) -> None:
    names = [
        acl.pattern.name + "~" * (acl.pattern.pattern_type is PatternType.PREFIXED)
        for acl in ACLS
        if acl_filter.matches(acl)
    ]
    assert " ".join(names) == expected


def test_a_filter_tells_unknown_codes() -> None:
    assert filter_of(None, PatternType.UNKNOWN).is_pattern_unknown
    assert filter_of(None, PatternType.ANY, permission=Permission.UNKNOWN).is_entry_unknown
    assert not filter_of(None, PatternType.ANY).is_pattern_unknown
    assert not filter_of(None, PatternType.ANY).is_entry_unknown


def test_codes_of_a_later_kafka_are_unknown() -> None:
    assert word_of(Operation, 8) is Operation.DESCRIBE
    assert word_of(Operation, 99) is Operation.UNKNOWN
    assert word_of(ResourceType, -1) is ResourceType.UNKNOWN


@pytest.mark.parametrize(
    ("word", "name"),
    [
        (ResourceType.TRANSACTIONAL_ID, "TransactionalId"),
        (ResourceType.TOPIC, "Topic"),
        (Operation.DESCRIBE_CONFIGS, "DescribeConfigs"),
        (Permission.ALLOW, "Allow"),
    ],
)
def test_names_in_the_tree_are_kafkas(
    word: ResourceType | Operation | Permission, name: str
) -> None:
    assert stored_name(word) == name
    assert from_stored_name(type(word), name) is word
    assert from_stored_name(type(word), name.upper()) is word
    assert from_stored_name(type(word), "Nonsense").name == "UNKNOWN"


def test_an_acl_reads_as_a_sentence() -> None:
    assert str(topic("orders")) == "User:alice from * may READ LITERAL TOPIC orders"
