"""AlterPartitionReassignments: key 45, versions 0-1.

Behaviour: moves partitions to other brokers, or takes a move back (null replicas); each partition
is answered by itself, at once: ListPartitionReassignments tells what is still under way.
Versions: 1 the number of replicas may be held fast (KIP-860). Source: KIP-455.
Version 0 is answered as by 3.9, version 1 as by Kafka 4, which alone serves it: another order of
the checks, and no leader epoch begins where nothing moves.
Differs from Kafka: see `cluster/reassignment.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import as_answer
from minibroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

KAFKA_4_SINCE: Final = 1
"""From this version on the answers are those of Kafka 4."""


async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """One result per partition, and per topic; in version 0 the last counts of one named twice."""
    is_kafka_4 = context.version >= KAFKA_4_SINCE
    response = AlterPartitionReassignmentsResponse(
        error_message=None if is_kafka_4 and request.topics else "",
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    if not context.services.cluster.is_controller:
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        return response
    for topic in request.topics if is_kafka_4 else _each_once(request.topics):
        results = [await _alter(context, request, topic.name, one) for one in topic.partitions]
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response


def _each_once(topics: list[ReassignableTopic]) -> list[ReassignableTopic]:
    """Return the topics with the last of each partition's moves, without those that have none."""
    moves: dict[str, dict[int, ReassignablePartition]] = {}
    for topic in topics:
        for one in topic.partitions:
            moves.setdefault(topic.name, {})[one.partition_index] = one
    return [
        ReassignableTopic(name=name, partitions=list(ones.values())) for name, ones in moves.items()
    ]


async def _alter(
    context: RequestContext,
    request: AlterPartitionReassignmentsRequest,
    name: str,
    one: ReassignablePartition,
) -> ReassignablePartitionResponse:
    index = one.partition_index
    result = ReassignablePartitionResponse(partition_index=index, error_message=None)
    try:
        await context.services.cluster.reassignments.alter(
            name,
            index,
            one.replicas,
            may_change_count=request.allow_replication_factor_change,
            is_kafka_4=context.version >= KAFKA_4_SINCE,
        )
    except Exception as error:
        result.error_code, result.error_message = as_answer(error, f"moving {name}-{index}")
    return result
