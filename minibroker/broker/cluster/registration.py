"""This broker's entry in the cluster: /brokers/ids/<id>, an ephemeral node; and the cluster id.

A broker that was killed leaves its node behind until ZooKeeper lets the old session go
(`zookeeper.session.timeout.ms`). Kafka refuses to start meanwhile. minibroker waits, and refuses
only if the node stays: then another process really has this broker id.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    decode_broker,
    decode_cluster_id,
    encode_broker,
    encode_cluster_id,
)
from minibroker.broker.cluster.image import BrokerInfo
from minibroker.broker.cluster.tree import Create, NodeExists, NoNode, ensure_node
from minibroker.kafka.errors import CoordinationError, ForeignTreeError
from minibroker.kafka.ids import topic_id_to_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.image import Endpoint
    from minibroker.broker.cluster.tree import Operation, Tree


async def create_parents(tree: Tree) -> None:
    """Make the nodes that every Kafka broker makes at start, those that are missing."""
    nodes = await tree.get_many(paths.PERSISTENT)
    missing_paths = [
        path for path, value in zip(paths.PERSISTENT, nodes, strict=True) if value is None
    ]
    if not tree.is_shared and missing_paths:  # alone: one transaction, parents first
        every = {parent for path in missing_paths for parent in _lineage(path)}
        parent_nodes = await tree.get_many(sorted(every))
        operations: list[Operation] = [
            Create(path)
            for path, value in zip(sorted(every), parent_nodes, strict=True)
            if value is None
        ]
        await tree.multi(operations)
        return
    for path in missing_paths:
        await ensure_node(tree, path)


def _lineage(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(2, len(names) + 1)]


async def get_cluster_id(tree: Tree, proposal: str | None) -> str:
    """Return the cluster's id: what the tree says, else `proposal`, else a new one. A new one is
    stored.
    """
    cluster_id = proposal or topic_id_to_text(os.urandom(16))
    while True:
        try:
            data, _ = await tree.get(paths.CLUSTER_ID)
            return decode_cluster_id(paths.CLUSTER_ID, data)
        except NoNode:
            if await ensure_node(tree, paths.CLUSTER_ID, encode_cluster_id(cluster_id)):
                return cluster_id


async def check_cluster_id(tree: Tree, cluster_id: str) -> None:
    """Compare the id of the tree with the cluster's, in a new session with the tree's home.

    Raises ForeignTreeError where they differ, or where the tree has none any more: its home came
    back empty, or another one took its address. Raises CoordinationError.
    """
    try:
        data, _ = await tree.get(paths.CLUSTER_ID)
    except NoNode:
        finding = "has no cluster id any more"
    else:
        found_id = decode_cluster_id(paths.CLUSTER_ID, data)
        if found_id == cluster_id:
            return
        finding = f"is of cluster {found_id} now"
    raise ForeignTreeError(
        f"the metadata tree {finding}, but this broker is in cluster {cluster_id}: the broker stops"
        " and keeps all its logs; give it back the metadata of its cluster, then start it again"
    )


class Registration:
    """Keeps this broker's node."""

    def __init__(
        self, context: ClusterContext, endpoints: tuple[Endpoint, ...], rack: str | None
    ) -> None:
        self._context = context
        self.info = BrokerInfo(context.broker_id, endpoints, rack, is_minibroker=True)
        self.is_unwritten = False
        """True while the node may have other listeners than `info`."""

    async def register(
        self, timeout_s: float, when_free: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Create the node; wait at most `timeout_s` for one that an old session left behind.

        `when_free` is awaited before, when there is none; that takes no time of `timeout_s`.

        Raises CoordinationError when the id is taken, or the tree is out of reach.
        """
        tree = self._context.tree
        path = paths.broker(self._context.broker_id)
        data = encode_broker(self.info, self._context.clock.now_ms())
        try:
            async with asyncio.timeout(timeout_s) as limit:
                while True:
                    if when_free is not None and await tree.exists(path) is None:
                        limit.reschedule(None)
                        await when_free()
                        when_free = None
                        limit.reschedule(asyncio.get_running_loop().time() + timeout_s)
                    try:
                        await tree.create(path, data, ephemeral=True)
                        break
                    except NodeExists:
                        if await self._replace_own(path):
                            continue
                        self._context.log.warning(
                            "broker id %d is still registered by an earlier session; this broker "
                            "waits until that session ends",
                            self._context.broker_id,
                        )
                        await _wait_deleted(tree, path)
        except TimeoutError:
            raise CoordinationError(
                f"broker id {self._context.broker_id} is registered by another process"
                f"{await self._address_of_other(path)}: give this broker another broker.id"
            ) from None
        stat = await tree.exists(path)
        if stat is None:
            raise CoordinationError(f"{path} disappeared right after it was created")
        self.info = self.info._replace(epoch=stat.czxid)

    async def is_there(self) -> bool:
        """Return whether the node is there, and this session's."""
        stat = await self._context.tree.exists(paths.broker(self._context.broker_id))
        return stat is not None and stat.ephemeral_owner == self._context.tree.session_id

    async def change_endpoints(self, endpoints: tuple[Endpoint, ...]) -> BrokerInfo:
        """Write other advertised listeners into the node; return the registration as it is now.

        Where the node is gone, the next `register` writes them. Raises CoordinationError.
        """
        self.info = self.info._replace(endpoints=endpoints)
        self.is_unwritten = True
        data = encode_broker(self.info, self._context.clock.now_ms())
        with suppress(NoNode):
            await self._context.tree.set(paths.broker(self._context.broker_id), data)
        self.is_unwritten = False
        return self.info

    async def _replace_own(self, path: str) -> bool:
        """Remove a node of our own session (a reply that was lost); return whether to try again."""
        stat = await self._context.tree.exists(path)
        if stat is None:
            return True
        if stat.ephemeral_owner != self._context.tree.session_id:
            return False
        await self._context.tree.delete(path)
        return True

    async def _address_of_other(self, path: str) -> str:
        try:
            data, stat = await self._context.tree.get(path)
            other_broker = decode_broker(path, self._context.broker_id, data, stat.czxid)
        except (NoNode, CoordinationError):
            return ""
        return "".join(
            f" ({endpoint.host}:{endpoint.port})" for endpoint in other_broker.endpoints[:1]
        )

    async def unregister(self) -> None:
        """Remove the node, as a clean stop does; nothing happens when it is gone, or is another
        broker's: in a tree that took the place of ours, say.
        """
        if not await self.is_there():
            return
        with suppress(NoNode):
            await self._context.tree.delete(paths.broker(self._context.broker_id))


async def _wait_deleted(tree: Tree, path: str) -> None:
    node_changed = asyncio.Event()
    cancel = await tree.watch(path, node_changed.set)
    try:
        while await tree.exists(path) is not None:
            await node_changed.wait()
            node_changed.clear()
    finally:
        cancel()


async def generate_broker_id(tree: Tree, reserved_id_max: int) -> int:
    """Return an id that no broker of this tree was ever given: above `reserved_id_max`, which is
    the highest that a configuration may have. The tree is opened and closed here.

    Raises CoordinationError.
    """
    await tree.open()
    try:
        await create_parents(tree)
        return reserved_id_max + await tree.set(paths.BROKER_SEQUENCE, b"")
    finally:
        await tree.close()
