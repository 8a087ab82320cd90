"""Properties of the SQLite home: one process at a time, kill -9, a foreign file."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from minibroker.broker.cluster import embedded
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.tree import Create, EphemeralParent, NodeExists, NoNode, Set
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError

_WRITER = """
import asyncio, sys
from pathlib import Path
from minibroker.clock import SystemClock
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.tree import Create

async def main() -> None:
    tree = EmbeddedTree(Path(sys.argv[1]), SystemClock())
    await tree.open()
    await tree.create("/me", ephemeral=True)
    number = 0
    while True:
        await tree.multi([Create(f"/t{number}"), Create(f"/t{number}/state", b"x" * 50)])
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


def open_tree(path: Path) -> EmbeddedTree:
    return EmbeddedTree(path, SystemClock())


def write_until_killed(path: Path, count: int) -> int:
    """Number of the last node that a process reported before it was killed at number `count`."""
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        for line in writer.stdout:
            acknowledged = int(line)
            if acknowledged == count:
                writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        return acknowledged


async def test_acknowledged_nodes_survive_kill_9(tmp_path: Path) -> None:
    """A process makes and reports nodes until it is killed; every reported one is there, whole."""
    path = tmp_path / "metadata.db"
    acknowledged = write_until_killed(path, 300)
    tree = open_tree(path)
    await tree.open()
    assert acknowledged >= 300
    for number in range(acknowledged + 1):
        assert (await tree.get(f"/t{number}/state"))[0] == b"x" * 50
    assert await tree.exists("/me") is None
    await tree.close()


def modes_of(path: Path) -> dict[str, int]:
    """Return the permissions of the files of a tree, by the end of their names."""
    return {
        suffix: path.with_name(f"{path.name}{suffix}").stat().st_mode & 0o777
        for suffix in ("", "-wal", "-shm")
    }


async def test_the_file_is_this_users_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may hold passwords that were altered while the broker ran."""
    path = tmp_path / "metadata.db"
    tree = open_tree(path)
    await tree.open()
    await tree.create("/password", b"secret")
    assert modes_of(path) == {"": 0o600, "-wal": 0o600, "-shm": 0o600}
    assert caplog.messages == []
    await tree.close()


async def test_a_file_that_others_could_read_is_taken_away_from_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metadata.db"
    write_until_killed(path, 3)
    for suffix in modes_of(path):
        path.with_name(f"{path.name}{suffix}").chmod(0o644)
    tree = open_tree(path)
    await tree.open()
    assert modes_of(path) == {"": 0o600, "-wal": 0o600, "-shm": 0o600}
    assert caplog.messages == [
        f"other users could read the metadata file {path}, which may hold passwords: now it is"
        " readable by its owner only"
    ]
    await tree.close()


async def test_a_file_of_another_owner_is_used_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metadata.db"
    path.touch(mode=0o664)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    tree = open_tree(path)
    await tree.open()
    assert caplog.messages == [
        f"other users can read the metadata file {path}, which may hold passwords, and its mode"
        " cannot be changed: Operation not permitted"
    ]
    await tree.close()


async def test_second_process_is_refused(tmp_path: Path) -> None:
    tree = open_tree(tmp_path / "metadata.db")
    await tree.open()
    with pytest.raises(CoordinationError, match="in use by another process"):
        await open_tree(tmp_path / "metadata.db").open()
    await tree.create("/still-works")
    await tree.close()
    again = open_tree(tmp_path / "metadata.db")
    await again.open()
    await again.close()


async def test_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(CoordinationError, match="cannot open the metadata file"):
        await open_tree(path).open()
    assert path.read_bytes() == b"this is not a database" * 100


async def test_missing_directory_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CoordinationError, match="No such file or directory"):
        await open_tree(tmp_path / "nowhere" / "metadata.db").open()


async def test_checkpoint_keeps_the_log_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a checkpoint the write-ahead log is written from its beginning again."""
    monkeypatch.setattr(embedded, "CHECKPOINT_OPERATIONS", 10)
    path = tmp_path / "metadata.db"
    tree = open_tree(path)
    await tree.open()
    sizes = []
    for burst in range(5):
        for number in range(20):
            await tree.create(f"/b{burst}-{number}", bytes(200))
        await tree.flush()
        sizes.append((tmp_path / "metadata.db-wal").stat().st_size)
    assert sizes[-1] <= 2 * sizes[0]
    await tree.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM node").fetchone() == (101,)
    db.close()


