"""Partitions of nodes that are stopped: what a cluster needs before it is given to the other kind.

Kafka elects leaders when a broker comes, of the replicas in sync. It does not trust the ISR of a
broker that it never saw if eligible leader replicas (KIP-966) are in force: the ISR becomes empty,
and the partition has no leader for ever. A `RegisteredBroker` in the metadata and a marker of a
clean stop with the same epoch (`storage.log_directory.write_clean_marker`) make Kafka trust it.

After a clean stop of a Kafka with that feature the ISR of every partition is empty, and its members
are eligible: `tree_writing` puts them into the ISR again.

Source: Kafka ClusterControlManager.registerBroker, ReplicationControlManager.handleBrokerShutdown,
PartitionChangeBuilder; seen with Kafka 4.4.0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from minibroker.broker.storage import names
from minibroker.kafka.ids import TopicPartition
from minibroker.tools.kraft.metadata import UNASSIGNED_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.storage.files import Files
    from minibroker.tools.kraft.metadata import Metadata, PartitionValue

NO_LEADER: Final = -1


def without_leaders(
    metadata: Metadata, directories: Mapping[tuple[int, TopicPartition], bytes]
) -> Metadata:
    """Return the metadata with no leaders, and with the directory of each replica.

    The epochs of the leaders stay: the election raises them.

    Args:
        metadata: stays as it is.
        directories: (broker id, partition) → id of the log directory that holds the replica, 16
            bytes. Its broker places a replica that is not among them.
    """

    def stopped(name: TopicPartition, partition: PartitionValue) -> PartitionValue:
        ids = tuple(
            directories.get((broker_id, name), UNASSIGNED_DIRECTORY)
            for broker_id in partition.replicas
        )
        return partition._replace(leader=NO_LEADER, directories=ids)

    topics = {
        name: topic._replace(
            partitions=tuple(
                stopped(TopicPartition(name, index), partition)
                for index, partition in enumerate(topic.partitions)
            )
        )
        for name, topic in metadata.topics.items()
    }
    return replace(metadata, topics=topics)


def replica_directories(
    files: Files, broker_id: int, log_directories: Mapping[str, bytes]
) -> dict[tuple[int, TopicPartition], bytes]:
    """Return (broker id, partition) → id of the log directory that holds its log.

    Args:
        files: the files of the system.
        broker_id: whose log directories they are.
        log_directories: path → id, 16 bytes.

    Raises:
        OSError: a directory cannot be listed.
    """
    directories: dict[tuple[int, TopicPartition], bytes] = {}
    for path, directory_id in log_directories.items():
        for name in files.list_directories(path):
            partition, mark = names.parse_directory(name) or (None, "")
            if partition is not None and not mark:
                directories[broker_id, partition] = directory_id
    return directories
