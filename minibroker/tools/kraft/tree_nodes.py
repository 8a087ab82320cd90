"""The nodes of a tree that metadata stand in, read at once: `TreeNodes`.

`tree_reading` makes metadata of them, `tree_writing` compares them with metadata. Neither asks the
tree itself.

Source: Kafka ZkData.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.paths import desanitize
from minibroker.broker.cluster.tree import child_path, parent_of
from minibroker.broker.security import acl_nodes, token_nodes
from minibroker.tools.kraft.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.broker.cluster.tree import Stat, Tree

ENTITY_TYPES: Final = (*paths.CONFIG_TYPES, *paths.UNANNOUNCED_CONFIG_TYPES)
"""Types below /config whose nodes are read."""
_ROOTS: Final = (
    paths.TOPICS,
    paths.ADMIN_DELETE_TOPICS,
    *(f"{paths.CONFIG}/{entity_type}" for entity_type in ENTITY_TYPES),
    *acl_nodes.ACLS.values(),
    token_nodes.TOKENS,
)
"""Nodes that are read with everything below them."""
_SINGLE_PATHS: Final = (
    paths.CONTROLLER_EPOCH,
    paths.FEATURE,
    paths.PRODUCER_ID_BLOCK,
    paths.REASSIGN_PARTITIONS,
)


class TreeNodes:
    """Values and stats by path. Constant after construction."""

    def __init__(self, nodes: Mapping[str, tuple[bytes, Stat]]) -> None:
        self._nodes = nodes
        self._children: dict[str, list[str]] = {}
        """Path → names of the nodes below it, sorted as they were read."""
        for path in nodes:
            if path != "/":
                parent, _, name = path.rpartition("/")
                self._children.setdefault(parent or "/", []).append(name)

    def __contains__(self, path: str) -> bool:
        return path in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def value(self, path: str) -> bytes | None:
        """Return the value of a node, None where there is no node."""
        node = self._nodes.get(path)
        return None if node is None else node[0]

    def version(self, path: str) -> int:
        """Return the version of a node that exists."""
        return self._nodes[path][1].version

    def children(self, path: str) -> list[str]:
        """Return the names of the nodes below a node, none where it does not exist."""
        return self._children.get(path, [])

    def subtree(self, path: str) -> Iterator[str]:
        """Yield the paths of a node that exists and of everything below it, parents first."""
        open_paths = [path] if path in self._nodes else []
        while open_paths:
            node_path = open_paths.pop()
            yield node_path
            open_paths += [child_path(node_path, name) for name in self.children(node_path)]


async def load_nodes(tree: Tree) -> TreeNodes:
    """Read the nodes of a tree that nobody writes to. Raises CoordinationError."""
    single_paths = [*_SINGLE_PATHS]
    for root in _ROOTS:
        path = root
        while path != "/":
            path = parent_of(path)
            single_paths.append(path)
    node_paths = list(dict.fromkeys(single_paths))
    for root in _ROOTS:
        node_paths += await tree.subtree(root)
    values = await tree.get_many(node_paths)
    return TreeNodes(
        {path: node for path, node in zip(node_paths, values, strict=True) if node is not None}
    )


def plain_name(path: str, node_name: str) -> str:
    """Return the name that a node's name stands for. Raises TransferError."""
    try:
        return desanitize(node_name)
    except ValueError as error:
        raise TransferError(
            f"{path} of the metadata tree has a name that is not percent-encoded UTF-8:"
            f" {node_name!r}; delete the node"
        ) from error
