"""Homes of the tree for the tests of this folder; one ZooKeeper per run, a chroot per test."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from minibroker.clock import SystemClock
from minibroker.cluster.embedded import EmbeddedTree
from minibroker.cluster.zookeeper import ZooKeeperTree
from tests.support.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from minibroker.cluster.tree import Tree

_chroots = count()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper that nobody stops."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(params=["embedded", pytest.param("zookeeper", marks=pytest.mark.java)])
def new_tree(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Tree]:
    """Makes clients of one and the same tree, not opened yet. Embedded: one at a time."""
    if request.param == "embedded":
        return lambda: EmbeddedTree(tmp_path / "metadata.db", SystemClock())
    server: ZooKeeperServer = request.getfixturevalue("zookeeper")
    connect = f"{server.address}/test-{next(_chroots)}"
    return lambda: ZooKeeperTree(connect, session_timeout_ms=6_000)


@pytest.fixture
async def tree(new_tree: Callable[[], Tree]) -> AsyncIterator[Tree]:
    """One open tree, empty."""
    opened = new_tree()
    await opened.open()
    yield opened
    await opened.close()
