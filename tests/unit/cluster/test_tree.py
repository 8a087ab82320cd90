"""Paths of the tree, and the helpers that stand on its interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.cluster.tree import (
    Create,
    check_path,
    child_path,
    delete_subtree,
    ensure_node,
    parent_of,
)

if TYPE_CHECKING:
    from minibroker.cluster.tree import Tree


async def test_delete_subtree_removes_any_size_and_accepts_nothing(tree: Tree) -> None:
    await delete_subtree(tree, "/nothing")
    await tree.create("/a")
    await tree.create("/keep")
    for one in range(0, 600, 100):
        await tree.multi([Create(f"/a/{child}") for child in range(one, one + 100)])
    await tree.create("/a/5/deep", b"x")
    await delete_subtree(tree, "/a")
    assert await tree.children("/") == ["keep"]


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
