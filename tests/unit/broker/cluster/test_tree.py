"""Paths of the tree, and the helpers that stand on its interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.tree import (
    check_path,
    child_path,
    ensure_node,
    parent_of,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.tree import Tree


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/a/./b", "/..", "/a\0"])
def test_check_path_refuses(path: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        check_path(path)


def test_parent_of() -> None:
    assert parent_of("/a/b") == "/a"
    assert parent_of("/a") == "/"


def test_child_path() -> None:
    assert child_path("/", "a") == "/a"
    assert child_path("/a", "b") == "/a/b"


async def test_ensure_node_tells_whether_it_made_it(tree: Tree) -> None:
    assert await ensure_node(tree, "/a/b", b"first")
    assert not await ensure_node(tree, "/a/b", b"second")
    assert (await tree.get("/a/b"))[0] == b"first"
