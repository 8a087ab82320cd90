"""The metadata tree in memory, with ZooKeeper's sessions: delayed, cut off, expired.

Each broker has a session. Its requests are done in order, each after a delay; so are the answers
and the calls of its watches. A session that is cut off raises CoordinationError for every request,
and it is not known whether a request that was on its way is done. It comes back in time, or it
expires: then its ephemeral nodes are gone, and it comes back as a new session.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from minibroker.broker.cluster.tree import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionEvent,
    Set,
    Stat,
    child_path,
    parent_of,
)
from minibroker.kafka.errors import CoordinationError
from tests.simulation.loop import MACHINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from minibroker.broker.cluster.tree import Cancel, Operation
    from tests.simulation.loop import Machine, SimulatedClock
    from tests.simulation.network import Network

TREE = -2
"""The place of the tree in the network."""


class Node(NamedTuple):
    """One node."""

    data: bytes
    version: int
    czxid: int
    ctime_ms: int
    owner: int
    children_made: int = 0
    """Number of the next sequence node below it."""


class SimulatedTree:
    """The nodes, as every session sees them."""

    def __init__(self, network: Network, clock: SimulatedClock) -> None:
        self.network = network
        self._clock = clock
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0, clock.now_ms(), 0)}
        self.zxid = 0
        """The number of the last transaction."""
        self._last_session = 100
        self.sessions: list[TreeSession] = []

    def session(self, machine: Machine) -> TreeSession:
        """Return the tree of one broker."""
        return TreeSession(self, machine)

    def begin_session(self) -> int:
        """Return the number of a new session."""
        self._last_session += 1
        return self._last_session

    def expire(self, session_id: int) -> None:
        """Remove the ephemeral nodes of a session."""
        owned = [path for path, node in self.nodes.items() if node.owner == session_id]
        if owned:
            self.multi([Delete(path) for path in owned], 0)

    def children(self, path: str) -> list[str]:
        """Return the names of the children, sorted. Raises NoNode."""
        if path not in self.nodes:
            raise NoNode(path)
        start = child_path(path, "")
        return sorted(
            name.removeprefix(start)
            for name in self.nodes
            if name.startswith(start) and name != path and "/" not in name.removeprefix(start)
        )

    def get(self, path: str) -> tuple[bytes, Stat]:
        """Raises NoNode."""
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node.data, Stat(node.version, node.czxid, node.ctime_ms, node.owner)

    def multi(self, operations: Iterable[Operation], session_id: int) -> list[str | int]:
        """Do all or none, then have the watches called. Raises TreeError."""
        first_nodes = dict(self.nodes)
        self.zxid += 1
        changed: list[tuple[str, bool]] = []
        """Path, and whether a node came or went."""
        try:
            results = [self._apply(operation, session_id, changed) for operation in operations]
        except Exception:
            self.nodes = first_nodes
            raise
        for session in self.sessions:
            for path, is_other in changed:
                session.note_change(path, is_other=is_other)
        return results

    def _apply(
        self, operation: Operation, session_id: int, changed: list[tuple[str, bool]]
    ) -> str | int:
        if isinstance(operation, Create):
            return self._create(operation, session_id, changed)
        path = operation.path
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersion(path)
        if isinstance(operation, Check):
            return path
        if isinstance(operation, Set):
            self.nodes[path] = node._replace(data=operation.data, version=node.version + 1)
            changed.append((path, False))
            return node.version + 1
        if self.children(path):
            raise NotEmpty(path)
        del self.nodes[path]
        changed.append((path, True))
        return path

    def _create(self, operation: Create, session_id: int, changed: list[tuple[str, bool]]) -> str:
        path, above = operation.path, parent_of(operation.path)
        parent = self.nodes.get(above)
        if parent is None:
            raise NoNode(above)
        if parent.owner:
            raise EphemeralParent(above)
        if operation.sequence:
            path += f"{parent.children_made:010d}"
            self.nodes[above] = parent._replace(children_made=parent.children_made + 1)
        if path in self.nodes:
            raise NodeExists(path)
        owner = session_id if operation.ephemeral else 0
        self.nodes[path] = Node(operation.data, 0, self.zxid, self._clock.now_ms(), owner)
        changed.append((path, True))
        return path


class TreeSession:
    """`minibroker.broker.cluster.tree.Tree` of one machine."""

    is_shared = True
    change_count = 0

    def __init__(self, tree: SimulatedTree, machine: Machine) -> None:
        self._tree = tree
        self._machine = machine
        self.session_id = 0
        self.is_away = False
        """Is the session cut off?"""
        self._is_expired = False
        self._is_losing: set[int] = set()
        """Numbers of the connections whose requests on their way were lost."""
        self._connection = 0
        self._last_request_s = self._last_answer_s = 0.0
        self._waiting: dict[asyncio.Future[Any], object] = {}
        """Requests without their answer."""
        self._watches: list[tuple[str, bool, Callable[[], None]]] = []
        self._listeners: list[Callable[[SessionEvent], None]] = []

    @property
    def is_waiting(self) -> bool:
        """Return whether a request is on its way."""
        return bool(self._waiting)

    # The session.

    async def open(self) -> None:
        self.session_id = self._tree.begin_session()
        self._tree.sessions.append(self)

    async def wait_until_gathered(self) -> None:
        """Wait for nobody: the brokers of a run start as they come."""

    async def close(self) -> None:
        if self in self._tree.sessions:
            self._tree.sessions.remove(self)
            self._tree.expire(self.session_id)

    async def abandon(self) -> None:
        """Leave the session to its time-out."""

    def stop(self) -> None:
        """Send and hear nothing more: the machine stopped. Requests on their way are lost."""
        self.is_away = True
        if self in self._tree.sessions:
            self._tree.sessions.remove(self)

    def cut_off(self) -> None:
        """Lose the connection; requests on their way fail, and may be done all the same."""
        if self.is_away:
            return
        self.is_away = True
        if self._tree.network.chance("lost requests", self._machine.broker_id, TREE).random() < 0.5:
            self._is_losing.add(self._connection)
        self._connection += 1
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_exception(CoordinationError("the connection to the tree is lost"))
        self._tell(SessionEvent.SUSPENDED)

    def expire(self) -> None:
        """Be expired by the tree; the machine hears of it when it is connected again."""
        self._is_expired = True
        self._tree.expire(self.session_id)

    def expire_if_away(self) -> None:
        """Be expired, unless the connection is back."""
        if self.is_away and self in self._tree.sessions:
            self.expire()

    def come_back(self) -> None:
        """Be connected again, with the session of before or with a new one."""
        if not self.is_away:
            return
        self.is_away = False
        if self._is_expired:
            self._tell(SessionEvent.EXPIRED)
            self._is_expired = False
            self.session_id = self._tree.begin_session()
            event = SessionEvent.RENEWED
        else:
            event = SessionEvent.RESUMED
        for _, _, callback in list(self._watches):
            self._call(callback)
        self._tell(event)

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            self._call(listener, event)

    def _call(self, callback: Callable[..., None], *arguments: object) -> None:
        """Call back on the machine, behind the answers that are on their way."""
        network = self._tree.network
        arrival_s = network.loop.time() + network.delay_s(TREE, self._machine.broker_id)
        self._last_answer_s = arrival_s = max(arrival_s, self._last_answer_s)
        network.loop.call_at(arrival_s, callback, *arguments, context=self._machine.context)

    def note_change(self, path: str, *, is_other: bool) -> None:
        """Call the watches of this path, and those of its parent where a node came or went."""
        above = parent_of(path)
        for watched, of_children, callback in list(self._watches):
            if (watched == path and not of_children) or (
                of_children and is_other and watched == above
            ):
                self._call_watch(callback)

    def _call_watch(self, callback: Callable[[], None]) -> None:
        def call() -> None:
            if not self.is_away:
                callback()

        if not self.is_away:
            self._call(call)

    async def _ask(self, operation: Callable[[], Any]) -> Any:
        """Have the tree do something; return its answer. Raises CoordinationError, TreeError."""
        network = self._tree.network
        loop = network.loop
        if self.is_away:
            await loop.pass_time(0)
            raise CoordinationError("there is no connection to the tree")
        assert MACHINE.get() is self._machine
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting[answer] = None
        session_id, connection = self.session_id, self._connection

        def reply(result: Any, error: Exception | None) -> None:
            self._waiting.pop(answer, None)
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

        def do() -> None:
            if self._machine.is_stopped or self.session_id != session_id or self._is_expired:
                return
            if connection in self._is_losing:
                return
            result, error = None, None
            try:
                result = operation()
            except Exception as raised:  # the session gets it
                error = raised
            if not answer.done():
                self._call(reply, result, error)

        arrival_s = loop.time() + network.delay_s(self._machine.broker_id, TREE)
        self._last_request_s = arrival_s = max(arrival_s, self._last_request_s)
        # Not the machine's: a request that was sent is done though the sender is cut off.
        loop.call_at(arrival_s, do, context=network.context)
        return await answer

    # Reading.

    async def get(self, path: str) -> tuple[bytes, Stat]:
        return await self._ask(lambda: self._tree.get(path))  # type: ignore[no-any-return]

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        nodes = self._tree

        def read() -> list[tuple[bytes, Stat] | None]:
            return [nodes.get(path) if path in nodes.nodes else None for path in paths]

        return await self._ask(read)  # type: ignore[no-any-return]

    async def exists(self, path: str) -> Stat | None:
        values = (await self.get_many([path]))[0]
        return values[1] if values is not None else None

    async def children(self, path: str) -> list[str]:
        return await self._ask(lambda: self._tree.children(path))  # type: ignore[no-any-return]

    async def subtree(self, path: str) -> list[str]:
        nodes = self._tree
        below = child_path(path, "")
        return await self._ask(  # type: ignore[no-any-return]
            lambda: sorted(name for name in nodes.nodes if name == path or name.startswith(below))
        )

    # Writing.

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        make_parents: bool = False,
        sequence: bool = False,
    ) -> str:
        if make_parents:
            above = parent_of(path)
            missing = []
            while await self.exists(above) is None:
                missing.append(above)
                above = parent_of(above)
            for parent in reversed(missing):
                try:
                    await self.multi([Create(parent)])
                except NodeExists:
                    continue
        results = await self.multi([Create(path, data, ephemeral=ephemeral, sequence=sequence)])
        return str(results[0])

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return int((await self.multi([Set(path, data, version)]))[0])

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[str | int]:
        session_id = self.session_id
        return await self._ask(  # type: ignore[no-any-return]
            lambda: self._tree.multi(operations, session_id)
        )

    async def sync(self) -> None:
        """Take a round trip: the tree has no servers that lag."""
        await self._ask(lambda: None)

    async def flush(self) -> None:
        """Do nothing: what the tree has it keeps."""

    # Watches.

    async def watch(self, path: str, callback: Callable[[], None]) -> Cancel:
        return await self._watch(path, callback, of_children=False)

    async def watch_many(self, callbacks: Mapping[str, Callable[[], None]]) -> list[Cancel]:
        return [await self.watch(path, callback) for path, callback in callbacks.items()]

    async def watch_children(self, path: str, callback: Callable[[], None]) -> Cancel:
        return await self._watch(path, callback, of_children=True)

    async def _watch(self, path: str, callback: Callable[[], None], *, of_children: bool) -> Cancel:
        entry = path, of_children, callback

        def begin() -> None:
            if of_children and path not in self._tree.nodes:
                raise NoNode(path)
            self._watches.append(entry)

        await self._ask(begin)

        def cancel() -> None:
            if entry in self._watches:
                self._watches.remove(entry)

        return cancel

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        self._listeners.append(callback)
