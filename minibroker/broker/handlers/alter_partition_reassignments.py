"""AlterPartitionReassignments: key 45, versions 0-1.

Behaviour: moves partitions to other brokers, or cancels a move (null replicas). Each partition is
answered at once with its own result; ListPartitionReassignments lists the moves that still run.

Versions:
- 1: the request may forbid a change of the number of replicas (KIP-860)

Source: KIP-455. Version 0 is answered as Kafka 3.9 answers it, version 1 as Kafka 4 does, because
only Kafka 4 serves it. The order of checks differs, and in version 1 a partition that does not move
gets no new leader epoch.

Differs from Kafka: see `cluster/reassignment.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.slices import TimeSlice, gather, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import as_answer
from minibroker.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

KAFKA_4_SINCE: Final = 1
"""The first version that is answered as Kafka 4 answers it."""


async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Return one result per partition. In version 0 the last move of a partition that is named
    twice counts.
    """
    is_kafka_4 = context.version >= KAFKA_4_SINCE
    response = AlterPartitionReassignmentsResponse(
        error_message=None if is_kafka_4 and request.topics else "",
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    if not context.services.cluster.is_controller:
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        response.error_message = "This is not the correct controller for this cluster."
        return response
    turn = TimeSlice()
    topics = request.topics
    if not is_kafka_4:
        topics = await run_with_pauses(_each_once(topics))
    for topic in topics:
        results = []
        for move in topic.partitions:
            results.append(await _alter(context, request, topic.name, move))
            if turn.is_over:
                await turn.pause()
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return response


def _each_once(topics: list[ReassignableTopic]) -> Steps[list[ReassignableTopic]]:
    """Return the topics with the last move of each partition; topics without partitions are left
    out.
    """
    moves: dict[str, dict[int, ReassignablePartition]] = {}
    for topic in topics:
        for move in topic.partitions:
            moves.setdefault(topic.name, {})[move.partition_index] = move
            yield
    return (
        yield from gather(
            ReassignableTopic(name=name, partitions=list(of_topic.values()))
            for name, of_topic in moves.items()
        )
    )


async def _alter(
    context: RequestContext,
    request: AlterPartitionReassignmentsRequest,
    name: str,
    move: ReassignablePartition,
) -> ReassignablePartitionResponse:
    index = move.partition_index
    result = ReassignablePartitionResponse(partition_index=index, error_message=None)
    try:
        await context.services.cluster.reassignments.alter(
            name,
            index,
            move.replicas,
            may_change_count=request.allow_replication_factor_change,
            is_kafka_4=context.version >= KAFKA_4_SINCE,
        )
    except Exception as error:
        result.error_code, result.error_message = as_answer(error, f"moving {name}-{index}")
    return result
