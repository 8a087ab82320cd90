"""The directories of a broker that is stopped, made ready for Apache Kafka.

The logs stay as they are: Kafka reads the same files. Two things are written beside them: a
snapshot of the metadata, and `meta.properties` in version 1. The tree is only read. The
last step decides; a hand-over that was killed before it is as one that never began:

    recover     a stop that was not clean, by a start and a stop of the broker
    lock        each directory; nobody else serves it
    read        the tree → `Metadata`
    write       `__cluster_metadata-0` of each node
    own         `meta.properties` in version 1: the other directories of a node, then its first one

A hand-over may be done again until Kafka has started: it reads the tree again.

Source: Kafka StorageTool, Formatter, KafkaRaftServer.initializeLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from minibroker.broker.app import Broker
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.features import ELIGIBLE_LEADER_REPLICAS
from minibroker.broker.local_cluster import LocalCluster
from minibroker.broker.security.acls import Operation
from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    MetaProperties,
    way_back,
    write_clean_marker,
    write_properties,
)
from minibroker.broker.storage.partition_metadata import encode_metadata as encode_topic_id
from minibroker.broker.storage.partition_metadata import read_metadata as read_topic_id
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.ids import TopicPartition, topic_id_to_text
from minibroker.tools.kraft.errors import TransferError
from minibroker.tools.kraft.levels import LEVELS
from minibroker.tools.kraft.log_directory import SnapshotId, write_metadata_directory
from minibroker.tools.kraft.nodes import lock, unclean_directories
from minibroker.tools.kraft.records import RegisteredBroker, records_of
from minibroker.tools.kraft.stopped import replica_directories, without_leaders
from minibroker.tools.kraft.tree import read_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.clock import Clock
    from minibroker.kafka.ids import TopicId
    from minibroker.tools.kraft.metadata import Metadata
    from minibroker.tools.kraft.nodes import Home, KafkaNode

_LEVELS_ON_DEMAND = frozenset({ELIGIBLE_LEADER_REPLICAS})
"""Features that minibroker knows and that are not in force unless somebody asked for them."""


_WITH_NETWORKS = (4, 4)
_WITH_TWO_PHASES = (4, 1)
"""Releases from which on ACLs have networks as hosts, and the operation TWO_PHASE_COMMIT."""
_BROKER_EPOCH = 0
"""Epoch of the registrations in the snapshot: below each one that Kafka gives."""


Places = dict[tuple[int, TopicPartition], bytes]
"""(node, partition) → id of the log directory with the replica, 16 bytes."""


class Logs(NamedTuple):
    """The logs in the directories of a cluster, as far as Kafka's metadata name them."""

    directory_ids: Mapping[str, bytes]
    """Path → id, 16 bytes."""
    places: Places
    topic_ids: Mapping[str, TopicId]
    """Topic → id that its logs name."""
    unnamed: Mapping[str, str]
    """Directory of a log that names no id → its topic. Kafka 4 serves no such log."""


async def hand_over(
    home: Home, configs: Sequence[BrokerConfig], release: str, *, dry_run: bool = False
) -> Metadata:
    """Make the directories Kafka's, and return the metadata that Kafka has now.

    Args:
        home: the directories; nobody serves them.
        configs: of each node, as `serve` had it, in the order of `home.nodes`.
        release: key of `LEVELS`.
        dry_run: write nothing. The answer lacks the changes that a recovery would make.

    Raises:
        StorageError: the directories are Kafka's already, in use, or cannot be read or written.
        TransferError, LevelError: Kafka cannot have what the tree says.
        CoordinationError: the tree cannot be read.
        MinibrokerError: the broker that recovers cannot start.
    """
    _check_owner(home)
    clock = SystemClock()
    if not dry_run and unclean_directories(home):
        await _recover(home, configs, clock)
    with lock(home):
        logs = _read_logs(home)
        metadata = await _read_tree(home, configs[0], logs.topic_ids, clock)
        metadata.features = levels_of(metadata.features, release)
        reasons = list(reasons_against(metadata, release))
        if reasons:
            raise TransferError("; ".join(reasons))
        metadata = without_leaders(metadata, logs.places)
        if not dry_run:
            _check_logs(home, logs, metadata)
            _write(home, metadata, logs, clock.now_ms())
    return metadata


def _check_owner(home: Home) -> None:
    for node in home.nodes:
        if node.was_started_by_kafka:
            path = node.directories[0].path
            raise StorageError(
                f"{path} was handed over and served by Kafka since then: "
                f"{way_back(str(home.tree_file.parent))}"
            )
    if not home.tree_file.exists():
        raise StorageError(
            f"{home.tree_file} does not exist: expected the data directory of a minibroker that "
            "keeps its metadata itself. With --zookeeper they are in ZooKeeper, and Apache Kafka "
            "3.9 goes on with them there"
        )


async def _recover(home: Home, configs: Sequence[BrokerConfig], clock: Clock) -> None:
    """Start the broker and stop it, so that each log is whole. Its listeners have free ports of
    127.0.0.1, which no client knows. Raises MinibrokerError.
    """
    hidden_configs = [_hidden(config) for config in configs]
    if not home.is_shared:
        broker = Broker(hidden_configs[0], clock=clock)
        await broker.start()
        await broker.stop()
        return
    cluster = LocalCluster(home.tree_file.parent, clock)
    cluster.members.extend(
        Broker(config, clock=clock, tree=cluster.tree.session()) for config in hidden_configs
    )
    await cluster.start()
    await cluster.stop()


