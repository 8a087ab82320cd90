"""DescribeTopicPartitions: key 75, version 0.

Behaviour: returns the partitions of topics in pages (KIP-966). A page begins at the cursor, in the
order of topic names, and has at most `response_partition_limit` partitions (and at most
`max.request.partition.size.limit`). It ends with a cursor if more partitions follow.
Differs from Kafka: nothing known. Eligible leader replicas are empty lists, not null, because the
Java admin client fails on null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.cluster.topics import check_topic_name
from minibroker.broker.handlers.common.authorized_operations import operations_of
from minibroker.broker.handlers.common.leaders import visible_leader
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import PartitionImage, TopicImage
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    """Return one page. Raises KafkaError(INVALID_REQUEST) for a cursor without a place in
    the list.
    """
    topics = context.services.cluster.image.topics
    fetch_all = not request.topics
    cursor = request.cursor
    first_name = cursor.topic_name if cursor is not None else ""
    requested = topics if fetch_all else {topic.name for topic in request.topics}
    names = sorted(name for name in requested if name >= first_name)
    if cursor is not None:
        _check_cursor(cursor, None if fetch_all else names)
    limit = context.services.config.max_request_partition_size_limit
    room = max(1, min(limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    may_describe = Allowed(context, Operation.DESCRIBE, is_filter=fetch_all)
    names = yield from may_describe.refused_last(names, str)
    for name in names:
        yield
        if name not in may_describe:
            break  # the others, too
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = topics.get(name)
        if topic is None:
            if not fetch_all:
                response.topics.append(_unknown(context, name))
            continue
        start = cursor.partition_index if cursor is not None and name == first_name else 0
        end = min(len(topic.partitions), start + room)
        response.topics.append(_topic(context, topic, range(start, end)))
        room -= max(0, end - start)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    if not fetch_all:
        response.topics += yield from gather(
            DescribeTopicPartitionsResponseTopic(
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=name
            )
            for name in names
            if name not in may_describe
        )
    return response


def _check_cursor(cursor: Cursor, names: list[str] | None) -> None:
    """Raise KafkaError(INVALID_REQUEST) for a cursor without a place. `names`: the topics of the
    request, None: it is about all.
    """
    if names is not None and cursor.topic_name not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: "
            + cursor.topic_name,
        )
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor}",
        )


def _topic(
    context: RequestContext, topic: TopicImage, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        topic_authorized_operations=operations_of(context, ResourceType.TOPIC, topic.name),
        partitions=[_partition(context, index, topic.partitions[index]) for index in indexes],
    )


def _unknown(context: RequestContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except KafkaError:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(code),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=operations_of(context, ResourceType.TOPIC, name),
    )


def _partition(
    context: RequestContext, index: int, state: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    code, leader_id = visible_leader(context, state)
    return DescribeTopicPartitionsResponsePartition(
        error_code=int(code),
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=state.offline,
    )
