"""Metadata are written whole or not at all: a disk that refuses, a writer that is killed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import TopicId
from minibroker.tools.kraft.metadata import (
    NO_ACL_ID,
    ConfigEntity,
    ConfigKind,
    Metadata,
    PartitionValue,
    TopicValue,
)
from minibroker.tools.kraft.tree import read_metadata, write_metadata
from tests.unit.tools.kraft.admin_calls import contents

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.cluster.tree import Tree

CONFIG = BrokerConfig({})
ID, OTHER_ID = TopicId(bytes(range(16))), TopicId(bytes(range(1, 17)))
PARTITION = PartitionValue(replicas=(0,), isr=(0,), leader=0, leader_epoch=4)
TOPIC = TopicValue(ID, (PARTITION,))
READS = Acl(
    Pattern(ResourceType.GROUP, "g", PatternType.LITERAL),
    Entry("User:bob", "*", Operation.READ, Permission.ALLOW),
)
FIRST = Metadata(topics={"t": TOPIC, "gone": TOPIC}, features={"group.version": 1}, epoch=1)
AFTER = Metadata(
    topics={"t": TOPIC._replace(id=OTHER_ID), "new": TopicValue(ID, (PARTITION,) * 2)},
    configs={ConfigEntity(ConfigKind.BROKER, "0"): {"log.cleaner.threads": "2"}},
    acls={READS: NO_ACL_ID},
    features={"group.version": 1},
    next_producer_id=5,
    epoch=2,
)


class FailingDatabase:
    """A connection with SQLite that refuses one statement, counted from 0."""

    def __init__(self, connection: sqlite3.Connection, refused_number: int) -> None:
        self._connection = connection
        self._remaining = refused_number

    def execute(self, *words: Any) -> sqlite3.Cursor:
        if words[0].startswith(("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT")):
            if self._remaining == 0:
                self._remaining -= 1
                raise sqlite3.OperationalError("disk I/O error")
            self._remaining -= 1
        return self._connection.execute(*words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def error_of_write(tree: Tree) -> str | None:
    """Write `AFTER`; return the error, None where there is none."""
    try:
        await write_metadata(tree, AFTER, CONFIG)
    except CoordinationError as error:
        return str(error)
    return None


async def test_a_disk_that_refuses_a_statement_leaves_the_old_tree(tree: EmbeddedTree) -> None:
    await write_metadata(tree, FIRST, CONFIG)
    first_contents = await contents(tree)
    connection = tree._db
    assert connection is not None
    for number in range(1000):
        tree._db = FailingDatabase(connection, number)  # type: ignore[assignment]
        error = await error_of_write(tree)
        tree._db = connection
        if error is None:
            break
        assert "disk I/O error" in error
        assert await contents(tree) == first_contents
    assert number > 10
    assert await read_metadata(tree, CONFIG) == AFTER


_KILLED_WRITER = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.clock import SystemClock
from minibroker.tools.kraft.tree import write_metadata
from tests.unit.tools.kraft.test_tree_interrupted import AFTER

async def write(path, number):
    tree = EmbeddedTree(path, SystemClock())
    await tree.open()
    remaining = number
    def dying(apply):
        def apply_or_die(transaction, operation):
            nonlocal remaining
            result = apply(transaction, operation)
            remaining -= 1
            if remaining < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        return apply_or_die
    tree._apply, tree._create = dying(tree._apply), dying(tree._create)
    await write_metadata(tree, AFTER, BrokerConfig({}))
    os.kill(os.getpid(), signal.SIGKILL)

directory = Path(sys.argv[1])
number, operation_count = 0, int(sys.argv[2])
while number <= operation_count:
    copied = directory / f"{number}.db"
    shutil.copy(directory / "metadata.db", copied)
    child = os.fork()
    if child == 0:
        asyncio.run(write(copied, number))
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    number += 1
"""


def kill_at_each_operation(directory: Path, count: int) -> None:
    """Copy metadata.db to 0.db and so on; in each copy kill a writer behind so many operations."""
    command = [sys.executable, "-c", _KILLED_WRITER, str(directory), str(count)]
    subprocess.run(command, check=True, timeout=120)


async def test_a_kill_at_any_operation_leaves_the_old_tree_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    tree = EmbeddedTree(path, SystemClock())
    await tree.open()
    await write_metadata(tree, FIRST, CONFIG)
    old = await contents(tree)
    await tree.close()
    shutil.copy(path, tmp_path / "new.db")
    tree = EmbeddedTree(tmp_path / "new.db", SystemClock())
    await tree.open()
    count = await write_metadata(tree, AFTER, CONFIG)
    new = await contents(tree)
    await tree.close()
    kill_at_each_operation(tmp_path, count)
    for number in range(count + 1):
        tree = EmbeddedTree(tmp_path / f"{number}.db", SystemClock())
        await tree.open()
        assert await contents(tree) == (old if number < count else new), number
        await tree.close()
