"""The brokers whose directories are handed over or taken back, and who owns them now.

A node is a broker with its log directories; the first one has `__cluster_metadata-0`. Brokers of
one process share a tree in the directory above theirs.

The first directory says who owns a node. Its `meta.properties` has version 0 where minibroker does,
version 1 where Apache Kafka does. `quorum-state` is a file that Kafka writes at its start: with it,
the node is Kafka's whatever the version, because the log may have more than the tree.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.app import CLUSTER_FILE, TREE_FILE
from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    LogDirectory,
    has_served_kraft,
    is_kafkas,
    read_properties,
)
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.ids import topic_id_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.storage.log_directory import MetaProperties

_MEMBERS: Final = "broker-*"


class NodeDirectory(NamedTuple):
    """A log directory, and what its `meta.properties` says."""

    path: str
    properties: MetaProperties
    id: bytes | None
    """16 bytes; None: it has none yet."""


class KafkaNode(NamedTuple):
    """A broker with its log directories, in the order of `log.dirs`."""

    id: int
    directories: tuple[NodeDirectory, ...]

    @property
    def metadata_path(self) -> Path:
        """Return where the log of the metadata is."""
        return Path(self.directories[0].path, names.KRAFT_LOG)

    @property
    def is_kafkas(self) -> bool:
        """Return whether Apache Kafka owns the node."""
        first = self.directories[0]
        return is_kafkas(REAL_FILES, first.path, first.properties)

    @property
    def was_started_by_kafka(self) -> bool:
        """Return whether Kafka served the node after the last hand-over."""
        return has_served_kraft(REAL_FILES, self.directories[0].path)


class Home(NamedTuple):
    """The directories of a whole cluster."""

    nodes: tuple[KafkaNode, ...]
    """In the order of their ids."""
    tree_file: Path
    is_shared: bool
    """True if several brokers of one process share the tree."""

    @property
    def cluster_id(self) -> str:
        """Return the id that the first directory has."""
        return self.nodes[0].directories[0].properties.cluster_id or ""


def read_home(paths: Sequence[str]) -> Home:
    """Return the cluster in these directories: the log directories of one broker, or the directory
    of several brokers.

    Raises StorageError where they are no such thing, or belong to several clusters.
    """
    first = Path(paths[0])
    parent = first.resolve().parent
    if first.match(_MEMBERS) and (parent / CLUSTER_FILE).exists():
        raise StorageError(
            f"{first} is one broker of several: name {parent}, where all of them are"
        )
    members = sorted(first.glob(_MEMBERS)) if _is_shared(first) else []
    if members:
        nodes = tuple(
            sorted(
                _node([str(Path(path, member.name)) for path in paths if _has(path, member.name)])
                for member in members
            )
        )
        home = Home(nodes, first / CLUSTER_FILE, is_shared=True)
    else:
        home = Home((_node(paths),), first / TREE_FILE, is_shared=False)
    _check_one_cluster(home)
    return home


def _is_shared(directory: Path) -> bool:
    """Return whether a directory has those of several brokers."""
    if (directory / CLUSTER_FILE).exists():
        return True
    has_members = any((path / names.META_PROPERTIES).exists() for path in directory.glob(_MEMBERS))
    return has_members and not (directory / names.META_PROPERTIES).exists()


def _has(path: str, member: str) -> bool:
    return Path(path, member, names.META_PROPERTIES).exists()


def _node(paths: Sequence[str]) -> KafkaNode:
    """Return the node with these log directories. Raises StorageError."""
    directories = tuple(_directory(path.rstrip("/") or "/") for path in paths)
    ids = {directory.properties.broker_id for directory in directories}
    if len(ids) > 1:
        raise StorageError(
            f"{', '.join(paths)} belong to different brokers "
            f"({', '.join(map(str, sorted(map(str, ids))))}): name the log directories of one "
            "broker, or the directory of serve --brokers"
        )
    (broker_id,) = ids
    if broker_id is None:
        raise StorageError(f"{paths[0]}/{names.META_PROPERTIES} has no broker id: expected one")
    return KafkaNode(broker_id, directories)


def _directory(path: str) -> NodeDirectory:
    try:
        properties = read_properties(REAL_FILES, path)
    except (OSError, CorruptionError) as error:
        raise StorageError(f"the data directory {path} cannot be read: {error}") from error
    if properties is None:
        raise StorageError(
            f"{path} is no data directory: there is no {names.META_PROPERTIES} in it"
        )
    text = properties.directory_id
    try:
        return NodeDirectory(path, properties, topic_id_from_text(text) if text else None)
    except ValueError:
        raise StorageError(
            f"{path}/{names.META_PROPERTIES} has directory.id={text}: expected the 22 characters of"
            " an id"
        ) from None


def _check_one_cluster(home: Home) -> None:
    """Raise StorageError unless each directory names the same cluster."""
    cluster_ids = {
        directory.properties.cluster_id for node in home.nodes for directory in node.directories
    }
    if len(cluster_ids) > 1 or None in cluster_ids:
        raise StorageError(
            f"the directories of {home.nodes[0].directories[0].path} name these clusters: "
            f"{', '.join(sorted(map(str, cluster_ids)))}; expected one"
        )


def lock(home: Home) -> ExitStack:
    """Lock each directory; they are free again when the returned stack is closed.

    Raises StorageError while a broker, of minibroker or of Kafka, serves one of them.
    """
    with ExitStack() as stack:
        for node in home.nodes:
            for directory in node.directories:
                locked = LogDirectory(REAL_FILES, directory.path)
                locked.open()
                stack.callback(locked.release)
        return stack.pop_all()


def unclean_directories(home: Home) -> list[str]:
    """Return the directories without the marker of a clean stop."""
    return [
        directory.path
        for node in home.nodes
        for directory in node.directories
        if not Path(directory.path, names.CLEAN_SHUTDOWN).exists()
    ]
