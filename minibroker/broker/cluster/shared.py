"""One embedded tree for several brokers of one process, each with a session of its own.

A session is what a broker has of ZooKeeper otherwise: it owns the ephemeral nodes that the broker
makes, and its end, clean or by a kill, takes them away. The other brokers' watches tell them.
"""

from __future__ import annotations

import asyncio
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING

from minibroker.broker.cluster.embedded import SESSION_ID, EmbeddedTree
from minibroker.broker.cluster.tree import ANY_VERSION, Create, Delete, SessionEvent
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from minibroker.broker.cluster.tree import Cancel, Operation, Stat
    from minibroker.clock import Clock


class SharedTree:
    """The tree; open while any session is. Owned by the loop."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.tree = EmbeddedTree(path, clock)  # constant after construction
        self._session_ids = count(SESSION_ID + 1)
        self._open_count = 0
        self._missing_count = 0
        """Brokers that start together and are not registered yet."""
        self._registrations: dict[int, asyncio.Future[None]] = {}
        """Session of a broker that waits for the others → the end of its wait."""
        self.is_watched = True

    def session(self) -> TreeSession:
        """Return a session, not opened yet: the tree of one broker."""
        return TreeSession(self, self.new_session_id())

    def new_session_id(self) -> int:
        """Return an id that no session had."""
        return next(self._session_ids)

    def gather(self, broker_count: int) -> None:
        """Have so many brokers wait for each other (`wait_until_gathered`); call it first."""
        self._missing_count = broker_count

    async def wait_until_gathered(self, session_id: int) -> None:
        """Wait until all brokers that start together are registered; the oldest session goes first.

        Return at once if there are none, as in a later start of one of them.
        """
        if not self._missing_count:
            return
        self._missing_count -= 1
        future = self._registrations[session_id] = asyncio.get_running_loop().create_future()
        if not self._missing_count:
            asyncio.get_running_loop().call_soon(self._let_go)  # when the last one waits, too
        await future

    def _let_go(self) -> None:
        for _, future in sorted(self._registrations.items(), key=itemgetter(0)):
            if not future.done():
                future.set_result(None)
        self._registrations.clear()

    def end_watches(self) -> None:
        """Call no watch any more: the brokers stop together, and none takes over from another."""
        self.is_watched = False

    async def open(self) -> None:
        """Open the file with the first session. Raises CoordinationError."""
        if self._open_count == 0:
            await self.tree.open()
        self._open_count += 1

    async def close(self) -> None:
        """Close the file with the last session."""
        self._open_count -= 1
        if self._open_count == 0:
            await self.tree.close()


class TreeSession:
    """`Tree` of one broker. Owned by the loop."""

    is_shared = True
    change_count = 0

    def __init__(self, home: SharedTree, session_id: int) -> None:
        self._home = home  # constant after construction, as `_tree`
        self._tree = home.tree
        self.session_id = session_id
        self._is_open = False
        self._is_held = False
        self._is_lost = False
        self._goes_on = asyncio.Event()
        """Set while the broker is not paused."""
        self._goes_on.set()
        self._held_calls: list[Callable[[], None]] = []
        """Watches that have fired while this session was held."""
        self._listeners: list[Callable[[SessionEvent], None]] = []

    async def open(self) -> None:
        """Begin the session, unless it has begun. Raises CoordinationError."""
        if not self._is_open:
            await self._home.open()
            self._is_open = True

    async def wait_until_gathered(self) -> None:
        """Do `SharedTree.gathered`; the broker of this session is registered."""
        await self._home.wait_until_gathered(self.session_id)

    async def close(self) -> None:
        """End the session: its ephemeral nodes go, the other brokers are told."""
        if not self._is_open:
            return
        await self._tree.multi([Delete(path) for path in self._tree.owned_by(self.session_id)])
        self._is_open = False
        self._goes_on.set()
        await self._home.close()

    async def abandon(self) -> None:
        """Do `close`: the other brokers of the process see at once that this one is gone."""
        await self.close()

    # For tests: a broker that is paused, a session that ends.

    def pause(self, *, is_paused: bool) -> None:
        """Do `hold`, and let the broker's calls wait: a stopped process does not go on with what
        it had begun to read or write.
        """
        self.hold(is_held=is_paused)
        (self._goes_on.clear if is_paused else self._goes_on.set)()

    def hold(self, *, is_held: bool) -> None:
        """Call no watch while held; after that call those that fired."""
        self._is_held = is_held
        if not is_held:
            self._renew()
            calls, self._held_calls = self._held_calls, []
            for callback in calls:
                callback()

    async def lose_session(self) -> None:
        """End the session as ZooKeeper does after a long silence: its ephemeral nodes go.

        The broker hears of it, and has another session, when it is not held.
        """
        await self._tree.multi([Delete(path) for path in self._tree.owned_by(self.session_id)])
        self._is_lost = True
        if not self._is_held:
            self._renew()

    def _renew(self) -> None:
        if self._is_lost:
            self._is_lost = False
            self.session_id = self._home.new_session_id()
            for event in (SessionEvent.EXPIRED, SessionEvent.RENEWED):
                for tell in self._listeners:
                    tell(event)

    # Reading

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return value and stat. Raises NoNode."""
        return await (await self._reach()).get(path)

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Return `get` of each, in order; None where there is no node."""
        return await (await self._reach()).get_many(paths)

    async def exists(self, path: str) -> Stat | None:
        """Return the stat, None when there is no node."""
        return await (await self._reach()).exists(path)

    async def children(self, path: str) -> list[str]:
        """Return the names of the children, sorted. Raises NoNode."""
        return await (await self._reach()).children(path)

    async def _reach(self) -> EmbeddedTree:
        """Return the tree, once the broker is not paused.

        Raises CoordinationError when the session is over, or has ended meanwhile.
        """
        session_id = self.session_id
        await self._goes_on.wait()
        if not self._is_open or self._is_lost or self.session_id != session_id:
            raise CoordinationError("the session with the metadata tree is over")
        return self._tree

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
        operations: list[Operation] = []
        if make_parents:
            tree = await self._reach()
            operations += [Create(parent) for parent in tree.missing_parents(path)]
        operations.append(Create(path, data, ephemeral=ephemeral, sequence=sequence))
        return str((await self.multi(operations))[-1])

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the value; return the new version. Raises NoNode, BadVersion."""
        return await (await self._reach()).set(path, data, version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children. Raises NoNode, BadVersion, NotEmpty."""
        await (await self._reach()).delete(path, version)

    async def subtree(self, path: str) -> list[str]:
        """Return the paths of a node and of everything below it, parents first."""
        return await (await self._reach()).subtree(path)

    async def multi(self, operations: Sequence[Operation]) -> list[str | int]:
        """Do all in one transaction, or none; ephemeral nodes are this session's."""
        return await (await self._reach()).multi(operations, session_id=self.session_id)

    async def sync(self) -> None:
        """Do nothing: all sessions read the same tree."""

    async def flush(self) -> None:
        """Return when everything acknowledged is on the disk. Raises CoordinationError."""
        await (await self._reach()).flush()

    # Watches

    async def watch(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after the node is created, set or deleted, while the session stands."""
        return await (await self._reach()).watch(path, self._while_open(callback))

    async def watch_many(self, callbacks: Mapping[str, Callable[[], None]]) -> list[Cancel]:
        """Begin a `watch` of each path; return their ends, in order."""
        return [await self.watch(path, callback) for path, callback in callbacks.items()]

    async def watch_children(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after a child is created or deleted. Raises NoNode."""
        return await (await self._reach()).watch_children(path, self._while_open(callback))

    def _while_open(self, callback: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            if not self._is_open or not self._home.is_watched:
                return
            if self._is_held:
                self._held_calls.append(call)
            else:
                callback()

        return call

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        """Call back when a test ended the session, and when there is another one."""
        self._listeners.append(callback)
