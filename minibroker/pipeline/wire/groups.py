"""Committed offsets of groups, as their coordinators have them.

Source: Kafka AdminClient, ListConsumerGroupOffsetsHandler; KIP-447.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

if TYPE_CHECKING:
    from minibroker.pipeline.offsets import TopicPartition
    from minibroker.pipeline.wire.coordinators import CoordinatorClient

FETCH_VERSIONS: Final = (2, 7)
"""Versions of OffsetFetch that ask for all offsets of one group."""
STABLE_VERSIONS: Final = (7, 7)
"""The one of these that waits for open transactions."""


class GroupOffset(NamedTuple):
    """A committed offset of a group."""

    topic: str
    partition: int
    offset: int
    metadata: str


def committed(group: CoordinatorClient, deadline: float) -> list[GroupOffset]:
    """Return the committed offsets of a group, without those of transactions that are open.

    Args:
        group: its coordinators.
        deadline: on the monotonic clock.

    Raises as `CoordinatorClient.ask`.
    """
    request = OffsetFetchRequest(group_id=group.name, topics=None)
    return _offsets(group.ask(request, OffsetFetchResponse, FETCH_VERSIONS, deadline, _unreadable))


def settled(group: CoordinatorClient, place: TopicPartition, deadline: float) -> list[GroupOffset]:
    """Return the committed offsets of a group; those of a transaction that ends are waited for.

    Args:
        group: its coordinators.
        place: is asked for by itself if the group has no offsets: then a pending one does not
            show.
        deadline: on the monotonic clock.

    Raises as `CoordinatorClient.ask`.
    """
    alone = OffsetFetchRequestTopic(name=place.topic, partition_indexes=[place.partition])
    for topics in (None, [alone]):
        request = OffsetFetchRequest(group_id=group.name, topics=topics, require_stable=True)
        found = _offsets(
            group.ask(request, OffsetFetchResponse, STABLE_VERSIONS, deadline, _unreadable)
        )
        if found:
            return found
    return []


def _offsets(answer: OffsetFetchResponse) -> list[GroupOffset]:
    return [
        GroupOffset(
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            partition.metadata or "",
        )
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    ]


def _unreadable(found: OffsetFetchResponse) -> int:
    """Return the error of the group, or of a partition; 0 if there is none."""
    codes = [partition.error_code for topic in found.topics for partition in topic.partitions]
    return next((code for code in (found.error_code, *codes) if code), ErrorCode.NONE)