async def test_failed_write_leaves_tree_and_file_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = open_tree(tmp_path / "metadata.db")
    await tree.open()
    await tree.create("/a")
    assert tree._db is not None
    tree._db.execute("PRAGMA max_page_count = 1")  # as a full disk
    with pytest.raises(CoordinationError, match="could not be written"):
        await tree.multi([Create("/b"), Create("/b/c", os.urandom(100_000))])
    tree._db.execute("PRAGMA max_page_count = 1000000")
    with pytest.raises(NoNode):
        await tree.get("/b")
    await tree.create("/b")
    await tree.close()


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE node (number INTEGER)")
    theirs.close()
    with pytest.raises(CoordinationError, match="cannot open the metadata file"):
        await open_tree(path).open()


async def test_a_disk_that_refuses_the_goodbye_leaves_it_to_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metadata.db"
    tree = open_tree(path)
    await tree.open()
    await tree.create("/kept", b"x")
    await tree.create("/me", ephemeral=True)
    assert tree._db is not None
    tree._db.execute("PRAGMA query_only = ON")
    await tree.close()
    assert "could not be closed, the next start recovers it: attempt to write" in caplog.text
    again = open_tree(path)
    await again.open()
    assert (await again.get("/kept"))[0] == b"x"
    assert await again.exists("/me") is None
    await again.close()


async def test_a_flush_behind_a_write_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded, "FLUSH_DELAY_S", 0)
    tree = open_tree(tmp_path / "metadata.db")
    await tree.open()
    noticed = asyncio.Event()

    def refuse(_fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    note_flushed = tree._note_flushed

    def note(flush: asyncio.Future[None]) -> None:
        note_flushed(flush)
        noticed.set()

    monkeypatch.setattr(tree, "_note_flushed", note)
    await tree.create("/t")
    await asyncio.wait_for(noticed.wait(), 60)
    assert "could not be flushed: [Errno 5] Input/output error" in caplog.text
    await tree.close()


# Nodes of one transaction are inserted together, and refused one by one.


@pytest.mark.parametrize(
    ("operations", "error", "path"),
    [
        ([Create("/new"), Create("/old"), Create("/more")], NodeExists, "/old"),
        ([*(Create(f"/new{number}") for number in range(20)), Create("/old")], NodeExists, "/old"),
        ([Create("/old/a"), Create("/old/a/b"), Create("/old/a")], NodeExists, "/old/a"),
        ([Create("/new"), Create("/new")], NodeExists, "/new"),
        ([Create("/new"), Create("/new/a"), Create("/new/a")], NodeExists, "/new/a"),
        ([Create("/old"), Create("/absent/a")], NodeExists, "/old"),
        ([Create("/old"), Set("/absent", b"")], NodeExists, "/old"),
        ([Create("/absent/a"), Create("/old")], NoNode, "/absent"),
        ([Create("/brief", ephemeral=True), Create("/brief/a")], EphemeralParent, "/brief/a"),
    ],
)
async def test_the_first_refused_node_is_named(
    tmp_path: Path, operations: list[Create | Set], error: type[Exception], path: str
) -> None:
    tree = open_tree(tmp_path / "tree")
    await tree.open()
    await tree.create("/old")
    with pytest.raises(error) as caught:
        await tree.multi(operations)
    assert caught.value.args == (path,)
    assert await tree.children("/") == ["old"]
    await tree.close()


async def test_a_creation_below_a_node_with_children_is_one_statement(tmp_path: Path) -> None:
    """Each statement lets the workers have the interpreter, and the loop waits for it."""
    tree = open_tree(tmp_path / "tree")
    await tree.open()
    await tree.create("/a")
    await tree.create("/a/first")
    assert tree._db is not None
    statements: list[str] = []
    tree._db.set_trace_callback(statements.append)
    nodes = ["/a/b", "/a/b/c", "/a/b/c/d"]
    assert await tree.multi([Create(path) for path in nodes]) == nodes
    assert len(statements) == 1
    assert await tree.subtree("/a/b") == nodes
    await tree.close()


async def test_a_sequence_below_a_node_of_the_same_transaction_begins_at_zero(
    tmp_path: Path,
) -> None:
    tree = open_tree(tmp_path / "tree")
    await tree.open()
    created = await tree.multi([Create("/a"), *[Create("/a/n", sequence=True)] * 2, Create("/a/b")])
    assert created == ["/a", "/a/n0000000000", "/a/n0000000001", "/a/b"]
    assert await tree.children("/a") == ["b", "n0000000000", "n0000000001"]
    await tree.close()
