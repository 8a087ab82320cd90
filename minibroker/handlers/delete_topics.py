"""DeleteTopics: key 20, versions 0-6.

Behaviour: the topic leaves the metadata and its partitions answer no more before the answer goes
out; the files follow on a worker after `file.delete.delay.ms`.
Versions: 1 throttle time; 3 TOPIC_DELETION_DISABLED; 4 flexible; 5 error messages; 6 topic ids.
Differs from Kafka: duplicate names are answered once each, in order, with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError, KafkaError
from minibroker.ids import ZERO_TOPIC_ID
from minibroker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.quotas.manager import Mutations


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """One result per topic asked, in order."""
    topics = _asked(context, request)
    services = context.services
    refused = ErrorCode.NONE
    if not services.cluster.is_controller:
        refused = ErrorCode.NOT_CONTROLLER
    elif not services.config.delete_topic_enable:
        refused = (
            ErrorCode.INVALID_REQUEST if context.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        )
    response = DeleteTopicsResponse()
    mutations = services.quotas.mutations(context.quota_client, is_strict=context.version >= 5)
    for topic in topics:
        result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(result)
        if refused:
            result.error_code = int(refused)
            continue
        try:
            await _delete(context, result, request.timeout_ms, mutations)
        except KafkaError as error:
            result.error_code = int(error.code)
            result.error_message = error.detail
    response.throttle_time_ms = mutations.throttle_time_ms
    return response


def _asked(context: RequestContext, request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    if context.version < 6:
        return [DeleteTopicState(name=name) for name in request.topic_names]
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_TOPIC_ID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified."
            )
    return request.topics


async def _delete(
    context: RequestContext, result: DeletableTopicResult, timeout_ms: int, mutations: Mutations
) -> None:
    cluster = context.services.cluster
    if result.topic_id != ZERO_TOPIC_ID:
        known = cluster.image.topic_by_id.get(result.topic_id)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        result.name = known.name
    name = result.name or ""
    topic = cluster.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    result.topic_id = topic.topic_id
    mutations.record(len(topic.partitions))
    try:
        await cluster.delete_topic(name)
    except CoordinationError as error:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from error
    if timeout_ms <= 0:
        # Kafka starts the deletion and does not wait for it.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def error_response(
    request: DeleteTopicsRequest, version: int, code: ErrorCode, detail: str | None
) -> DeleteTopicsResponse:
    """The code for every topic of the request."""
    topics = (
        request.topics
        if version >= 6
        else [DeleteTopicState(name=name) for name in request.topic_names]
    )
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=int(code))
            for topic in topics
        ]
    )
