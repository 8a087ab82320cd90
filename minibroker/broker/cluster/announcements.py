"""Announcements: sequence nodes by which one broker tells the others that a node changed.

A writer changes a node and makes a sequence node below a common parent, both in one write. Every
broker watches that parent, and reads again what is announced there. The first broker that sees an
announcement of more than fifteen minutes removes it.

Configs, ACLs and delegation tokens are announced so. Where one process has the tree alone, nothing
is announced.

Source: Kafka ZkNodeChangeNotificationListener.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.tree import Create, NoNode, SessionEvent, TreeError
from minibroker.broker.event_loop import cancel_all
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable, Iterable

    from minibroker.broker.cluster.tree import Tree
    from minibroker.clock import Clock

    Announcement = tuple[str, bytes]
    """Path and value of a node that tells of a change."""
    ReadAnnouncements = Callable[[list[Announcement]], Awaitable[None]]

EXPIRATION_MS: Final = 15 * 60 * 1000
RETRY_DELAY_S: Final = 0.2
"""Pause after a failed step, unless there is news before."""


def announcement_of(tree: Tree, prefix: str, value: bytes) -> tuple[Create, ...]:
    """Return what tells other brokers of a change, for the write of the change itself: a process
    that is killed leaves both or none. Nothing where one process has the tree alone.
    """
    return (Create(prefix, value, sequence=True),) if tree.is_shared else ()


class Announcements:
    """The announcements below one node. Belongs to the loop."""

    def __init__(self, tree: Tree, clock: Clock, parent: str) -> None:
        self.parent: Final = parent
        self._tree = tree
        self._clock = clock
        self._last_applied = ""
        """Name of the last announcement that this broker applied."""

    async def skip(self) -> None:
        """Leave out the announcements that stand already: their changes are read otherwise.

        Raises CoordinationError, TreeError.
        """
        names = await self._tree.children(self.parent)
        self._last_applied = names[-1] if names else ""

    async def apply(self, read: ReadAnnouncements) -> None:
        """Call `read` with the new announcements, if there are any, and remove old ones.

        After an error of `read` they are new still. Raises CoordinationError, TreeError, and what
        `read` raises.
        """
        names = await self._tree.children(self.parent)
        paths = [f"{self.parent}/{name}" for name in names]
        nodes = await self._tree.get_many(paths)
        now_ms = self._clock.now_ms()
        new = []
        for name, path, value in zip(names, paths, nodes, strict=True):
            if value is None:
                continue
            if name > self._last_applied:
                new.append((path, value[0]))
            elif now_ms - value[1].ctime_ms > EXPIRATION_MS:
                with suppress(NoNode):
                    await self._tree.delete(path)
        if new:
            await read(new)
        if names:
            self._last_applied = max(self._last_applied, names[-1])


class AnnouncementFollower:
    """Keeps a store true to the tree while other brokers change it. Belongs to the loop."""

    def __init__(
        self,
        tree: Tree,
        clock: Clock,
        parents: Iterable[str],
        *,
        read: ReadAnnouncements,
        read_all: Callable[[], Awaitable[None]],
        log: logging.Logger,
    ) -> None:
        """`parents`: nodes below which changes are announced. `read`: reads what these tell of.
        `read_all`: reads everything, after a time without a session, unless the tree is another
        cluster's by then: what is known stays, and the broker stops (`follow`).
        """
        # Constant after construction.
        self._tree = tree
        self._announcements = [Announcements(tree, clock, parent) for parent in parents]
        self._read = read
        self._read_all = read_all
        self._log = log
        # Changed by watches and by the task.
        self._cluster: bytes | None = None
        """The value of /cluster/id at the start, None where there is no such node."""
        self._session_count = 0
        """How often the session was new, or reached again."""
        self._sessions_read = 0
        """`_session_count` when everything was read last."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Watch, and follow until `close`. Call it before everything is read for the first time.

        Raises CoordinationError, TreeError.
        """
        if not self._tree.is_shared:
            return
        self._cluster = await self._read_cluster()
        self._tree.on_session(self._on_session)
        for announcements in self._announcements:
            await self._tree.watch_children(announcements.parent, self._wake.set)
            await announcements.skip()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        await cancel_all(self._task)
        self._task = None

    def _on_session(self, event: SessionEvent) -> None:
        if event in (SessionEvent.RENEWED, SessionEvent.RESUMED):
            self._session_count += 1
            self._wake.set()

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                session_count = self._session_count
                if session_count != self._sessions_read:
                    if await self._read_cluster() != self._cluster:
                        self._log.error("the metadata tree is another one: nothing is read from it")
                        return
                    await self._read_all()
                    self._sessions_read = session_count
                for announcements in self._announcements:
                    await announcements.apply(self._read)
            except (CoordinationError, TreeError) as error:
                self._log.info("could not read the changes of other brokers: %s", error)
                await self._pause()
            except Exception:  # a bug of ours: what others change later is read all the same
                self._log.exception("could not read the changes of other brokers")
                await self._pause()

    async def _read_cluster(self) -> bytes | None:
        (node,) = await self._tree.get_many([paths.CLUSTER_ID])
        return None if node is None else node[0]

    async def _pause(self) -> None:
        """Wait for news, or a moment. Then everything that is new is read again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_DELAY_S):
                await self._wake.wait()
        self._wake.set()
