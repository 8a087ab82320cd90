"""AlterPartitionReassignments: key 45, versions 0-1.

Behaviour: moves partitions to other brokers, or takes a move back (null replicas); each partition
is answered by itself, at once: ListPartitionReassignments tells what is still under way.
Versions: 1 the number of replicas may be held fast (KIP-860). Source: KIP-455.
Differs from Kafka: see `cluster/reassignment.py`; checks and their order are those of 3.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import as_answer
from minibroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext


async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """One result per partition; of one that is named twice the last counts."""
    may_change_count = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        error_message="", allow_replication_factor_change=may_change_count
    )
    if not context.services.cluster.is_controller:
        response.error_code = int(ErrorCode.NOT_CONTROLLER)
        return response
    targets: dict[str, dict[int, list[int] | None]] = {}
    for topic in request.topics:
        if topic.partitions:
            targets.setdefault(topic.name, {}).update(
                (one.partition_index, one.replicas) for one in topic.partitions
            )
    for name, partitions in targets.items():
        results = [
            await _alter(context, name, index, target, may_change_count=may_change_count)
            for index, target in partitions.items()
        ]
        response.responses.append(ReassignableTopicResponse(name=name, partitions=results))
    return response


async def _alter(
    context: RequestContext,
    name: str,
    index: int,
    target: list[int] | None,
    *,
    may_change_count: bool,
) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=index, error_message=None)
    try:
        await context.services.cluster.reassignments.alter(
            name, index, target, may_change_count=may_change_count
        )
    except Exception as error:
        result.error_code, result.error_message = as_answer(error, f"moving {name}-{index}")
    return result
