"""The directories of an Apache Kafka that is stopped, made minibroker's again.

Kafka's changes of the metadata are brought into the tree, in one transaction; the logs stay as they
are. As long as `__cluster_metadata-0` is there the node is Kafka's, so a take-back that was killed
is done again from the start. Of several nodes the one with the longest log comes last:

    lock        each directory; nobody else serves it
    read        `__cluster_metadata-0` of the node whose log is the longest → `Metadata`
    check       nothing in it is beyond minibroker
    write       the tree
    own         `meta.properties` in version 0: the other directories of a node, then its first one
    guard       a file in the place of `__cluster_metadata-0`, so that Kafka does not start

Directories that minibroker never had come in the same way: the tree is made.

Source: Kafka ZkMigrationClient, RaftMessageQueue; KRaft's rule of elections: the longest log of the
newest epoch wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.registration import get_cluster_id
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import MetaProperties, write_properties
from minibroker.clock import SystemClock
from minibroker.kafka.errors import StorageError
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.levels import LEVELS
from minibroker.tools.kraft.log_directory import guard
from minibroker.tools.kraft.log_reading import read_metadata_directory
from minibroker.tools.kraft.metadata import ConfigKind
from minibroker.tools.kraft.nodes import lock
from minibroker.tools.kraft.tree import write_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.tools.kraft.log_reading import StoredMetadata
    from minibroker.tools.kraft.metadata import Metadata
    from minibroker.tools.kraft.nodes import Home, KafkaNode

_TIERED = "remote.storage.enable"
_NAMED_MAX = 5
"""Most topics that a message names."""


async def take_back(
    home: Home, configs: Sequence[BrokerConfig], *, dry_run: bool = False
) -> Metadata:
    """Make the directories minibroker's, and return the metadata that the tree has now.

    Args:
        home: the directories; nobody serves them.
        configs: of each node, as `serve` will have it, in the order of `home.nodes`.
        dry_run: write nothing.

    Raises:
        StorageError: the directories are minibroker's, in use, or cannot be read or written.
        CorruptionError, NoMetadataError, LevelError: the metadata cannot be read.
        TransferError: minibroker cannot have what they say.
        CoordinationError: the tree cannot be written.
    """
    if not any(node.is_kafkas for node in home.nodes):
        raise StorageError(
            f"{home.nodes[0].directories[0].path} is minibroker's: `minibroker serve` serves it, "
            "and there is nothing to take back"
        )
    with lock(home):
        nodes = _by_length(home)
        stored = nodes[-1].stored
        _check_directories(home, stored)
        metadata = stored.metadata
        reasons = list(reasons_against(metadata, [node.id for node in home.nodes]))
        if reasons:
            raise TransferError("; ".join(reasons))
        if not dry_run:
            await _write(home, configs[0], metadata)
            _own(home, nodes)
    return metadata


class _StoredNode(NamedTuple):
    """A node, and the metadata that it has."""

    node: KafkaNode
    stored: StoredMetadata


def _by_length(home: Home) -> list[_StoredNode]:
    """Return the nodes that have metadata. The last one would win an election. Raises StorageError,
    CorruptionError, NoMetadataError, LevelError.
    """
    nodes = [node for node in home.nodes if node.metadata_path.is_dir()]
    stored = []
    for node in nodes or home.nodes[:1]:
        try:
            metadata = read_metadata_directory(REAL_FILES, node.directories[0].path)
        except OSError as error:
            raise StorageError(f"{error.filename} cannot be read: {error.strerror}") from error
        stored.append(_StoredNode(node, metadata))
    return sorted(stored, key=lambda node: (node.stored.metadata.epoch, node.stored.end_offset))


def _check_directories(home: Home, stored: StoredMetadata) -> None:
    """Raise StorageError where a node has log directories that are not named."""
    for node in home.nodes:
        broker = stored.brokers.get(node.id)
        named_ids = {directory.id for directory in node.directories}
        count = len(set(broker.directories) - named_ids) if broker is not None else 0
        if count:
            raise StorageError(
                f"node {node.id} has {count} more log "
                f"{'directory' if count == 1 else 'directories'} than "
                f"{', '.join(directory.path for directory in node.directories)}: name all, in the "
                "order of log.dirs"
            )


def reasons_against(metadata: Metadata, node_ids: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each kind of thing that minibroker cannot have, with what to do."""
    foreign_topics = [
        name
        for name, topic in metadata.topics.items()
        if any(not set(partition.replicas) <= set(node_ids) for partition in topic.partitions)
    ]
    if foreign_topics:
        yield (
            f"topics with replicas on other nodes than {', '.join(map(str, sorted(node_ids)))}: "
            f"{_some(foreign_topics)}: move them here with kafka-reassign-partitions, or delete "
            "them, while Kafka runs"
        )
    tiered_topics = [
        entity.name
        for entity, values in metadata.configs.items()
        if entity.kind is ConfigKind.TOPIC and values.get(_TIERED, "").lower() == "true"
    ]
    if tiered_topics:
        yield (
            f"topics with {_TIERED}=true: {_some(tiered_topics)}: their older records are not in "
            f"the log directories. Set {_TIERED}=false and remote.log.delete.on.disable=true, "
            "while Kafka runs"
        )
    newest = LEVELS[max(LEVELS, key=lambda release: tuple(map(int, release.split("."))))]
    for name, level in metadata.features.items():
        if level > newest.get(name, 0):
            yield (
                f"feature {name} is at level {level}, the newest one here is "
                f"{newest.get(name, 0)}: lower it with kafka-features downgrade, while Kafka runs"
            )


def _some(topic_names: Sequence[str]) -> str:
    """Return the first names, and how many follow."""
    names = ", ".join(topic_names[:_NAMED_MAX])
    rest = len(topic_names) - _NAMED_MAX
    return f"{names} and {rest} more" if rest > 0 else names


async def _write(home: Home, config: BrokerConfig, metadata: Metadata) -> None:
    """Write the tree. Raises StorageError, CoordinationError, TransferError, ConfigError."""
    tree = EmbeddedTree(home.tree_file, SystemClock())
    await tree.open()
    try:
        cluster_id = await get_cluster_id(tree, home.cluster_id)
        if cluster_id != home.cluster_id:
            raise TransferError(
                f"{home.tree_file} is of cluster {cluster_id}, but the directories are of cluster "
                f"{home.cluster_id}: remove the file if nobody needs it"
            )
        await write_metadata(tree, metadata, config)
        await tree.flush()
    finally:
        await tree.close()


def _own(home: Home, nodes: Sequence[_StoredNode]) -> None:
    """Write the marks of minibroker's ownership. Raises StorageError.

    The longest log goes last, so a take-back that is killed here finds it when it is done again.
    """
    now_ms = SystemClock().now_ms()
    guarded = {stored.node.id for stored in nodes}
    others = [node for node in home.nodes if node.id not in guarded]
    try:
        for node in home.nodes:
            for directory in reversed(node.directories):
                directory_id = directory.properties.directory_id
                properties = MetaProperties(node.id, home.cluster_id, directory_id)
                write_properties(REAL_FILES, directory.path, properties, now_ms)
        for node in [*others, *(stored.node for stored in nodes)]:
            guard(REAL_FILES, node.directories[0].path)
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be written: {error.strerror}") from error
