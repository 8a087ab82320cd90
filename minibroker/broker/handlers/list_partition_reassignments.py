"""ListPartitionReassignments: key 46, version 0.

Behaviour: returns the partitions that move to other brokers: all of them, or those of the request.
A partition that does not move, or does not exist, is left out. Source: KIP-455.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.reassignment import current_assignment
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Steps[ListPartitionReassignmentsResponse]:
    """Return the moves in the metadata image."""
    cluster = context.services.cluster
    response = ListPartitionReassignmentsResponse(error_message="")
    if not cluster.is_controller:
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        response.error_message = "This is not the correct controller for this cluster."
        return response
    topics = cluster.image.topics
    if request.topics is None:
        ongoing = yield from gather(
            _answer_of(topic, range(len(topic.partitions))) for topic in list(topics.values())
        )
    else:
        indexes_by_topic: dict[str, set[int]] = {}
        for topic in request.topics:
            indexes_by_topic.setdefault(topic.name, set()).update(topic.partition_indexes)
            yield
        ongoing = yield from gather(
            _answer_of(topics[name], sorted(indexes))
            for name, indexes in indexes_by_topic.items()
            if name in topics
        )
    response.topics = [topic for topic in ongoing if topic.partitions]
    return response


def _answer_of(topic: TopicImage, indexes: Iterable[int]) -> OngoingTopicReassignment:
    answer = OngoingTopicReassignment(name=topic.name)
    count = len(topic.partitions)
    for index in (index for index in indexes if 0 <= index < count):
        assignment = current_assignment(topic.partitions[index])
        if assignment.is_under_way:
            answer.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=assignment.replicas,
                    adding_replicas=assignment.adding,
                    removing_replicas=assignment.removing,
                )
            )
    return answer
