"""The tree in one SQLite file of the data directory: the home for a broker that stands alone.

Write path: each operation is one transaction appended to SQLite's write-ahead log (`write`, no
fsync), ~40 µs. An acknowledged change thus survives kill -9 at any instruction: the bytes are with
the kernel. A power cut could take the last second: `flush` (and a one-shot delayed one after each
burst) fsyncs the write-ahead log on a worker thread, and so does the periodic checkpoint, never the
loop. Producer id blocks are flushed before the first id of a block is given out.

One process at a time: a second one is refused by a file lock. Ephemeral nodes of an earlier process
are removed at opening. The file is readable by its owner only: without `password.encoder.secret`
altered passwords stand in it as they are, as they do in KRaft.

Table `node`, one row per node, primary key (parent, name): the children of a node are neighbours.
A topic creation (five nodes) touches half a dozen pages, hence the small page size: with SQLite's
usual 4 KiB it wrote twice as much log and took a quarter longer.
"""

# A start does without pathlib.
# ruff: noqa: PTH101, PTH110, PTH116, PTH120

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from itertools import chain
from typing import TYPE_CHECKING, Final

from minibroker.broker import system
from minibroker.broker.cluster.tree import (
    ANY_VERSION,
    ILLEGAL_NAMES,
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    Stat,
    check_path,
    child_path,
    parent_of,
)
from minibroker.broker.slices import TimeSlice, collect
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from minibroker.broker.cluster.tree import Cancel, Operation, SessionEvent
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)

SESSION_ID: Final = 1
FLUSH_DELAY_S: Final = 1.0
_PRIVATE: Final = 0o600
_PERMISSIONS: Final = 0o777
ZXID_BLOCK: Final = 1_000
"""Transaction numbers reserved by one write; a crash skips the rest of them."""
CHECKPOINT_OPERATIONS: Final = 2_000
"""Operations after which the write-ahead log is copied back: keeps it near 10 MB."""

