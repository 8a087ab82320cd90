"""Logs that no topic of the metadata image owns: a start finds them, or their topic has gone
missing.

A topic was deleted while this broker was down, or the metadata are other ones than those that the
logs were written with: ZooKeeper came back empty, say. Nobody here knows. So nothing is deleted,
moved or shortened. The logs are named, not served, and kept whole: retention leaves them alone,
though it does not know what their topics asked for. When the topic comes back they are served
again. When another topic of that name is made, `LogManager.create_log` marks the old log as stray
and keeps it.

Source: Kafka 3.9 with ZooKeeper leaves such logs where they are. Kafka 4 marks them all as stray
(LogManager.isStrayReplica): a Kafka that starts later on the right metadata finds empty logs then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.topic import topic_config
from minibroker.broker.partitions.log_deletion import give_up
from minibroker.broker.partitions.role import OfflineReason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.config.topic import TopicConfig
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.kafka.ids import TopicPartition

logger = logging.getLogger(__name__)

NAMED_MAX: Final = 20
"""So many of them are named in the one warning."""
_KEEP_EVERYTHING: Final = {
    "cleanup.policy": "delete",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


def keep_ownerless(
    logs: LogManager, image: MetadataImage, broker_id: int, defaults: TopicConfig
) -> None:
    """Warn of the logs that no partition of the image has on this broker, and keep them whole."""
    ownerless = [
        log
        for name, log in logs.logs.items()
        if broker_id not in _replicas_of(image, name) and name.topic not in image.leaving
    ]
    if not ownerless:
        return
    config = topic_config(_KEEP_EVERYTHING, defaults)
    for log in ownerless:
        log.update_config(config, logs.rules_of(config))
    named = [log.directory for log in ownerless[:NAMED_MAX]]
    if len(ownerless) > NAMED_MAX:
        named.append("…")
    logger.warning(
        "no topic of this cluster owns %d of the logs; they are kept and not served: %s. If their "
        "topics were deleted, remove these directories while no broker runs. If not, the metadata "
        "are not those that the logs were written with: check zookeeper.connect and log.dirs",
        len(ownerless),
        ", ".join(named),
    )


def keep_missing(
    logs: LogManager, partitions: Collection[Partition], defaults: TopicConfig
) -> Iterator[None]:
    """Take the partitions of a missing topic out of service, one with each step, and keep their
    logs whole. They have been given up: nobody finds them any more.
    """
    config = topic_config(_KEEP_EVERYTHING, defaults)
    for partition in partitions:
        log = logs.get(partition.topic, partition.index)
        give_up(partition, OfflineReason.MISSING)
        if log is not None:
            logs.high_watermarks[log.name] = log.high_watermark
            log.update_config(config, logs.rules_of(config))
        yield


def _replicas_of(image: MetadataImage, name: TopicPartition) -> list[int]:
    """Return the brokers that have this partition, none where the image does not know it."""
    topic = image.topics.get(name.topic)
    if topic is None or name.partition >= len(topic.partitions):
        return []
    return topic.partitions[name.partition].replicas
