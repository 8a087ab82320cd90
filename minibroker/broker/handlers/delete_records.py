"""DeleteRecords: key 21, versions 0-2.

Behaviour: moves the log start offset of each partition to the given offset (-1: its high
watermark). Clients cannot read older records from then on; the next retention check removes their
segments. The answer holds the low watermark: the lowest log start offset of all live replicas. It
waits until each follower has deleted too. After `timeout_ms` the partitions that are not done get
REQUEST_TIMED_OUT; their followers delete later.

Versions:
- 1: a client over its quota is answered first and paused after
- 2: flexible

Differs from Kafka: a log that moves to another directory of this broker is not waited for.
Source: Kafka ReplicaManager.deleteRecords, DelayedDeleteRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.handlers.common.waits import when_all_done
from minibroker.broker.partitions.replicas import INVALID_LOW_WATERMARK
from minibroker.broker.security.acls import Operation
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.delete_records import DeleteRecordsRequest

    Waits = list[asyncio.Future[None]]
    """Futures, each done when the result of a partition is known."""


def handle(
    context: RequestContext, request: DeleteRecordsRequest
) -> Steps[DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]]:
    """Return one result per partition, in the order of the request. If a partition is named twice,
    its last offset counts, as in Kafka.
    """
    response = DeleteRecordsResponse()
    waits: Waits = []
    may_delete = Allowed(context, Operation.DELETE)
    for name, offsets in _offsets_by_topic(request).items():
        answer = DeleteRecordsTopicResult(name=name)
        response.topics.append(answer)
        for index, offset in offsets.items():
            yield
            result = DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=INVALID_LOW_WATERMARK
            )
            answer.partitions.append(result)
            try:
                may_delete.require(name)
                partition = _partition(context, name, index)
                _delete(context, partition, offset, result, request.timeout_ms, waits)
            except Exception as error:
                result.error_code, _ = as_answer(error, f"deleting records of {name}-{index}")
    return when_all_done(waits, response) if waits else response


def _offsets_by_topic(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """Return topic → partition → wanted offset."""
    offsets_by_topic: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for part in topic.partitions:
            offsets_by_topic.setdefault(topic.name, {})[part.partition_index] = part.offset
    return offsets_by_topic


def _partition(context: RequestContext, name: str, index: int) -> Partition:
    """Return the partition, led here. Raises KafkaError, in Kafka's order of checks."""
    services = context.services
    if services.cluster.image.partition(name, index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if name in INTERNAL_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"cannot delete records of internal topic {name}"
        )
    return services.partitions.get(name, index)


def _delete(  # noqa: PLR0917  one call per partition of a request
    context: RequestContext,
    partition: Partition,
    offset: int,
    result: DeleteRecordsPartitionResult,
    timeout_ms: int,
    waits: Waits,
) -> None:
    """Move the log start offset, and put the low watermark into `result`.

    `waits` grows where the followers have to delete first. Raises KafkaError.
    """
    start_offset = context.services.partitions.delete_records(partition, offset)
    result.low_watermark = partition.low_watermark
    if partition.replicas is not None and result.low_watermark < start_offset:
        waits.append(partition.replicas.deletions.wait(start_offset, result, timeout_ms))
