"""Homes of the tree for the tests of this folder; in ZooKeeper each test has a chroot."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.clock import SystemClock
from tests.support.cluster import Recorder, new_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Tree
    from tests.support.peers import ZooKeeper

_chroots = count()


@pytest.fixture(params=["embedded", "shared", pytest.param("zookeeper", marks=pytest.mark.java)])
def new_tree(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Tree]:
    """Makes clients of one and the same tree, not opened yet. Embedded: one at a time."""
    if request.param == "embedded":
        return lambda: EmbeddedTree(tmp_path / "metadata.db", SystemClock())
    if request.param == "shared":
        return SharedTree(tmp_path / "metadata.db", SystemClock()).session
    server: ZooKeeper = request.getfixturevalue("zookeeper")
    connect = f"{server.connect}/test-{next(_chroots)}"
    return lambda: ZooKeeperTree(connect, session_timeout_ms=6_000)


@pytest.fixture
async def tree(new_tree: Callable[[], Tree]) -> AsyncIterator[Tree]:
    """One open tree, empty."""
    embedded = new_tree()
    await embedded.open()
    yield embedded
    await embedded.close()


@pytest.fixture
def heard() -> Recorder:
    """The listener of `cluster`."""
    return Recorder()


@pytest.fixture
def cluster_tree(new_tree: Callable[[], Tree]) -> Tree:
    """The tree of `cluster`, opened by it."""
    return new_tree()


@pytest.fixture
async def cluster(cluster_tree: Tree, heard: Recorder) -> AsyncIterator[Cluster]:
    """A started cluster of one broker, id 0."""
    started = new_cluster(cluster_tree, heard)
    await started.start()
    yield started
    await started.close()
