"""ListPartitionReassignments: key 46, version 0.

Behaviour: the partitions that are on the way to other brokers, all or those asked for; a partition
that is not, or does not exist, is left out. Source: KIP-455.
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
    """Answer from the image."""
    cluster = context.services.cluster
    response = ListPartitionReassignmentsResponse(error_message="")
    if not cluster.is_controller:
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        return response
    topics = cluster.image.topics
    if request.topics is None:
        asked = {name: range(len(topic.partitions)) for name, topic in topics.items()}
        found = [_listed(topics[name], indexes) for name, indexes in asked.items()]
    else:
        wanted: dict[str, set[int]] = {}
        for one in request.topics:
            wanted.setdefault(one.name, set()).update(one.partition_indexes)
        found = [
            _listed(topics[name], sorted(indexes))
            for name, indexes in wanted.items()
            if name in topics
        ]
    response.topics = [one for one in found if one.partitions]
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
