"""DescribeProducers: key 61, version 0.

Behaviour: returns the producers of a partition and the first offset of each open transaction. Tools
find hanging transactions with it (KIP-664, `kafka-transactions.sh find-hanging`).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from minibroker.broker.cluster.topics import check_topic_name
from minibroker.broker.partitions.cold_reads import ColdError, answer_resident
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse | Awaitable[DescribeProducersResponse]]:
    """Return one result per partition, in the order of the request; an awaitable where producers
    have to be loaded first.
    """
    return answer_resident(partial(_describe_all, context, request))


def _describe_all(
    context: RequestContext, request: DescribeProducersRequest, cold: list[ColdError] | None
) -> Steps[DescribeProducersResponse]:
    """Return the answer; `cold` as for `answer_resident`."""
    services = context.services
    response = DescribeProducersResponse()
    for topic in request.topics:
        refusal = _check(context, topic.name)
        answer = TopicResponse(name=topic.name)
        response.topics.append(answer)
        yield
        for index in topic.partition_indexes:
            yield
            result = PartitionResponse(partition_index=index)
            answer.partitions.append(result)
            if refusal is not None:
                result.error_code = int(refusal.code)
                result.error_message = refusal.detail
                continue
            try:
                partition = services.partitions.get(topic.name, index)
                if cold is not None:
                    partition.require_producers()
                result.active_producers = _producers(partition)
            except ColdError as error:
                assert cold is not None
                cold.append(error)
            except KafkaError as error:
                result.error_code = int(error.code)
    return response


def _check(context: RequestContext, topic: str) -> KafkaError | None:
    """Return the error of the topic as a whole, None if it has none."""
    try:
        check_topic_name(topic)
    except KafkaError as error:
        return error
    if not context.authorize(Operation.READ, ResourceType.TOPIC, topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return KafkaError(code, code.meaning)
    if topic in context.services.cluster.image.topics:
        return None
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "This server does not host this topic-partition.",
    )


def _producers(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_start,
        )
        for producer_id, entry in sorted(partition.producers().items())
    ]
