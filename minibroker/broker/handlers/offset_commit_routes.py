"""Routes of the short way of OffsetCommit: the first bytes of a request → their meaning.

Owned by `offset_commit_fast`, one per broker; the group coordinator tells it when a route may lead
elsewhere, and then everything is forgotten.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.offset_commit_bytes import (
    FIRST_VERSION,
    FLEXIBLE_FROM,
    TOPIC_IDS_FROM,
)
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.groups.coordinator import GroupCoordinator
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.kafka.protocol.messages.offset_commit import OffsetCommitRequest

_VERSIONS: Final = 4
"""7-10."""
_ROUTES_MAX: Final = 5_000
"""Known requests are forgotten all at once beyond this: one costs about 1 KB."""
_KEY_BYTES_MAX: Final = 1_024
"""The bytes of a longer beginning are not remembered: group and member may have 32 KB each."""
_SHORT: Final = Struct(">h")


class Route:
    """The meaning of the bytes before the partitions, and the bytes that answers repeat."""

    __slots__ = (
        "group_id",
        "is_flexible",
        "partition_count",
        "request",
        "shard",
        "topic",
        "topic_head",
        "topic_id",
    )

    def __init__(
        self, shard: GroupShard, request: OffsetCommitRequest, topic: TopicImage, version: int
    ) -> None:
        """`request` is the first one of its kind."""
        self.shard = shard
        request.topics = []
        self.request = request
        """Without its topics: who commits."""
        self.group_id = request.group_id
        self.topic = topic.name
        has_ids = version >= TOPIC_IDS_FROM
        self.topic_id = topic.topic_id if has_ids else ZERO_TOPIC_ID
        self.partition_count = len(topic.partitions)
        self.is_flexible = version >= FLEXIBLE_FROM
        name = topic.name.encode()
        if has_ids:
            self.topic_head = b"\x02" + topic.topic_id
        elif self.is_flexible:
            self.topic_head = b"\x02" + bytes((len(name) + 1,)) + name
        else:
            self.topic_head = b"\0\0\0\x01" + _SHORT.pack(len(name)) + name


class CommitRoutes:
    """Routes that were found so far, one object per broker. Belongs to the loop."""

    __slots__ = ("_by_version",)

    def __init__(self, groups: GroupCoordinator) -> None:
        """Forget everything whenever `groups` says that a route may lead elsewhere."""
        self._by_version: list[dict[bytes, Route]] = [{} for _ in range(_VERSIONS)]
        groups.when_routes_change(self.forget)

    def __len__(self) -> int:
        """Return the number of routes of all versions."""
        return sum(map(len, self._by_version))

    def of_version(self, version: int) -> dict[bytes, Route]:
        """Return the bytes before the partitions → what they say, of requests of this version."""
        return self._by_version[version - FIRST_VERSION]

    def add(self, version: int, key: bytes, route: Route) -> None:
        """Remember one more, unless it has names of unusual length."""
        if len(key) > _KEY_BYTES_MAX:
            return
        routes = self.of_version(version)
        if len(routes) >= _ROUTES_MAX:
            routes.clear()
        routes[key] = route

    def forget(self) -> None:
        """Forget all of them."""
        for routes in self._by_version:
            routes.clear()
