"""Routes of the short way of Produce: the bytes that name a partition in a request → the partition.

Owned by `short_way`, one per broker. The partition manager tells it when a partition comes, goes or
changes its role, and then it forgets all routes.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.image import INTERNAL_TOPICS

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.partition import Partition

    TopicRoutes = dict[int, Partition]
    """Index → partition, those that were asked for."""
    LoneRoute = tuple[Partition, int, bytes]
    """Partition, acks, and the bytes from the topic to the index."""

FIRST_FLEXIBLE: Final = 9
FIRST_WITH_TOPIC_IDS: Final = 13
_TOPICS_MAX: Final = 10_000
"""Known topics are forgotten all at once beyond this: one costs about 400 bytes."""
_NAME_LENGTH_BYTES: Final = 2
_COMPACT_LENGTH_BYTES: Final = 1
_COUNT_AND_INDEX_BYTES: Final = 5
COMPACT_HEAD: Final = Struct(">BhiB")
"""Versions 9-13: length of transactional_id, acks, timeout_ms, number of topics."""
LONE_BYTES: Final = COMPACT_HEAD.size + _COUNT_AND_INDEX_BYTES
"""Bytes of a request up to the index of its only partition, without its topic."""


class ProduceRoutes:
    """Partitions that this broker leads, internal topics left out. Belongs to the loop."""

    __slots__ = ("_cluster", "_partitions", "by_version", "lone_by_version")

    def __init__(self, partitions: PartitionManager, cluster: Cluster) -> None:
        """Forget everything whenever `partitions` says that a role changed."""
        self._partitions = partitions
        self._cluster = cluster
        by_name: dict[bytes, TopicRoutes] = {}
        by_compact_name: dict[bytes, TopicRoutes] = {}
        by_id: dict[bytes, TopicRoutes] = {}
        self.by_version: Final = (
            *[by_name] * FIRST_FLEXIBLE,
            *[by_compact_name] * (FIRST_WITH_TOPIC_IDS - FIRST_FLEXIBLE),
            by_id,
        )
        """Topic, as requests of a version have it, its length included → its known partitions."""
        lone_by_compact_name: dict[bytes, LoneRoute] = {}
        lone_by_id: dict[bytes, LoneRoute] = {}
        self.lone_by_version: Final = (
            *[lone_by_compact_name] * FIRST_WITH_TOPIC_IDS,
            lone_by_id,
        )
        """From version 9 on: the bytes of a request for one partition, from its body's begin to the
        index → its route."""
        partitions.when_roles_change(self._forget)

    def find_lone(self, version: int, head: bytes) -> LoneRoute | None:
        """Return the route of a request that begins with `head`, and remember it. None where it has
        another shape, and as in `find`. Raises struct.error, IndexError where `head` is cut.
        """
        id_length, acks, _, topic_count = COMPACT_HEAD.unpack_from(head)
        lead = head[COMPACT_HEAD.size :]
        topic, count_and_index = lead[:-_COUNT_AND_INDEX_BYTES], lead[-_COUNT_AND_INDEX_BYTES:]
        if (
            topic_count != 2
            or id_length
            or acks not in {1, -1}
            or count_and_index[0] != 2
            or not 0 < len(topic) < 128
        ):
            return None
        partition = self.find(version, topic, int.from_bytes(count_and_index[1:], signed=True))
        if partition is None:
            return None
        routes = self.lone_by_version[version]
        if len(routes) >= _TOPICS_MAX:
            routes.clear()
        route = routes[head] = partition, acks, lead
        return route

    def find(self, version: int, topic: bytes, index: int) -> Partition | None:
        """Return the partition and remember it; None if it is not led here, or internal."""
        if version >= FIRST_WITH_TOPIC_IDS:
            image_topic = self._cluster.image.topic_by_id.get(topic)
            if image_topic is None:
                return None
            name = image_topic.name
        else:
            is_compact = version >= FIRST_FLEXIBLE
            start = _COMPACT_LENGTH_BYTES if is_compact else _NAME_LENGTH_BYTES
            name = topic[start:].decode("utf-8", "replace")
        partition = self._partitions.find(name, index)
        if partition is None or name in INTERNAL_TOPICS:
            return None
        topics = self.by_version[version]
        if len(topics) >= _TOPICS_MAX:
            topics.clear()
        topics.setdefault(topic, {})[index] = partition
        return partition

    def _forget(self) -> None:
        for topics in self.by_version:
            topics.clear()
        for partitions in self.lone_by_version:
            partitions.clear()
