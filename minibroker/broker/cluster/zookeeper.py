"""The tree in ZooKeeper: each operation of `Tree` as calls of a session.

Empty values are written as null, as Kafka writes them (its reader of /latest_producer_id_block
tells the two apart).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.tree import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Set,
    Stat,
    TreeError,
    child_path,
    parent_of,
)
from minibroker.broker.cluster.zookeeper_session import ZooKeeperSession
from minibroker.broker.slices import collect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.cluster.tree import Operation

NODES_AT_ONCE: Final = 200
"""Nodes whose children are asked for together: their calls are made in half a millisecond."""
_EPHEMERAL: Final = 1
_SEQUENCE: Final = 2


class ZooKeeperTree(ZooKeeperSession):
    """`Tree` in ZooKeeper."""

    is_shared = True
    change_count = 0

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
        while True:
            try:
                created_path = await self._call(
                    path,
                    self._client_create,
                    self._full(path),
                    data or None,
                    ephemeral,
                    sequence,
                )
                return str(created_path)[len(self._chroot) :]
            except NoNode:
                if not make_parents:
                    raise NoNode(parent_of(path)) from None
                await self._create_parent(parent_of(path))

    async def _create_parent(self, parent: str) -> None:
        try:
            await self.create(parent, make_parents=True)
        except NodeExists:
            return

    def _client_create(self, path: str, data: bytes | None, ephemeral: bool, sequence: bool) -> Any:
        return self._client.create_async(path, data, ephemeral=ephemeral, sequence=sequence)

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return value and stat. Raises NoNode."""
        data, stat = await self._call(path, self._client_method("get_async"), self._full(path))
        return data or b"", _stat(stat)

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Return value and stat of each path, pipelined, in order; None where there is no node."""
        get = self._client_method("get_async")
        calls = [(path, partial(get, self._full(path))) for path in paths]
        nodes: list[tuple[bytes, Stat] | None] = []
        for answer in await self._call_many(calls):
            if isinstance(answer, NoNode):
                nodes.append(None)
            elif isinstance(answer, TreeError):
                raise answer
            else:
                nodes.append((answer[0] or b"", _stat(answer[1])))
        return nodes

    async def exists(self, path: str) -> Stat | None:
        """Return the stat, None if there is no node."""
        stat = await self._call(path, self._client_method("exists_async"), self._full(path))
        return None if stat is None else _stat(stat)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the value; return the new version. Raises NoNode, BadVersion."""
        stat = await self._call(
            path, self._client_method("set_async"), self._full(path), data or None, version
        )
        return int(stat.version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children. Raises NoNode, BadVersion, NotEmpty."""
        await self._call(path, self._client_method("delete_async"), self._full(path), version)

    async def children(self, path: str) -> list[str]:
        """Return the names of the children, sorted. Raises NoNode."""
        names = await self._call(path, self._client_method("get_children_async"), self._full(path))
        if path == "/" and not self._chroot:
            names = [name for name in names if name != "zookeeper"]  # its own, not the tree's
        return sorted(names)

    async def subtree(self, path: str) -> list[str]:
        """Return the paths of a node and of everything below it, parents first; none if it is
        absent. The children of all nodes of a level are asked for together.
        """
        node_paths: list[str] = []
        level = [path]
        children = self._client_method("get_children_async")
        while level:
            below: list[str] = []
            for start in range(0, len(level), NODES_AT_ONCE):
                batch = level[start : start + NODES_AT_ONCE]
                calls = [(parent, partial(children, self._full(parent))) for parent in batch]
                for parent, answer in zip(batch, await self._call_many(calls), strict=True):
                    if isinstance(answer, NoNode):
                        continue  # deleted meanwhile
                    if isinstance(answer, TreeError):
                        raise answer
                    node_paths.append(parent)
                    below += await collect(child_path(parent, name) for name in sorted(answer))
            level = below
        return node_paths

    async def multi(self, operations: Sequence[Operation]) -> list[str | int]:
        """Do all in one transaction, or none."""
        if not operations:
            return []
        transaction = self._client_method("transaction")()
        transaction.operations.extend(self._wire(operation) for operation in operations)
        results = await self._call(operations[0].path, transaction.commit_async)
        exceptions = self._kazoo.exceptions
        bystanders = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
        values: list[str | int] = []
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, bystanders):
                continue
            if isinstance(result, Exception):
                path = operation.path
                if isinstance(operation, Create) and isinstance(result, exceptions.NoNodeError):
                    path = parent_of(path)
                raise self._translate(path, result)
            if isinstance(operation, Set):
                values.append(int(result.version))
            elif isinstance(operation, Create):
                values.append(str(result)[len(self._chroot) :])
            else:
                values.append(operation.path)
        return values

    def _wire(self, operation: Operation) -> Any:
        wire = self._kazoo.protocol.serialization
        path = self._full(operation.path)
        if isinstance(operation, Create):
            flags = _EPHEMERAL * operation.ephemeral | _SEQUENCE * operation.sequence
            acl = self._kazoo.security.OPEN_ACL_UNSAFE
            return wire.Create(path, operation.data or None, acl, flags)
        if isinstance(operation, Set):
            return wire.SetData(path, operation.data or None, operation.version)
        if isinstance(operation, Check):
            return wire.CheckVersion(path, operation.version)
        assert isinstance(operation, Delete)
        return wire.Delete(path, operation.version)

    async def sync(self) -> None:
        """Have the server catch up with its leader. Raises CoordinationError."""
        path = self._full("/")
        await self._call(path, self._client_method("sync_async"), path)

    async def flush(self) -> None:
        """Do nothing: ZooKeeper acknowledges what its quorum has on disk."""


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.czxid, stat.ctime, stat.ephemeralOwner)
