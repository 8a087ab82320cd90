"""The consumer protocol that is embedded in JoinGroup and SyncGroup.

Version int16, then the message. A newer version is read as the newest one known here, and what
follows is not looked at: clients of any age send it.

Source: Kafka ConsumerProtocol; KIP-429, KIP-881.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)

if TYPE_CHECKING:
    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.topics import ImageTopics


class Subscription(NamedTuple):
    """Topics and owned partitions of a classic consumer."""

    topic_names: frozenset[str]
    owned: dict[bytes, list[int]]
    """Topic id → partitions, of topics that exist."""
    rack_id: str | None


def version_of(metadata: bytes) -> int:
    """Return the version that a client wrote, and reads. Raises ProtocolError."""
    first, last = ConsumerProtocolAssignment.VERSIONS
    version = Reader(metadata).int16()
    if version < first:
        raise ProtocolError(f"embedded consumer protocol of version {version}")
    return min(version, last)


def read_subscription(metadata: bytes, topics: ImageTopics) -> Subscription:
    """Raises ProtocolError."""
    message = ConsumerProtocolSubscription.from_client(metadata)
    owned: dict[bytes, list[int]] = {}
    for topic in message.owned_partitions:
        topic_id = topics.id_of(topic.topic)
        if topic_id is not None:
            owned[topic_id] = topic.partitions
    return Subscription(frozenset(message.topics), owned, message.rack_id or None)


def read_assignment(assignment: bytes, topics: ImageTopics) -> tuple[Assignment, bool]:
    """Return the partitions of topics that exist, and whether the assignor added data of its own.

    Raises ProtocolError.
    """
    message = ConsumerProtocolAssignment.from_client(assignment)
    topics_and_partitions = (
        (topics.id_of(topic.topic), topic.partitions) for topic in message.assigned_partitions
    )
    partitions = {
        topic_id: tuple(sorted(set(numbers)))
        for topic_id, numbers in topics_and_partitions
        if topic_id is not None
    }
    return partitions, bool(message.user_data)


def write_assignment(assignment: Assignment, version: int, topics: ImageTopics) -> bytes:
    """Return the assignment for SyncGroup, without topics that are gone."""
    partitions_by_name = (
        (topics.name_of(topic_id), numbers) for topic_id, numbers in assignment.items()
    )
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=list(numbers))
            for name, numbers in partitions_by_name
            if name is not None
        ],
        user_data=None,
    )
    return message.to_bytes(version)
