"""CreatePartitions: key 37, versions 0-3.

Behaviour: grows topics; each topic of the request stands for itself. The new partitions have
leaders before the answer leaves.
Versions: 2 flexible; 3 THROTTLING_QUOTA_EXCEEDED (KIP-599).
Differs from Kafka: the order of results is that of the request; Kafka's is that of a hash map.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError, KafkaError, as_answer
from minibroker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.create_partitions import CreatePartitionsTopic
    from minibroker.quotas.manager import Mutations


async def handle(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """One result per topic name, in order."""
    response = CreatePartitionsResponse()
    quotas = context.services.quotas
    mutations = quotas.mutations(context.quota_client, is_strict=context.version >= 3)
    named_count = Counter(topic.name for topic in request.topics)
    for topic in {topic.name: topic for topic in request.topics}.values():
        result = CreatePartitionsTopicResult(name=topic.name)
        response.results.append(result)
        try:
            if not context.services.cluster.is_controller:
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            if named_count[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            await _grow(context, request, topic, mutations)
        except (KafkaError, CoordinationError) as error:
            result.error_code, result.error_message = as_answer(error)
    response.throttle_time_ms = mutations.throttle_time_ms
    return response


async def _grow(
    context: RequestContext,
    request: CreatePartitionsRequest,
    topic: CreatePartitionsTopic,
    mutations: Mutations,
) -> None:
    cluster = context.services.cluster
    assignment = None
    if topic.assignments is not None:
        assignment = [list(replicas.broker_ids) for replicas in topic.assignments]
    cluster.plan_partitions(topic.name, topic.count, assignment)
    if request.validate_only:
        return
    mutations.record(topic.count - len(cluster.image.topics[topic.name].partitions))
    await cluster.create_partitions(topic.name, topic.count, assignment)
    if request.timeout_ms <= 0:
        # Kafka starts the work and does not wait for it.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def error_response(
    request: CreatePartitionsRequest, version: int, code: ErrorCode, detail: str | None
) -> CreatePartitionsResponse:
    """The code for every topic of the request."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=int(code), error_message=detail)
            for topic in request.topics
        ]
    )
