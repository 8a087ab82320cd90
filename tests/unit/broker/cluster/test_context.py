"""The shared context: its lock orders writers and readers of the tree."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from minibroker.broker.cluster.context import ClusterContext
from minibroker.broker.cluster.image import MetadataImage
from minibroker.broker.cluster.updates import ImageUpdater
from minibroker.clock import SystemClock

if TYPE_CHECKING:
    from minibroker.broker.cluster.tree import Tree


async def test_lock_lets_one_at_a_time_in(tree: Tree) -> None:
    context = ClusterContext(
        broker_id=1,
        tree=tree,
        updater=ImageUpdater(MetadataImage()),
        clock=SystemClock(),
        log=logging.getLogger(__name__),
    )
    order = []

    async def step(name: str) -> None:
        async with context.lock:
            order.append(f"{name} in")
            await context.tree.flush()
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(step("writer"), step("reader"))
    assert order == ["writer in", "writer out", "reader in", "reader out"]
