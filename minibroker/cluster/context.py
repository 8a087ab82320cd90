"""What the parts of the cluster package share: one tree, one image, one lock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    from minibroker.clock import Clock
    from minibroker.cluster.tree import Tree
    from minibroker.cluster.updates import ImageUpdater


class ClusterContext:
    """Wired by `Cluster`; `lock` is held by whoever writes the tree or reads it into the image.

    Without the lock a reader that looked before a write could undo it in the image afterwards.
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
        self.broker_id = broker_id
        self.tree = tree
        self.updater = updater
        self.clock = clock
        self.log = log
        self.lock = asyncio.Lock()
