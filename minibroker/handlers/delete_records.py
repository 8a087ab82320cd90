"""DeleteRecords: key 21, versions 0-2.

Behaviour: each partition starts at the given offset from now on (-1: its high watermark); what lies
below is not readable any more, its segments go with the next retention check. The answer names the
low watermark, where the partition starts.
Versions: 1 throttled clients are told after the answer; 2 flexible.
Differs from Kafka: nobody follows a partition that is led here, so an answer never waits until
followers have deleted as much, and `timeout_ms` is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.cluster.image import INTERNAL_TOPICS
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, as_answer
from minibroker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.delete_records import DeleteRecordsRequest

INVALID_LOW_WATERMARK = -1


def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """One result per partition, in the order of the request; of one named twice the last offset
    counts, as in Kafka.
    """
    response = DeleteRecordsResponse()
    for name, offsets in _offsets_by_topic(request).items():
        answer = DeleteRecordsTopicResult(name=name)
        response.topics.append(answer)
        for index, offset in offsets.items():
            result = DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=INVALID_LOW_WATERMARK
            )
            answer.partitions.append(result)
            try:
                result.low_watermark = _delete(context, name, index, offset)
            except Exception as error:
                result.error_code, _ = as_answer(error, f"deleting records of {name}-{index}")
    return response


def _offsets_by_topic(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """Topic → partition → offset."""
    found: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for part in topic.partitions:
            found.setdefault(topic.name, {})[part.partition_index] = part.offset
    return found


def _delete(context: RequestContext, name: str, index: int, offset: int) -> int:
    """The low watermark. Raises KafkaError, in Kafka's order of checks."""
    services = context.services
    known = services.cluster.image.topics.get(name)
    if known is None or not 0 <= index < len(known.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if name in INTERNAL_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"cannot delete records of internal topic {name}"
        )
    return services.partitions.delete_records(services.partitions.get(name, index), offset)


def error_response(
    request: DeleteRecordsRequest, version: int, code: ErrorCode, detail: str | None
) -> DeleteRecordsResponse:
    """The code for every partition of the request."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=index,
                        low_watermark=INVALID_LOW_WATERMARK,
                        error_code=int(code),
                    )
                    for index in offsets
                ],
            )
            for name, offsets in _offsets_by_topic(request).items()
        ]
    )
