"""ListOffsets: key 2, versions 0-11.

Behaviour: returns the offset for a timestamp, or for one of the special timestamps below. For a
consumer the log ends at the high watermark, or at the last stable offset with read_committed.

| timestamp | since | means                                                              |
|-----------|-------|--------------------------------------------------------------------|
| -1        | 0     | latest: the end of the log for this client                         |
| -2        | 0     | earliest: log start offset                                         |
| -3        | 7     | the record with the largest timestamp (KIP-734)                    |
| -4        | 8     | earliest on this disk: the log start offset without tiered storage |
| -5        | 9     | latest that is tiered: none, offset -1 (KIP-1005)                  |
| -6        | 11    | earliest not tiered yet: none, offset -1 (KIP-1023)                |

Versions:
- 0: up to max_num_offsets segment starts, newest first
- 1: exact record and its timestamp
- 2: isolation level
- 4: leader epochs
- 5: OFFSET_NOT_AVAILABLE (KIP-207; before, the same is LEADER_NOT_AVAILABLE)
- 6: flexible
- 10: timeout for remote storage

Differs from Kafka: a lookup by time goes on to later segments where the record that it looks for in
one was deleted by DeleteRecords. Kafka answers then that there is none.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.partitions.cold_reads import ColdError, answer_resident
from minibroker.broker.partitions.partition import READ_COMMITTED
from minibroker.broker.security.acls import Operation
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.list_offsets import ListOffsetsPartition

MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
CONSUMER: Final = -1
"""The replica id of every client that is not a broker."""
DEBUGGER: Final = -2
"""The replica id of a tool that reads any replica, and to the end of its log."""

_SINCE_VERSION: Final = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_UNKNOWN: Final = (-1, -1, -1)
_NOT_AVAILABLE_SINCE: Final = 5
_EPOCHS_SINCE: Final = 4
_KAFKA_4_SINCE: Final = 10
"""First version that only Kafka 4 serves. Its answer is a map: each partition occurs once."""


def handle(
    context: RequestContext, request: ListOffsetsRequest
) -> Steps[ListOffsetsResponse | Awaitable[ListOffsetsResponse]]:
    """Return one result per partition, in the order of the request; from version 10 on each
    partition once. An awaitable where a look-up has to wait for the disk.
    """
    return answer_resident(partial(_find_all, context, request))


def _find_all(
    context: RequestContext, request: ListOffsetsRequest, cold: list[ColdError] | None
) -> Steps[ListOffsetsResponse]:
    """Return the answer; topics that the client may not describe come last.

    `cold` as for `answer_resident`: the answer is not complete where something is added to it.
    """
    response = ListOffsetsResponse()
    asked_count: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for part in topic.partitions:
            asked_count[topic.name, part.partition_index] += 1
            yield
    topics = request.topics
    if context.version >= _KAFKA_4_SINCE:
        topics = yield from _each_once(topics)
    may_describe = Allowed(context, Operation.DESCRIBE)
    for topic in (yield from may_describe.refused_last(topics, attrgetter("name"))):
        answer = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(answer)
        for part in topic.partitions:
            yield
            result = ListOffsetsPartitionResponse(partition_index=part.partition_index)
            answer.partitions.append(result)
            try:
                may_describe.require(topic.name)
                if context.version == 0:
                    _list_segments(context, request, topic.name, part, result)
                elif asked_count[topic.name, part.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                else:
                    _find_offset(
                        context, request, topic.name, part, result, resident_only=cold is not None
                    )
            except ColdError as error:
                assert cold is not None
                cold.append(error)
            except Exception as error:
                subject = f"looking up an offset of {topic.name}-{part.partition_index}"
                code, _ = as_answer(error, subject)
                if (
                    code == ErrorCode.OFFSET_NOT_AVAILABLE
                    and context.version < _NOT_AVAILABLE_SINCE
                ):
                    code = ErrorCode.LEADER_NOT_AVAILABLE
                result.error_code = int(code)
    return response


def _each_once(topics: list[ListOffsetsTopic]) -> Steps[list[ListOffsetsTopic]]:
    """Return the topics with each partition once; topics without partitions are left out."""
    parts_of: dict[str, dict[int, ListOffsetsPartition]] = {}
    for topic in topics:
        for part in topic.partitions:
            parts_of.setdefault(topic.name, {})[part.partition_index] = part
            yield
    return (
        yield from gather(
            ListOffsetsTopic(name=name, partitions=list(parts.values()))
            for name, parts in parts_of.items()
        )
    )


def _find_offset(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    part: ListOffsetsPartition,
    result: ListOffsetsPartitionResponse,
    *,
    resident_only: bool,
) -> None:
    """Fill `result`. Raises KafkaError; with `resident_only`, ColdError where it would wait for the
    disk.
    """
    timestamp = part.timestamp
    if timestamp < 0 and context.version < _SINCE_VERSION.get(timestamp, context.version + 1):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = _partition(context, request, topic, part, part.current_leader_epoch)
    if resident_only and request.isolation_level == READ_COMMITTED:
        partition.require_producers()
    end_offset = (
        partition.end_offset_for(request.isolation_level)
        if request.replica_id == CONSUMER
        else partition.log_end_offset
    )
    if timestamp == LATEST_TIMESTAMP:
        _check_end_is_known(partition, request)
    record = _look_up(partition, timestamp, end_offset, resident_only)
    if record is None:
        _check_end_is_known(partition, request)
        record = _UNKNOWN
    result.timestamp, result.offset, leader_epoch = record
    if context.version >= _EPOCHS_SINCE:
        result.leader_epoch = leader_epoch


def _partition(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    part: ListOffsetsPartition,
    leader_epoch: int = -1,
) -> Partition:
    """Return the partition, which this broker leads; for a debugger any replica. Raises
    KafkaError.
    """
    partitions = context.services.partitions
    if request.replica_id != DEBUGGER:
        return partitions.get(topic, part.partition_index, leader_epoch)
    partition = partitions.hosted(topic, part.partition_index)
    partition.check_leader_epoch(leader_epoch)
    return partition


def _check_end_is_known(partition: Partition, request: ListOffsetsRequest) -> None:
    """Raise KafkaError(OFFSET_NOT_AVAILABLE) to a consumer while a new leader does not know yet
    what is committed: the end could go back otherwise. Source: KIP-207, Kafka
    Partition.fetchOffsetForTimestamp.
    """
    if request.replica_id == CONSUMER and partition.is_behind_epoch_start:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"{partition}: the high watermark {partition.high_watermark} is below the offset at"
            f" which leader epoch {partition.leader_epoch} began",
        )


def _look_up(
    partition: Partition, timestamp: int, end_offset: int, resident_only: bool
) -> tuple[int, int, int] | None:
    """Return (timestamp, offset, leader epoch), a part without an answer is -1; None where no
    record below `end_offset` is found. Raises KafkaError, ColdError.
    """
    if timestamp == LATEST_TIMESTAMP:
        return -1, end_offset, partition.leader_epoch
    if timestamp != EARLIEST_TIMESTAMP and partition.log.config.message_magic == 0:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{partition} stores message format 0, which has no timestamps",
        )
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL):
        return -1, partition.log_start_offset, partition.earliest_epoch()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        record = partition.max_timestamp_offset(resident_only=resident_only)
    else:
        record = partition.offset_for_timestamp(timestamp, resident_only=resident_only)
    if record is None or record.offset >= end_offset:
        return None
    return record.timestamp, record.offset, record.leader_epoch


def _list_segments(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    part: ListOffsetsPartition,
    result: ListOffsetsPartitionResponse,
) -> None:
    """Answer version 0: base offsets of segments that begin at or before a time, newest first.

    Raises KafkaError.
    """
    if part.timestamp < EARLIEST_TIMESTAMP:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = _partition(context, request, topic, part)
    offsets = partition.offsets_before(part.timestamp, part.max_num_offsets)
    if request.replica_id == CONSUMER and any(
        offset > partition.high_watermark for offset in offsets
    ):
        high_watermark = partition.high_watermark
        offsets = [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
    result.old_style_offsets = offsets
