"""ListPartitionReassignments: key 46, version 0.

Behaviour: returns the partitions that move to other brokers: all of them, or those of the request.
A partition that does not move, or does not exist, is left out. Source: KIP-455.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.cluster.reassignment import current_assignment
from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.cluster.image import TopicImage
    from minibroker.handlers.context import RequestContext


def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the moves in the metadata image."""
    cluster = context.services.cluster
    response = ListPartitionReassignmentsResponse(error_message="")
    if not cluster.is_controller:
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        response.error_message = "This is not the correct controller for this cluster."
        return response
    topics = cluster.image.topics
    if request.topics is None:
        asked = {name: range(len(topic.partitions)) for name, topic in topics.items()}
        found = [_listed(topics[name], indexes) for name, indexes in asked.items()]
    else:
        wanted: dict[str, set[int]] = {}
        for topic in request.topics:
            wanted.setdefault(topic.name, set()).update(topic.partition_indexes)
        found = [
            _listed(topics[name], sorted(indexes))
            for name, indexes in wanted.items()
            if name in topics
        ]
    response.topics = [topic for topic in found if topic.partitions]
    return response


def _listed(topic: TopicImage, indexes: Iterable[int]) -> OngoingTopicReassignment:
    listed = OngoingTopicReassignment(name=topic.name)
    for index in indexes:
        if not 0 <= index < len(topic.partitions):
            continue
        assignment = current_assignment(topic.partitions[index])
        if assignment.is_under_way:
            listed.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=assignment.replicas,
                    adding_replicas=assignment.adding,
                    removing_replicas=assignment.removing,
                )
            )
    return listed
