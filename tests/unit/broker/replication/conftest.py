"""Brokers that share a tree: broker 0 is the controller."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.shared import SharedTree
from tests.support.in_process import InProcessBroker, ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.partitions.partition import Partition

SETTINGS = {
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "10",
    # A stop does not wait for another replica to catch up.
    "controlled.shutdown.max.retries": "1",
}


class Pair:
    """Brokers 0 and 1 of one cluster, on one clock."""

    def __init__(self, directory: Path, brokers: AsyncExitStack) -> None:
        self.clock = ManualClock()
        self.tree = SharedTree(directory / "metadata.db", self.clock)
        self._directory = directory
        self._brokers = brokers
        self.by_id: dict[int, InProcessBroker] = {}

    async def start(self, broker_id: int, **settings: str) -> InProcessBroker:
        """Start a broker, for the first time or again."""
        broker = InProcessBroker(
            self._directory / str(broker_id),
            {**SETTINGS, "broker.id": str(broker_id), **settings},
            clock=self.clock,
            tree=self.tree.session(),
        )
        self.by_id[broker_id] = await self._brokers.enter_async_context(broker)
        await eventually(self._know_each_other)
        return broker

    def _know_each_other(self) -> bool:
        running = [broker for broker in self.by_id.values() if broker.is_running]
        return all(len(broker.broker.cluster.image.brokers) == len(running) for broker in running)

    async def stop(self, broker_id: int) -> None:
        """Stop a broker cleanly; the other one knows it when this returns."""
        await self.by_id[broker_id].stop()
        await eventually(self._know_each_other)

    async def create(self, leader: int = 0, **configs: str) -> None:
        """Make topic `t` with one partition that `leader` leads; both brokers have a replica."""
        await self.by_id[0].broker.cluster.create_topic(
            "t", assignment={0: [leader, 1 - leader]}, configs=configs
        )
        await eventually(lambda: self.replica(0) is not None and self.replica(1) is not None)

    def replica(self, broker_id: int) -> Partition | None:
        """Return the partition on a broker, None where it has none yet."""
        return self.by_id[broker_id].partitions.replica("t", 0)

    def on(self, broker_id: int) -> Partition:
        """Return the partition on a broker."""
        partition = self.replica(broker_id)
        assert partition is not None
        return partition


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """Brokers 0 and 1, started."""
    async with AsyncExitStack() as brokers:
        new_pair = Pair(tmp_path, brokers)
        (tmp_path / "0").mkdir()
        (tmp_path / "1").mkdir()
        await new_pair.start(0)
        await new_pair.start(1)
        yield new_pair
