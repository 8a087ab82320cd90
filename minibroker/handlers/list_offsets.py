"""ListOffsets: key 2, versions 0-11.

Behaviour: the offset for a time, or for one of the special times below; a consumer is answered
within what it may read (high watermark, or last stable offset with read_committed).

| timestamp | since | means                                                              |
|-----------|-------|--------------------------------------------------------------------|
| -1        | 0     | latest: the end of what may be read                                |
| -2        | 0     | earliest: log start offset                                         |
| -3        | 7     | the record with the largest timestamp (KIP-734)                    |
| -4        | 8     | earliest on this disk: the log start offset without tiered storage |
| -5        | 9     | latest that is tiered: none, offset -1 (KIP-1005)                  |
| -6        | 11    | earliest not tiered yet: none, offset -1 (KIP-1023)                |

Versions: 0 up to max_num_offsets segment starts, newest first; 1 exact record and its timestamp;
2 isolation level; 4 leader epochs; 6 flexible; 10 timeout for remote storage.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, as_answer
from minibroker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.partitions.partition import Partition
    from minibroker.protocol.messages.list_offsets import ListOffsetsPartition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
CONSUMER: Final = -1
"""The replica id of everybody who is not a broker."""

_SINCE_VERSION: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_UNKNOWN: Final = (-1, -1, -1)
_KAFKA_4_SINCE: Final = 10
"""Versions that Kafka 4 alone serves. Its answer is a map: each partition comes once."""


def handle(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One result per partition asked, in order; from version 10 on each partition once."""
    response = ListOffsetsResponse()
    asked_count = Counter(
        (topic.name, part.partition_index) for topic in request.topics for part in topic.partitions
    )
    is_kafka_4 = context.version >= _KAFKA_4_SINCE
    for topic in _each_once(request.topics) if is_kafka_4 else request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(answer)
        for part in topic.partitions:
            result = ListOffsetsPartitionResponse(partition_index=part.partition_index)
            answer.partitions.append(result)
            try:
                if context.version == 0:
                    _list_segments(context, request, topic.name, part, result)
                elif asked_count[topic.name, part.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                else:
                    _find_offset(context, request, topic.name, part, result)
            except Exception as error:
                what = f"looking up an offset of {topic.name}-{part.partition_index}"
                result.error_code, _ = as_answer(error, what)
    return response


def _each_once(topics: list[ListOffsetsTopic]) -> list[ListOffsetsTopic]:
    """Return the topics with each partition once, without those that have none."""
    parts_of: dict[str, dict[int, ListOffsetsPartition]] = {}
    for topic in topics:
        for part in topic.partitions:
            parts_of.setdefault(topic.name, {})[part.partition_index] = part
    return [
        ListOffsetsTopic(name=name, partitions=list(parts.values()))
        for name, parts in parts_of.items()
    ]


def _find_offset(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    part: ListOffsetsPartition,
    result: ListOffsetsPartitionResponse,
) -> None:
    timestamp = part.timestamp
    if timestamp < 0 and context.version < _SINCE_VERSION.get(timestamp, context.version + 1):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = context.services.partitions.get(topic, part.partition_index)
    partition.check_leader_epoch(part.current_leader_epoch)
    end_offset = (
        partition.end_offset_for(request.isolation_level)
        if request.replica_id == CONSUMER
        else partition.log_end_offset
    )
    found_timestamp, offset, leader_epoch = _lookup(partition, timestamp, end_offset)
    result.timestamp = found_timestamp
    result.offset = offset
    if context.version >= 4:
        result.leader_epoch = leader_epoch


def _lookup(partition: Partition, timestamp: int, end_offset: int) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch), -1 each where there is nothing to say."""
    if timestamp == LATEST:
        return -1, end_offset, partition.leader_epoch
    if timestamp != EARLIEST and partition.log.config.message_magic == 0:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{partition} stores message format 0, which has no timestamps",
        )
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, partition.log_start_offset, partition.earliest_epoch()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        found = partition.max_timestamp_offset()
    else:
        found = partition.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end_offset:
        return _UNKNOWN
    return found.timestamp, found.offset, found.leader_epoch


def _list_segments(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    part: ListOffsetsPartition,
    result: ListOffsetsPartitionResponse,
) -> None:
    """Version 0 (behaviour T8): segment starts at or before a time, newest first."""
    if part.timestamp < EARLIEST:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = context.services.partitions.get(topic, part.partition_index)
    offsets = partition.offsets_before(part.timestamp, part.max_num_offsets)
    if request.replica_id == CONSUMER and any(o > partition.high_watermark for o in offsets):
        high_watermark = partition.high_watermark
        offsets = [high_watermark, *(o for o in offsets if o <= high_watermark)]
    result.old_style_offsets = offsets


def error_response(
    request: ListOffsetsRequest, version: int, code: ErrorCode, detail: str | None
) -> ListOffsetsResponse:
    """The code for every partition of the request."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, error_code=int(code)
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
