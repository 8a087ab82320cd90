"""DeleteTopics: key 20, versions 0-6.

Behaviour: before the answer leaves, the topic gets a deletion mark, it leaves the metadata, and its
logs are renamed and synced, on other brokers too. The answer waits for brokers that live, at most
ten seconds. A dead broker deletes when it is back; until then the mark stays, and the name is
taken. A worker removes the files after `file.delete.delay.ms`. After a crash in between the next
controller completes the deletion.

Versions:
- 1: throttle time
- 3: TOPIC_DELETION_DISABLED
- 4: flexible
- 5: error messages
- 6: topic ids

A topic that is named twice, or by name and id at once, is refused alone, as KRaft does it. Kafka
with ZooKeeper refuses the whole request.

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.broker.slices import TimeSlice, collect
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError, StorageError, as_answer
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.quotas.manager import Mutations


WAIT_S: Final = 30.0
"""How long the deletion is waited for where the request gives it no time."""


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Return one result per topic, in the order of the request."""
    topics = _topics_of(request, context.version)
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
    named_count = Counter(await collect(_name_of(context, topic) for topic in topics))
    answered: set[str | bytes] = set()
    turn = TimeSlice()
    for topic in topics:
        if turn.is_over:
            await turn.pause()
        result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        name = _name_of(context, topic)
        if name in answered:
            continue
        answered.add(name)
        response.responses.append(result)
        if refused:
            result.error_code = int(refused)
            continue
        try:
            _check(topic, named_count[name])
            _check_permission(context, result)
            await _delete(context, result, request.timeout_ms, mutations)
        except Exception as error:
            result.error_code, result.error_message = as_answer(error, f"deleting {name!r}")
    response.throttle_time_ms = mutations.throttle_time_ms
    return response


def _topics_of(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version < 6:
        return [DeleteTopicState(name=name) for name in request.topic_names]
    return request.topics


def _name_of(context: RequestContext, topic: DeleteTopicState) -> str | bytes:
    """Return the topic's name, or the id that no topic has."""
    if topic.name is not None:
        return topic.name
    image_topic = context.services.cluster.image.topic_by_id.get(topic.topic_id)
    return image_topic.name if image_topic is not None else topic.topic_id


def _check(topic: DeleteTopicState, named_count: int) -> None:
    reason = None
    if topic.name is not None and topic.topic_id != ZERO_TOPIC_ID:
        reason = "a topic is named by name or by id, not by both"
    elif topic.name is None and topic.topic_id == ZERO_TOPIC_ID:
        reason = "neither name nor id of the topic is given"
    elif named_count > 1:
        reason = "the topic is asked for more than once"
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _check_permission(context: RequestContext, result: DeletableTopicResult) -> None:
    """Raise KafkaError if the client may not delete the topic; its existence is not disclosed.

    A client that asks by id learns the name with permission to describe the topic only.
    StandardAuthorizer also lets those delete who may delete the cluster, and tells those who may
    describe a topic that it is not there (Kafka 4).
    """
    authorizer = context.services.authorizer
    if authorizer is None:
        return
    has_id = result.topic_id != ZERO_TOPIC_ID
    image = context.services.cluster.image
    if has_id:
        image_topic = image.topic_by_id.get(result.topic_id)
        if image_topic is None:
            return
        result.name = image_topic.name
    if authorizer.is_standard and context.authorize(
        Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True
    ):
        return
    name = result.name or ""
    may_describe = context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name)
    if context.authorize(Operation.DELETE, ResourceType.TOPIC, name):
        return
    if has_id and not may_describe:
        result.name = None
    elif not has_id and may_describe and authorizer.is_standard and name not in image.topics:
        return
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    raise KafkaError(code, code.meaning)


async def _delete(
    context: RequestContext, result: DeletableTopicResult, timeout_ms: int, mutations: Mutations
) -> None:
    cluster = context.services.cluster
    if result.topic_id != ZERO_TOPIC_ID:
        image_topic = cluster.image.topic_by_id.get(result.topic_id)
        if image_topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        result.name = image_topic.name
    name = result.name or ""
    topic = cluster.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    result.topic_id = topic.topic_id
    mutations.record(len(topic.partitions))
    try:
        await cluster.delete_topic(
            name,
            topic_id=topic.topic_id,
            timeout_s=timeout_ms / 1000 if timeout_ms > 0 else WAIT_S,
        )
    except (CoordinationError, StorageError) as error:
        # The deletion has begun and is not complete. Kafka's answer does not wait for it either.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
    if timeout_ms <= 0:
        # Kafka starts the deletion and does not wait for it.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
