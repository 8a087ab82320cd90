"""The topics that the members of a classic consumer group have subscribed to.

A broker need not know, but offsets of topics that are read must neither be deleted nor expire. The
bytes are the clients' own: what cannot be understood is no error, the group is then taken to read
everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSUMER_PROTOCOL: Final = "consumer"
TOPICS_MAX: Final = 100_000
"""Topics in one subscription; a longer list is somebody's mistake and is not read."""


def topics_of(metadata: bytes) -> list[str]:
    """Return the topics in one member's metadata: version int16, count int32, then strings.

    Read as version 0 whatever it says: every version begins like it. Raises ProtocolError.
    Source: Kafka ConsumerProtocol, ClassicGroup.computeSubscribedTopics.
    """
    reader = Reader(metadata)
    reader.int16()
    count = reader.array_count()
    if count > TOPICS_MAX:
        raise ProtocolError(f"subscription to {count} topics, expected at most {TOPICS_MAX}")
    topics = [reader.string() for _ in range(count)]
    reader.nullable_byte_string()
    return topics


def subscribed_topics(all_metadata: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all members; None when one of them cannot be understood."""
    topics: set[str] = set()
    try:
        for metadata in all_metadata:
            topics.update(topics_of(metadata))
    except ProtocolError:
        return None
    return frozenset(topics)