_NODE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS node (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    czxid INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    sequence INTEGER NOT NULL,  -- number of the next sequence node below it
    PRIMARY KEY (parent, name)
) WITHOUT ROWID
"""
_COUNTER_TABLE: Final = "CREATE TABLE IF NOT EXISTS counter (zxid_limit INTEGER NOT NULL)"
_OWNED: Final = "SELECT parent, name FROM node WHERE owner = ?"
_OWNER: Final = "SELECT owner, sequence FROM node WHERE parent = ? AND name = ?"
_COUNT: Final = "UPDATE node SET sequence = sequence + 1 WHERE parent = ? AND name = ?"
_INSERT_OWNED: Final = "INSERT INTO node VALUES (?, ?, ?, 0, ?, ?, ?, 0)"
_LASTING_ROW: Final = "(?, ?, ?, 0, ?, ?, 0, 0)"
_INSERT: Final = f"INSERT INTO node VALUES {_LASTING_ROW}"
_ROWS_TOGETHER: Final = 11
"""Rows that one statement inserts: a topic of four partitions."""
_INSERTS: Final = [
    f"INSERT INTO node VALUES {', '.join([_LASTING_ROW] * count)}"
    for count in range(_ROWS_TOGETHER + 1)
]
"""Number of rows → the statement that inserts them."""
_LASTING_MAX: Final = 100
"""Paths of parents that are remembered."""
_SELECT: Final = (
    "SELECT data, version, czxid, ctime_ms, owner FROM node WHERE parent = ? AND name = ?"
)
PATHS_AT_ONCE: Final = 50
"""Nodes that one query reads: 0.1 ms, where 50 queries would take 0.2 ms."""
_SELECT_MANY: Final = (
    "WITH place(number, parent, name) AS"
    f" (VALUES {', '.join(f'({number}, ?, ?)' for number in range(PATHS_AT_ONCE))}) "
    "SELECT number, data, version, czxid, ctime_ms, owner"
    " FROM place CROSS JOIN node USING (parent, name)"
)
"""The rows are in any order. SQLite takes the tables of a CROSS JOIN in the order in which they are
named, so it looks each place up."""
_UPDATE: Final = "UPDATE node SET data = ?, version = ? WHERE parent = ? AND name = ?"
_DELETE: Final = "DELETE FROM node WHERE parent = ? AND name = ?"
ROWS_AT_ONCE: Final = 250
"""Names that one query returns: it holds the loop for less than half a millisecond."""
_CHILDREN: Final = "SELECT name FROM node WHERE parent = ? AND name > ? ORDER BY name LIMIT ?"
_DESCENDANTS: Final = (
    "SELECT parent, name FROM node WHERE (parent, name) > (?, ?) AND parent < ?"
    " ORDER BY parent, name LIMIT ?"
)
_HAS_CHILD: Final = "SELECT 1 FROM node WHERE parent = ? LIMIT 1"


def _key(path: str) -> tuple[str, str]:
    """Return the primary key of a path: `/a/b` → (`/a`, `b`); the root is (``, ``)."""
    if path == "/":
        return "", ""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


class _Transaction:
    """One transaction under way. It begins in the database with its first statement, and not at all
    where its only statement is the insertion of a few nodes, which SQLite makes a transaction.
    """

    __slots__ = ("db", "has_begun", "new_paths", "new_rows", "now_ms", "session_id", "zxid")

    def __init__(self, db: sqlite3.Connection, zxid: int, now_ms: int, session_id: int) -> None:
        self.db = db
        self.has_begun = False
        self.zxid = zxid
        self.now_ms = now_ms
        self.session_id = session_id
        """Owner of the ephemeral nodes."""
        self.new_paths: set[str] = set()
        """The lasting nodes that it created."""
        self.new_rows: list[tuple[str, str, bytearray, int, int]] = []
        """Rows of lasting nodes that are not in the database yet. Values are no `bytes`: for each
        of those Python looks for an adapter, which takes as long as the row."""

    def begin(self) -> sqlite3.Connection:
        """Return the database, in which the transaction has begun."""
        if not self.has_begun:
            self.db.execute("BEGIN IMMEDIATE")
            self.has_begun = True
        return self.db

    def commit(self) -> None:
        """End it. Raises NodeExists for the first created node that exists."""
        if self.has_begun or not self._insert_together():
            self.insert()
            self.begin().execute("COMMIT")

    def _insert_together(self) -> bool:
        """Insert the created nodes by one statement; return whether that was possible."""
        rows = self.new_rows
        if not 0 < len(rows) <= _ROWS_TOGETHER:
            return False
        try:
            self.db.execute(_INSERTS[len(rows)], list(chain.from_iterable(rows)))
        except sqlite3.IntegrityError:
            return False  # nothing is inserted: `insert` finds the node that exists
        return True

    def insert(self) -> None:
        """Put the new lasting nodes into the database, in one call. Raises NodeExists for the first
        that exists.
        """
        rows = self.new_rows
        if not rows:
            return
        db = self.begin()
        changes_before = db.total_changes
        try:
            db.executemany(_INSERT, rows)
        except sqlite3.IntegrityError:
            parent, name = rows[db.total_changes - changes_before][:2]
            raise NodeExists(child_path(parent, name)) from None
        rows.clear()


class EmbeddedTree:
    """`Tree` in an SQLite file. Used from the loop's thread only; safe against kill -9."""

    is_shared = False
    session_id = SESSION_ID

    def __init__(self, path: str | Path, clock: Clock) -> None:
        self._path = os.fspath(path)  # constant after construction, as `_clock`
        self._clock = clock
        # The loop's, from `open` to `close`.
        self._db: sqlite3.Connection | None = None
        self._lock_fd = -1
        self._wal_fd = -1  # read by workers
        self._zxid = 0
        self._zxid_limit = 0
        self._lasting_paths: set[str] = set()
        """Paths of some nodes that are there, and of no session."""
        self._operations = 0
        # A worker's.
        self._checkpoint_db: sqlite3.Connection | None = None
        self._is_new = True
        # The loop's.
        self._flush_timer: asyncio.TimerHandle | None = None
        self._workers: set[asyncio.Future[None]] = set()
        self._watches: dict[tuple[str, bool], list[Callable[[], None]]] = {}

    @property
    def change_count(self) -> int:
        """Return the number of the last transaction; a restart skips some."""
        return self._zxid

    # Opening and closing

    async def open(self) -> None:
        """Open or create the file. Raises CoordinationError: in use, unreadable, not our file."""
        try:
            flags = os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS
            self._lock_fd = os.open(f"{self._path}.lock", flags, 0o644)
            if not system.take_lock(self._lock_fd):
                self._close_files()
                raise CoordinationError(
                    f"the metadata file {self._path} is in use by another process"
                )
            if system.HAS_MODES:
                self._take_from_others()
        except OSError as error:
            self._close_files()
            raise CoordinationError(
                f"cannot open the metadata file {self._path}: {error.strerror}"
            ) from error
        try:
            self._prepare(self._connect())
        except sqlite3.Error as error:
            await self.close()
            raise CoordinationError(
                f"cannot open the metadata file {self._path}: {error}"
            ) from error

    def _take_from_others(self) -> None:
        """Make the file readable by its owner only, and create it where it is missing: it may hold
        passwords, SCRAM credentials and delegation tokens. SQLite makes its other files with the
        mode of this one. Raises OSError.
        """
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, _PRIVATE))
        is_changed = False
        for suffix in ("", "-wal", "-shm"):
            path = self._path + suffix
            if not os.path.exists(path):
                continue
            if not os.stat(path).st_mode & ~_PRIVATE & _PERMISSIONS:
                continue
            try:
                os.chmod(path, _PRIVATE)
            except OSError as error:  # of another owner, whose group we are in
                logger.warning(
                    "other users can read the metadata file %s, which may hold passwords, and its"
                    " mode cannot be changed: %s",
                    path,
                    error.strerror,
                )
            else:
                is_changed = True
        if is_changed:
            logger.warning(
                "other users could read the metadata file %s, which may hold passwords: now it is"
                " readable by its owner only",
                self._path,
            )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA page_size = 1024")  # counts at the file's creation
            connection.execute("PRAGMA synchronous = OFF")  # the first `flush` makes up for it
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
        except sqlite3.Error:  # the file is none of SQLite
            connection.close()
            raise
        return connection

    def _prepare(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute("BEGIN IMMEDIATE")
        db.execute(_NODE_TABLE)
        db.execute(_COUNTER_TABLE)
        if not db.execute(_SELECT, ("", "")).fetchone():
            db.execute(_INSERT, ("", "", b"", 0, self._clock.now_ms()))
            db.execute("INSERT INTO counter VALUES (0)")
        db.execute("DELETE FROM node WHERE owner != 0")
        (self._zxid,) = db.execute("SELECT zxid_limit FROM counter").fetchone()
        self._zxid_limit = self._zxid
        self._lasting_paths.clear()
        db.execute("COMMIT")
        self._wal_fd = os.open(f"{self._path}-wal", os.O_RDWR | system.OPEN_FLAGS)

    async def close(self) -> None:
        """Remove ephemeral nodes, bring the file up to date and free it. Never raises for the file:
        what is not done is found in its log at the next start.
        """
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._workers:
            await asyncio.wait(self._workers)
        db, self._db = self._db, None
        checkpoint_db, self._checkpoint_db = self._checkpoint_db, None
        if db is not None:
            await asyncio.to_thread(self._close_databases, db, checkpoint_db)
        self._close_files()

    async def abandon(self) -> None:
        """Close, like `close`. Only the next start could tell the difference, and it removes
        ephemeral nodes.
        """
        await self.close()

    def _close_databases(
        self, db: sqlite3.Connection, checkpoint_db: sqlite3.Connection | None
    ) -> None:
        if checkpoint_db is not None:
            checkpoint_db.close()
        try:
            db.execute("DELETE FROM node WHERE owner != 0")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            # Nothing is lost: it is in the write-ahead log, and the next start does the rest.
            logger.warning(
                "the metadata file %s could not be closed, the next start recovers it: %s",
                self._path,
                error,
            )
        finally:
            db.close()

    def _close_files(self) -> None:
        for fd in (self._wal_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._wal_fd = self._lock_fd = -1

    # Reading

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return value and stat. Raises NoNode."""
        row = self._row(path)
        if row is None:
            raise NoNode(path)
        return row

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Return value and stat of each path, in order; None where there is no node."""
        starts = range(0, len(paths), PATHS_AT_ONCE)
        parts = await collect(self._rows(paths[start : start + PATHS_AT_ONCE]) for start in starts)
        return [row for part in parts for row in part]

    async def exists(self, path: str) -> Stat | None:
        """Return the stat, None if there is no node."""
        row = self._row(path)
        return None if row is None else row[1]

    async def children(self, path: str) -> list[str]:
        """Return the names of the children, sorted. Raises NoNode."""
        names: list[str] = []
        turn = TimeSlice()
        last = ""
        while True:
            rows = self._database().execute(_CHILDREN, (path, last, ROWS_AT_ONCE)).fetchall()
            names += [name for (name,) in rows]
            if len(rows) < ROWS_AT_ONCE:
                break
            last = names[-1]
            if turn.is_over:
                await turn.pause()
        if not names and self._row(path) is None:
            raise NoNode(path)
        return names

    async def subtree(self, path: str) -> list[str]:
        """Return the paths of a node and of everything below it, parents first; none if it is
        absent.
        """
        if self._row(path) is None:
            return []
        node_paths = [path, *(child_path(path, name) for name in await self.children(path))]
        below = path.rstrip("/")
        # The parents of all other nodes begin with the path and a slash; `0` follows the slash.
        last, end = (f"{below}/\1", ""), f"{below}0"
        turn = TimeSlice()
        while True:
            keys = (*last, end, ROWS_AT_ONCE)
            rows = self._database().execute(_DESCENDANTS, keys).fetchall()
            node_paths += [f"{parent}/{name}" for parent, name in rows]
            if len(rows) < ROWS_AT_ONCE:
                return node_paths
            last = rows[-1]
            if turn.is_over:
                await turn.pause()

    def _row(self, path: str) -> tuple[bytes, Stat] | None:
        row = self._database().execute(_SELECT, _key(path)).fetchone()
        if row is None:
            return None
        return row[0], Stat(row[1], row[2], row[3], row[4])

    def _rows(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Return the rows of at most `PATHS_AT_ONCE` paths, in order."""
        if len(paths) < PATHS_AT_ONCE:
            return [self._row(path) for path in paths]
        parts = [part for path in paths for part in _key(path)]
        values: list[tuple[bytes, Stat] | None] = [None] * len(paths)
        for number, data, *stat in self._database().execute(_SELECT_MANY, parts):
            values[number] = data, Stat(*stat)
        return values

    def _database(self) -> sqlite3.Connection:
        if self._db is None:
            raise CoordinationError(f"the metadata file {self._path} is closed")
        return self._db

    # Writing

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        make_parents: bool = False,
        sequence: bool = False,
    ) -> str:
        """Create a node; return its path. Raises NodeExists, NoNode, EphemeralParent."""
        missing_paths = self.missing_parents(path) if make_parents else []
        operations: list[Operation] = [Create(parent) for parent in missing_paths]
        operations.append(Create(path, data, ephemeral=ephemeral, sequence=sequence))
        return str((await self.multi(operations))[-1])

    def missing_parents(self, path: str) -> list[str]:
        """Return the parents of a node that do not exist, outermost first."""
        missing_paths: list[str] = []
        parent = parent_of(path)
        while self._row(parent) is None:
            missing_paths.append(parent)
            parent = parent_of(parent)
        return missing_paths[::-1]

    def owned_by(self, session_id: int) -> list[str]:
        """Return the paths of a session's ephemeral nodes."""
        rows = self._database().execute(_OWNED, (session_id,)).fetchall()
        return [child_path(parent, name) for parent, name in rows]

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the value; return the new version. Raises NoNode, BadVersion."""
        return int((await self.multi((Set(path, data, version),)))[0])

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children. Raises NoNode, BadVersion, NotEmpty."""
        await self.multi((Delete(path, version),))

    async def multi(
        self, operations: Sequence[Operation], *, session_id: int = SESSION_ID
    ) -> list[str | int]:
        """Do all in one transaction, or none; ephemeral nodes are that session's."""
        db = self._database()
        zxid = self._zxid + 1
        transaction = _Transaction(db, zxid, self._clock.now_ms(), session_id)
        results: list[str | int] = []
        try:
            try:
                for operation in operations:
                    if isinstance(operation, Create):
                        results.append(self._create(transaction, operation))
                    else:
                        results.append(self._apply(transaction, operation))
                if zxid > self._zxid_limit:
                    update = "UPDATE counter SET zxid_limit = ?"
                    transaction.begin().execute(update, (zxid + ZXID_BLOCK,))
                transaction.commit()
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise CoordinationError(
                f"the metadata file {self._path} could not be written: {error}"
            ) from error
        self._zxid = zxid
        if zxid > self._zxid_limit:
            self._zxid_limit = zxid + ZXID_BLOCK
        self._after_write(len(operations))
        if self._watches:
            self._notify(operations, results)
        return results

    def _apply(self, transaction: _Transaction, operation: Set | Delete | Check) -> str | int:
        transaction.insert()
        db = transaction.begin()
        path = operation.path
        key = _key(path)
        row = db.execute(_SELECT, key).fetchone()
        if row is None:
            raise NoNode(path)
        version: int = row[1]
        if operation.version not in (ANY_VERSION, version):
            raise BadVersion(path)
        if isinstance(operation, Check):
            return path
        if isinstance(operation, Set):
            db.execute(_UPDATE, (operation.data, version + 1, *key))
            return version + 1
        if db.execute(_HAS_CHILD, (path,)).fetchone():
            raise NotEmpty(path)
        db.execute(_DELETE, key)
        transaction.new_paths.discard(path)
        self._lasting_paths.discard(path)
        return path

    def _create(self, transaction: _Transaction, operation: Create) -> str:
        """Make the row of a new node, for `_Transaction.insert`; return its path."""
        path = operation.path
        if path == "/":
            raise NodeExists(path)
        parent, _, name = path.rpartition("/")
        parent = parent or "/"
        if operation.sequence:
            check_path(f"{path}0")
            number = self._count_child(transaction, parent, operation)
            name += number
            path += number
        elif parent in transaction.new_paths or parent in self._lasting_paths:
            if name in ILLEGAL_NAMES or "\0" in name:
                check_path(path)  # raises
        else:
            check_path(path)
            self._find_parent(transaction, parent, operation)
            self._remember(parent)
        row = (parent, name, bytearray(operation.data), transaction.zxid, transaction.now_ms)
        if operation.ephemeral:
            self._insert_owned(transaction, path, row)
        else:
            transaction.new_rows.append(row)
            transaction.new_paths.add(path)
        return path

    def _insert_owned(
        self, transaction: _Transaction, path: str, row: tuple[str, str, bytearray, int, int]
    ) -> None:
        """Put an ephemeral node into the database at once: a node below it has to find it. Raises
        NodeExists.
        """
        transaction.insert()
        try:
            transaction.begin().execute(_INSERT_OWNED, (*row, transaction.session_id))
        except sqlite3.IntegrityError:
            raise NodeExists(path) from None

    def _remember(self, parent: str) -> None:
        """Note that a lasting node is there, so that the next node below it need not ask."""
        if parent == "/":
            return  # a path without a slash has this parent, too: it is checked as a whole
        if len(self._lasting_paths) >= _LASTING_MAX:
            self._lasting_paths.clear()
        self._lasting_paths.add(parent)

    def _find_parent(self, transaction: _Transaction, parent: str, operation: Create) -> int:
        """Check the parent of a new node, which this transaction did not create; return the number
        of the next sequence node below it. Raises NoNode, EphemeralParent.
        """
        row = transaction.begin().execute(_OWNER, _key(parent)).fetchone()
        if row is None or row[0]:
            transaction.insert()  # an earlier node may be the first that is refused
            raise NoNode(parent) if row is None else EphemeralParent(operation.path)
        return int(row[1])

    def _count_child(self, transaction: _Transaction, parent: str, operation: Create) -> str:
        """Count a new sequence node; return its digits. Raises NoNode, EphemeralParent."""
        transaction.insert()  # the parent may be among them
        number = self._find_parent(transaction, parent, operation)
        transaction.db.execute(_COUNT, _key(parent))
        return f"{number:010d}"

    # Making it durable, away from the loop

    def _after_write(self, count: int) -> None:
        self._operations += count
        if self._flush_timer is None:
            loop = asyncio.get_running_loop()
            self._flush_timer = loop.call_later(FLUSH_DELAY_S, self._flush_in_background)

    def _flush_in_background(self) -> None:
        self._flush_timer = None
        self._start_flush().add_done_callback(self._note_flushed)

    def _note_flushed(self, flush: asyncio.Future[None]) -> None:
        error = None if flush.cancelled() else flush.exception()
        if error is not None:
            logger.warning("the metadata file %s could not be flushed: %s", self._path, error)

    def _start_flush(self) -> asyncio.Future[None]:
        work = self._checkpoint if self._operations >= CHECKPOINT_OPERATIONS else self._sync
        if work == self._checkpoint:
            self._operations = 0
        future = asyncio.get_running_loop().run_in_executor(None, work)
        self._workers.add(future)
        future.add_done_callback(self._workers.discard)
        return future

    async def sync(self) -> None:
        """Do nothing: no other process writes."""

    async def flush(self) -> None:
        """Have a worker fsync. Raises CoordinationError if the disk refuses."""
        self._database()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        try:
            await self._start_flush()
        except (OSError, sqlite3.Error) as error:
            raise CoordinationError(
                f"the metadata file {self._path} could not be flushed: {error}"
            ) from error

    def _sync(self) -> None:
        os.fsync(self._wal_fd)
        if self._is_new:
            _sync_file(self._path)
            system.sync_directory(os.path.dirname(self._path) or ".")
            self._is_new = False

    def _checkpoint(self) -> None:
        self._sync()
        if self._checkpoint_db is None:
            self._checkpoint_db = self._connect()
        # Passive: copies what it can while the loop's connection goes on writing.
        self._checkpoint_db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    # Watches

    async def watch(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after the node is created, set or deleted."""
        return self._add_watch((path, False), callback)

    async def watch_many(self, callbacks: Mapping[str, Callable[[], None]]) -> list[Cancel]:
        """Watch each path; return their ends in order."""
        return [await self.watch(path, callback) for path, callback in callbacks.items()]

    async def watch_children(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after a child is created or deleted. Raises NoNode."""
        if self._row(path) is None:
            raise NoNode(path)
        return self._add_watch((path, True), callback)

    def _add_watch(self, key: tuple[str, bool], callback: Callable[[], None]) -> Cancel:
        self._watches.setdefault(key, []).append(callback)

        def cancel() -> None:
            callbacks = self._watches.get(key, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._watches.pop(key, None)

        return cancel

    def _notify(self, operations: Sequence[Operation], results: Sequence[str | int]) -> None:
        loop = asyncio.get_running_loop()
        for operation, result in zip(operations, results, strict=True):
            if isinstance(operation, Check):
                continue
            path = result if isinstance(result, str) else operation.path
            keys = [(path, False)]
            if not isinstance(operation, Set):
                keys.append((parent_of(path), True))
            for key in keys:
                for callback in self._watches.get(key, ()):
                    loop.call_soon(self._call, key, callback)

    def _call(self, key: tuple[str, bool], callback: Callable[[], None]) -> None:
        if callback in self._watches.get(key, ()):  # not cancelled meanwhile
            callback()

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        """Accept the callback and never call it: this home's one session has no events."""


def _sync_file(path: str) -> None:
    """Have the disk keep a file. Opened to write, because Windows syncs no other handle."""
    fd = os.open(path, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
