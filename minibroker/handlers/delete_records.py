"""DeleteRecords: key 21, versions 0-2.

Behaviour: moves the log start offset of each partition to the given offset (-1: its high
watermark). Clients cannot read older records from then on; the next retention check removes their
segments. The answer holds the low watermark, which is the new log start offset.
Versions: 1 a client over its quota is answered first and paused after; 2 flexible.
Differs from Kafka: a partition has no followers here, so no answer waits for their deletion, and
`timeout_ms` is not used.
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
    """Return one result per partition, in the order of the request. If a partition is named twice,
    its last offset counts, as in Kafka.
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
    """Return topic → partition → wanted offset."""
    found: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for part in topic.partitions:
            found.setdefault(topic.name, {})[part.partition_index] = part.offset
    return found


def _delete(context: RequestContext, name: str, index: int, offset: int) -> int:
    """Move the log start offset; return the low watermark. Raises KafkaError, in Kafka's order of
    checks.
    """
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
    """Return the answer with this error code for every partition of the request."""
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