def _hidden(config: BrokerConfig) -> BrokerConfig:
    listeners = ",".join(
        str(listener._replace(host="127.0.0.1", port=0)) for listener in config.listeners
    )
    return config.with_overrides({"listeners": listeners, "advertised.listeners": listeners})


def _read_logs(home: Home) -> Logs:
    """Return what the directories have. Raises StorageError."""
    directory_ids: dict[str, bytes] = {}
    places: dict[tuple[int, TopicPartition], bytes] = {}
    topic_ids: dict[str, TopicId] = {}
    unnamed: dict[str, str] = {}
    for node in home.nodes:
        for path, _properties, old_id in node.directories:
            directory_ids[path] = old_id or uuid4().bytes
            try:
                replicas = replica_directories(REAL_FILES, node.id, {path: directory_ids[path]})
                for _, partition in replicas:
                    topic_id = read_topic_id(REAL_FILES, f"{path}/{partition}")
                    if topic_id is not None:
                        topic_ids[partition.topic] = topic_id
                    else:
                        unnamed[f"{path}/{partition}"] = partition.topic
            except (OSError, CorruptionError) as error:
                raise StorageError(f"{path} cannot be read: {error}") from error
            places |= replicas
    return Logs(directory_ids, places, topic_ids, unnamed)


async def _read_tree(
    home: Home, config: BrokerConfig, topic_ids: Mapping[str, TopicId], clock: Clock
) -> Metadata:
    tree = EmbeddedTree(home.tree_file, clock)
    await tree.open()
    try:
        return await read_metadata(tree, config, topic_ids)
    finally:
        await tree.close()


def levels_of(features: Mapping[str, int], release: str) -> dict[str, int]:
    """Return the levels of features for a release: those in force here, but none above the
    release's, and its own for features that minibroker does not know.
    """
    levels = {}
    for name, newest in LEVELS[release].items():
        default = 0 if name in _LEVELS_ON_DEMAND else newest
        level = min(features.get(name, default), newest)
        if level > 0:
            levels[name] = level
    return levels


def reasons_against(metadata: Metadata, release: str) -> Iterator[str]:
    """Yield a sentence for each ACL by which the release would let in others than minibroker."""
    version = tuple(map(int, release.split(".")))
    for acl in metadata.acls:
        if "/" in acl.entry.host and version < _WITH_NETWORKS:
            yield (
                f"ACL {acl}: Kafka {release} takes the network {acl.entry.host} for the name of a "
                "host: name the hosts, or hand over to 4.4"
            )
        if acl.entry.operation is Operation.TWO_PHASE_COMMIT and version < _WITH_TWO_PHASES:
            yield (
                f"ACL {acl}: Kafka {release} has no operation TWO_PHASE_COMMIT: remove the ACL, or "
                "hand over to 4.1 or newer"
            )


def _check_logs(home: Home, logs: Logs, metadata: Metadata) -> None:
    """Raise StorageError for a replica whose log is in no directory: Kafka would begin an empty
    one, and lead with it.
    """
    node_ids = {node.id for node in home.nodes}
    for name, topic in metadata.topics.items():
        for index, partition in enumerate(topic.partitions):
            for node_id in node_ids.intersection(partition.replicas):
                if (node_id, TopicPartition(name, index)) not in logs.places:
                    raise StorageError(
                        f"broker {node_id} has no log of {name}-{index} in "
                        f"{', '.join(logs.directory_ids)}: name all log directories, in the order "
                        "of log.dirs"
                    )


def _write(home: Home, metadata: Metadata, logs: Logs, now_ms: int) -> None:
    """Write what Kafka needs, the mark of its ownership last. Raises LevelError, StorageError."""
    registrations = {
        node.id: RegisteredBroker(
            _BROKER_EPOCH,
            uuid4().bytes,
            tuple(logs.directory_ids[directory.path] for directory in node.directories),
        )
        for node in home.nodes
    }
    records = list(records_of(metadata, brokers=registrations))
    snapshot = SnapshotId(len(records), max(metadata.epoch, 1))
    try:
        for path, topic in logs.unnamed.items():
            if topic in metadata.topics:
                content = encode_topic_id(metadata.topics[topic].id)
                REAL_FILES.write_atomically(f"{path}/{names.PARTITION_METADATA}", content)
        for node in home.nodes:
            first_path = node.directories[0].path
            write_metadata_directory(REAL_FILES, first_path, records, snapshot, now_ms)
            for directory in node.directories:
                write_clean_marker(REAL_FILES, directory.path, _BROKER_EPOCH)
        for node in home.nodes:
            _own(node, home.cluster_id, logs.directory_ids, now_ms)
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be written: {error.strerror}") from error


def _own(node: KafkaNode, cluster_id: str, directory_ids: Mapping[str, bytes], now_ms: int) -> None:
    """Write `meta.properties` of each directory of a node, the first one last. Raises OSError."""
    for directory in reversed(node.directories):
        id_text = topic_id_to_text(directory_ids[directory.path])
        properties = MetaProperties(node.id, cluster_id, id_text, version=1)
        write_properties(REAL_FILES, directory.path, properties, now_ms)
