"""Parts that the modules of this package share: one tree, one image, one lock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.cluster.updates import ImageUpdater
    from minibroker.clock import Clock


class ClusterContext:
    """The parts that `Cluster` shares out.

    Hold `lock` to write the tree, or to read it into the image. Without the lock a reader that
    looked before a write could undo the write in the image afterwards.
    """

    __slots__ = ("broker_id", "clock", "lock", "log", "tree", "updater")

    def __init__(
        self,
        *,
        broker_id: int,
        tree: Tree,
        updater: ImageUpdater,
        clock: Clock,
        log: logging.Logger,
    ) -> None:
        # All are constant after construction.
        self.broker_id = broker_id
        self.tree = tree
        self.updater = updater
        self.clock = clock
        self.log = log
        self.lock = asyncio.Lock()
        """Held for every change of the image, and for every write that the image follows."""
