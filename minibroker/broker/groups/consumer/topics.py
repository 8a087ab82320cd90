"""The cluster's topics as consumer groups need them: by name and by id, and a hash of their layout.

When the layout of a topic that a group reads changes, its hash does, and the group gets a new epoch
and a new assignment. The hash is Kafka's own number, so it can stand in Kafka's records: XXH3-64
over 0x00, the topic id, its name, the partition count and, per partition, its number and the racks
of its replicas in order; a group's is XXH3-64 over those of its topics in the order of their names.
Numbers are little-endian; a string is its UTF-16 units, then their count.

Source: Kafka 4.4, Utils.computeTopicHash, computeGroupHash (KIP-1101).
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING

from minibroker.broker.groups.consumer.java_order import java_string_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.broker.cluster.image import MetadataImage, TopicImage

NO_HASH = 0
"""Hash of a group whose topics do not exist."""


class ImageTopics:
    """A view of the image; `version` grows whenever a topic comes, goes or gets partitions."""

    __slots__ = ("_hashes", "_image", "_now_ms", "new_topics_version", "version")

    def __init__(self, image: Callable[[], MetadataImage], now_ms: Callable[[], int]) -> None:
        self._image = image
        self._now_ms = now_ms
        self._hashes: dict[str, tuple[TopicImage, int]] = {}
        """Name → the image that was hashed, which is replaced when it changes, and its hash."""
        self.version = 1
        self.new_topics_version = now_ms()
        """When the last topic was created, ms since the epoch: patterns resolved before are stale.

        Kafka uses the number of its metadata image, which here would begin anew with a restart.
        """

    def note_created(self) -> None:
        """Note a new topic."""
        self.version += 1
        # Two topics of one millisecond: a pattern resolved between them must not miss the second.
        self.new_topics_version = max(self.new_topics_version + 1, self._now_ms())

    def note_changed(self) -> None:
        """Note a topic that is gone or has more partitions."""
        self.version += 1

    def names(self) -> list[str]:
        """Return every topic, internal ones too."""
        return list(self._image().topics)

    def id_of(self, name: str) -> bytes | None:
        """Return the id of a topic, None if there is no such topic."""
        topic = self._image().topics.get(name)
        return topic.topic_id if topic else None

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """Return the ids of those that exist."""
        topics = self._image().topics
        return frozenset(topics[name].topic_id for name in names if name in topics)

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic, None if there is no such topic."""
        topic = self._image().topic_by_id.get(topic_id)
        return topic.name if topic else None

    def partition_count(self, topic_id: bytes) -> int:
        """Return the number of partitions of an existing topic. Raises KeyError for another."""
        return len(self._image().topic_by_id[topic_id].partitions)

    def hash_of(self, names: Iterable[str]) -> int:
        """Return the hash of a group that reads these; signed, NO_HASH when none of them exists."""
        topics = self._image().topics
        hashes = [
            self._topic_hash(topics[name])
            for name in sorted((name for name in names if name in topics), key=java_string_key)
        ]
        return _xxh3(b"".join(pack("<q", value) for value in hashes)) if hashes else NO_HASH

    def _topic_hash(self, topic: TopicImage) -> int:
        entry = self._hashes.get(topic.name)
        if entry is not None and entry[0] is topic:
            return entry[1]
        brokers = self._image().brokers
        high, low = topic.topic_id[:8], topic.topic_id[8:]
        parts = [b"\0", high[::-1], low[::-1], _text(topic.name)]
        parts.append(pack("<i", len(topic.partitions)))
        for number, partition in enumerate(topic.partitions):
            parts.append(pack("<i", number))
            replica_brokers = (brokers.get(replica) for replica in partition.replicas)
            racks = [
                broker.rack for broker in replica_brokers if broker is not None and broker.rack
            ]
            for units in sorted(map(java_string_key, racks)):
                parts.append(pack("<i", len(units) // 2))
                parts.append(_text(units.decode("utf-16-be")))
        value = _xxh3(b"".join(parts))
        self._hashes[topic.name] = (topic, value)
        return value

    def forget(self, name: str) -> None:
        """Forget a topic that is gone."""
        self._hashes.pop(name, None)


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le")
    return units + pack("<i", len(units) // 2)


def _xxh3(data: bytes) -> int:
    """Return Kafka's hash. A system without a wheel of xxhash has another one, which is as good
    here; a broker that takes over the records then gives each group one more epoch.
    """
    value: int
    try:
        from xxhash import xxh3_64_intdigest  # noqa: PLC0415  no group, no import
    except ModuleNotFoundError:
        from hashlib import blake2b  # noqa: PLC0415  as above

        value = int.from_bytes(blake2b(data, digest_size=8).digest(), "big")
    else:
        value = xxh3_64_intdigest(data)
    return value - (1 << 64) if value >> 63 else value
