"""One broker with a client on it, per test; requests go over the wire at any version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.shared import SharedTree
from tests.support.cluster import add_broker, add_topic_of_kafka
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.in_process import RawClient


@pytest.fixture
def clock() -> ManualClock:
    """The broker's time."""
    return ManualClock()


@pytest.fixture
def settings() -> dict[str, str]:
    """Return the broker's settings; a module may override it."""
    return {}


@pytest.fixture
async def running(
    tmp_path: Path, clock: ManualClock, settings: dict[str, str]
) -> AsyncIterator[InProcessBroker]:
    """A broker with the topic `t` of two partitions."""
    async with InProcessBroker(tmp_path, settings, clock=clock) as broker:
        await broker.create_topic("t", 2)
        yield broker


@pytest.fixture
async def client(running: InProcessBroker) -> AsyncIterator[RawClient]:
    """A connection to it."""
    async with await running.connect() as connected:
        yield connected


@pytest.fixture
async def controller(tmp_path: Path, clock: ManualClock) -> AsyncIterator[InProcessBroker]:
    """Broker 0, the controller of a cluster. Broker 2 is registered, and leads `t` alone in sync.

    Both have a replica of it.
    """
    home = SharedTree(tmp_path / "metadata.db", clock)
    # The other broker is registered only, and does not take over at the stop.
    settings = {"controlled.shutdown.enable": "false"}
    async with InProcessBroker(tmp_path, settings, clock=clock, tree=home.session()) as broker:
        cluster = broker.broker.cluster
        await add_broker(cluster, cluster.tree, 2)
        await add_topic_of_kafka(cluster, cluster.tree, "t", [2, 0], isr=[2])
        yield broker


@pytest.fixture
def deposed(running: InProcessBroker) -> InProcessBroker:
    """The broker, after another one became controller."""
    running.broker.cluster._election.lose()
    return running
