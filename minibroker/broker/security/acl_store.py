"""ACLs in the tree: read at start, changed with the version that was read, followed by watches.

Several brokers change the same nodes: ours and Apache Kafka's. A writer announces each change.
Every broker then reads the ACLs of that pattern again.

Source: Kafka AclAuthorizer (loadCache, updateResourceAcls).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.announcements import AnnouncementFollower, announcement_of
from minibroker.broker.cluster.tree import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    ensure_node,
    parent_of,
)
from minibroker.broker.security import acl_nodes as nodes
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.broker.cluster.announcements import Announcement
    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.security.acl_entries import Entry, Pattern
    from minibroker.clock import Clock

    PutEntries = Callable[[Pattern, frozenset[Entry]], None]
    Edit = Callable[[frozenset[Entry]], frozenset[Entry]]

logger = logging.getLogger(__name__)

ATTEMPTS_MAX: Final = 11
"""Times that a change is tried while other brokers change the same node."""


class AclStore:
    """Reads and writes the nodes of ACLs. Belongs to the loop."""

    def __init__(self, tree: Tree, clock: Clock, put_entries: PutEntries) -> None:
        """`put_entries`: pattern, its ACLs → takes them in; called with everything that is read."""
        self._tree = tree
        self._put_entries = put_entries
        self._known_patterns: set[Pattern] = set()
        """Patterns that had ACLs when they were last read."""
        self._lock = asyncio.Lock()
        """Held while nodes are read or written, so that an older value never comes last."""
        self._follower = AnnouncementFollower(
            tree,
            clock,
            nodes.CHANGES.values(),
            read=self._read_announced,
            read_all=self._read_all,
            log=logger,
        )

    # Life

    async def start(self) -> None:
        """Make the nodes that are missing, read every ACL, follow changes until `close`.

        Raises CoordinationError.
        """
        for path in nodes.PERSISTENT:
            await ensure_node(self._tree, path)
        await self._follower.start()
        await self._read_all(is_strict=True)

    async def close(self) -> None:
        """Stop following."""
        await self._follower.close()

    # Changes by this broker

    async def update(self, pattern: Pattern, edit: Edit) -> None:
        """Give a pattern the ACLs that `edit` returns, from those that the tree has.

        `edit` is called again where another broker was faster. Raises CoordinationError, ValueError
        for a name that no node may have.
        """
        path = nodes.path_of(pattern)
        async with self._lock:
            for _ in range(ATTEMPTS_MAX):
                (node,) = await self._tree.get_many((path,))
                old = nodes.decode_entries(path, node[0]) if node else frozenset()
                new = edit(old)
                if new == old or await self._write(pattern, new, node[1].version if node else None):
                    break
            else:
                raise CoordinationError(f"{path} is changed by others all the time")
            self._take_in(pattern, new)
            if new == old:
                return
            logger.info("ACLs of %s changed, there are %d now", pattern, len(new))

    async def _write(
        self,
        pattern: Pattern,
        entries: frozenset[Entry],
        version: int | None,
        *,
        keeps_node: bool = False,
    ) -> bool:
        """Write and announce the node, at once, if it still has this version (None: if there is
        none). `keeps_node`: also where it has no entries.
        """
        path, tree = nodes.path_of(pattern), self._tree
        announcement = announcement_of(tree, *nodes.encode_change(pattern))
        data = nodes.encode_entries(entries)
        write: Create | Set | Delete
        if version is None:
            await ensure_node(tree, parent_of(path))
            write = Create(path, data)
        else:
            keeps_node = keeps_node or bool(entries)
            write = Set(path, data, version) if keeps_node else Delete(path, version)
        try:
            await tree.multi((write, *announcement))
        except NotEmpty:  # ACLs of a longer name with a slash: only StandardAuthorizer allows it
            return await self._write(pattern, entries, version, keeps_node=True)
        except (BadVersion, NodeExists, NoNode):
            return False
        return True

    def _take_in(self, pattern: Pattern, entries: frozenset[Entry]) -> None:
        if entries:
            self._known_patterns.add(pattern)
        else:
            self._known_patterns.discard(pattern)
        self._put_entries(pattern, entries)

    # Changes by others

    async def _read_all(self, *, is_strict: bool = False) -> None:
        """Read every ACL. With `is_strict` a broken node raises CoordinationError: a broker does
        not start with less than all of its ACLs.
        """
        patterns: set[Pattern] = set()
        async with self._lock:
            for root in nodes.ACLS.values():
                for path in await self._tree.subtree(root):
                    pattern = nodes.pattern_of(path)
                    if pattern is not None:
                        patterns.add(pattern)
            await self._read_patterns(patterns | self._known_patterns, is_strict=is_strict)

    async def _read_patterns(self, patterns: Iterable[Pattern], *, is_strict: bool = False) -> None:
        """Read the ACLs of these patterns. Call it with the lock."""
        sorted_patterns = sorted(patterns)
        paths = [nodes.path_of(pattern) for pattern in sorted_patterns]
        values = await self._tree.get_many(paths)
        for pattern, path, value in zip(sorted_patterns, paths, values, strict=True):
            try:
                entries = nodes.decode_entries(path, value[0]) if value else frozenset()
            except CoordinationError as error:
                if is_strict:
                    raise
                logger.error("the ACLs of %s stay as they were: %s", pattern, error)
                continue
            self._take_in(pattern, entries)

    async def _read_announced(self, announcements: list[Announcement]) -> None:
        changed_patterns: set[Pattern] = set()
        for path, value in announcements:
            try:
                changed_patterns.add(nodes.decode_change(path, value))
            except CoordinationError as error:  # a broken node must not stop this broker
                logger.warning("%s", error)
        async with self._lock:
            await self._read_patterns(changed_patterns)
