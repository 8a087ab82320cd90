"""OffsetForLeaderEpoch: key 23, versions 0-4.

Behaviour: returns the end offset of a leader epoch; with it a consumer detects a truncated log
(KIP-320).

Versions:
- 1: the epoch found
- 2: current leader epoch and throttle time
- 3: replica id
- 4: flexible

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    """Return one result per partition, in the order of the request; topics that the client may not
    describe come last.
    """
    response = OffsetForLeaderEpochResponse()
    may_describe = Allowed(context, Operation.DESCRIBE)
    is_broker = context.authorize(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True
    )
    topics = request.topics
    if not is_broker:
        topics = yield from may_describe.refused_last(topics, attrgetter("topic"))
    for topic in topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(answer)
        for part in topic.partitions:
            yield
            result = EpochEndOffset(partition=part.partition)
            answer.partitions.append(result)
            try:
                if not is_broker:
                    may_describe.require(topic.topic)
                partition = context.services.partitions.get(
                    topic.topic, part.partition, part.current_leader_epoch
                )
                epoch, end_offset = partition.end_offset_for_epoch(part.leader_epoch)
            except KafkaError as error:
                result.error_code = int(error.code)
            else:
                result.leader_epoch = epoch
                result.end_offset = end_offset
    return response
