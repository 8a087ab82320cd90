"""The ZooKeeper home without a server. With one: `test_tree_contract.py`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from minibroker.broker.cluster.tree import SessionEvent
from minibroker.broker.cluster.zookeeper import ZooKeeperTree
from minibroker.kafka.errors import CoordinationError


async def test_everything_is_refused_at_once_before_opening() -> None:
    tree = ZooKeeperTree("127.0.0.1:1")
    seen: list[SessionEvent] = []
    tree.on_session(seen.append)
    assert tree.session_id == 0
    for operation in (
        tree.get("/a"),
        tree.get_many(["/a"]),
        tree.exists("/a"),
        tree.set("/a", b""),
        tree.delete("/a"),
        tree.children("/a"),
        tree.create("/a"),
        tree.watch("/a", lambda: None),
    ):
        with pytest.raises(CoordinationError, match="cannot be reached now"):
            await operation
    await tree.close()
    assert seen == []


def test_kazoo_is_imported_by_opening_only() -> None:
    """Start-up of a broker with the embedded home does not pay for it."""
    code = "import sys, minibroker.broker.cluster.zookeeper; sys.exit('kazoo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
