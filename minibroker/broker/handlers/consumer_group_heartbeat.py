"""ConsumerGroupHeartbeat: key 68, versions 0-1.

Behaviour: a member of the consumer protocol (KIP-848) joins, keeps alive, reports what it owns,
hears what it may own, leaves. The decisions stand in `groups/consumer/heartbeat.py`.

Versions:
- 1: regular expressions, the client makes its member id (KIP-1082)

Differs from Kafka: a pattern is RE2's own (Kafka has its Java port): `\\C` is taken, and a pattern
that repeats more than a thousand times in all is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.consumer.heartbeat import Heartbeat
from minibroker.broker.handlers.common.group_members import (
    AnswerWaiter,
    client_host,
    serves_consumer_protocol,
    topic_filter,
)
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from minibroker.broker.groups.consumer.heartbeat import HeartbeatAnswer
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
    )


def handle(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Steps[Any]:
    """Return the response, or a future of it until what it tells is visible.

    UNSUPPORTED_VERSION where the protocol is not served.
    """
    if not serves_consumer_protocol(context):
        return ConsumerGroupHeartbeatResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    if not context.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return _response(KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    may_describe = Allowed(context, Operation.DESCRIBE)
    for name in request.subscribed_topic_names or ():
        if name not in may_describe:
            return _response(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        yield
    heartbeat = _heartbeat(context, request)
    groups = context.services.groups
    waiter = AnswerWaiter(_response)
    try:
        groups.consumer.check(heartbeat)
        groups.consumer.beat(
            groups.shard(request.group_id), heartbeat, waiter, topic_filter(context)
        )
    except KafkaError as error:
        return _response(error)
    return waiter.outcome()


def _response(answer: HeartbeatAnswer | KafkaError) -> ConsumerGroupHeartbeatResponse:
    if isinstance(answer, KafkaError):
        return ConsumerGroupHeartbeatResponse(
            error_code=int(answer.code), error_message=answer.detail
        )
    assignment = None
    if answer.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in answer.assignment.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )


def _heartbeat(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Heartbeat:
    names = request.subscribed_topic_names
    owned = request.topic_partitions
    return Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        context.client_id or "",
        client_host(context),
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if names is None else frozenset(names),
        request.subscribed_topic_regex,
        request.server_assignor,
        None
        if owned is None
        else {partition.topic_id: partition.partitions for partition in owned},
        context.version,
    )
