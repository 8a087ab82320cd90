"""The tree of a broker that is stopped ↔ `Metadata`.

    read_metadata     tree ─► `tree_nodes` ─► `tree_reading` ─► Metadata
    write_metadata    Metadata, `tree_nodes` ─► `tree_writing` ─► one transaction ─► tree

The tree may be that of one broker or of several in one process: `cluster.embedded`,
`cluster.shared`.

Source: Kafka ZkMigrationClient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.tools.kraft.tree_nodes import load_nodes
from minibroker.tools.kraft.tree_reading import metadata_in
from minibroker.tools.kraft.tree_writing import operations_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.kafka.ids import TopicId
    from minibroker.tools.kraft.metadata import Metadata


async def read_metadata(
    tree: Tree, config: BrokerConfig, topic_ids: Mapping[str, TopicId] | None = None
) -> Metadata:
    """Return the metadata of an open tree that nobody writes to.

    `config` is that of a broker: `password.encoder.secret` opens its passwords, and a feature that
    nobody changed has the level of this configuration. A topic whose node has no id (Kafka before
    2.8) gets that of `topic_ids`, else a new one. So pass the ids of `partition.metadata`, and
    write that file where there is none: on both sides a log belongs to the topic of its id.

    A move that an old tool asked for in /admin/reassign_partitions is under way in the answer. The
    epoch of a partition is the version of its state's node.

    Raises CoordinationError: a node cannot be read. TransferError: Kafka cannot have what a node
    says. ConfigError: wrong settings of `password.encoder.…`.
    """
    nodes = await load_nodes(tree)
    return metadata_in(nodes, config, topic_ids or {}, is_shared=tree.is_shared)


async def write_metadata(tree: Tree, metadata: Metadata, config: BrokerConfig) -> int:
    """Bring an open tree that nobody uses to the metadata; return how many operations it took, 0
    where the tree says the same. They are one transaction, on disk when this returns: after a kill
    or a power cut the tree is the old or the new one.

    `config` is that of a broker: `password.encoder.secret` encodes passwords of brokers that are
    new, and a feature out of force is written down where this configuration has it in force.
    `read_metadata` returns the metadata afterwards, but for ids of ACLs, directories and eligible
    leaders, which no node has. Versions of nodes, which are epochs of partitions, grow as with any
    change. The controller's epoch and the producer ids never fall.

    Raises CoordinationError: a node cannot be read, or the disk refuses. TransferError: the tree
    cannot hold something. TreeError: somebody wrote meanwhile. ConfigError: wrong settings of
    `password.encoder.…`. After an error the tree is as it was.
    """
    nodes = await load_nodes(tree)
    operations = operations_for(nodes, metadata, config, is_shared=tree.is_shared)
    if operations:
        await tree.multi(operations)
        await tree.flush()
    return len(operations)
