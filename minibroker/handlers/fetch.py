"""Fetch: key 1, versions 0-18.

Behaviour: reads from each partition in turn until `max_bytes` are together; with less than
`min_bytes` it waits up to `max_wait_ms`. Records go out as slices of mapped segments, untouched.
Versions: 3 max_bytes and a first batch that is always whole (KIP-74); 4 isolation level, last
stable offset, aborted transactions; 5 log start offset; 7 sessions (KIP-227); 9 leader epochs
(KIP-320); 11 rack; 12 flexible, diverging epochs; 13 topic ids (KIP-516); 16 current leader
(KIP-951). Versions 0-1 read record format 0, 2-3 format 1: see `fetch_conversion`.
Differs from Kafka: nothing known but what `records.conversion` tells.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.handlers.leaders import LeaderHints
from minibroker.partitions.fetch_session import (
    FINAL_EPOCH,
    FetchContext,
    FetchPartition,
    PartitionKey,
    PartitionResult,
)
from minibroker.partitions.partition import READ_COMMITTED
from minibroker.partitions.waiters import DelayedFetch, FetchPosition
from minibroker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from minibroker.protocol.primitives import Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import RequestContext
    from minibroker.partitions.partition import Partition

_BYTES_MAX: Final = 2**31 - 1
_FIRST_VERSION_UNCONVERTED: Final = 10
"""From here on a consumer reads whatever is stored (zstd came last)."""
_NO_RECORDS: Final = memoryview(b"")


class _Fetch:
    """One request on its way: what to read, and what the last pass over the partitions gave."""

    __slots__ = (
        "bytes_read",
        "context",
        "failed",
        "limit_bytes",
        "readable_count",
        "request",
        "results",
        "session",
    )

    def __init__(
        self, context: RequestContext, request: FetchRequest, session: FetchContext
    ) -> None:
        self.context = context
        self.request = request
        self.session = session
        limit = request.max_bytes if context.version >= 3 else _BYTES_MAX
        self.limit_bytes = min(limit, context.services.config.fetch_max_bytes)
        quotas = context.services.quotas
        if (
            quotas.is_active
            and (window := quotas.fetch_bytes_max(context.quota_client)) is not None
        ):
            # More than a client may have in all its windows would be refused for ever.
            self.limit_bytes = min(self.limit_bytes, window)
        self.results: list[tuple[PartitionKey, FetchPartition, PartitionData]] = []
        self.bytes_read = 0
        self.failed = False
        self.readable_count = 0


def handle(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    """Answer at once if there is enough to send, else when there is or the time is over."""
    answer = _answer(context, request)
    if context.version >= _FIRST_VERSION_UNCONVERTED:
        return answer
    from minibroker.handlers.fetch_conversion import for_old_consumer  # noqa: PLC0415  rarely

    return for_old_consumer(context, request, answer)


def _answer(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    """The answer with the records as they are stored."""
    session = _session(context, request)
    if session.error_code:
        return FetchResponse(error_code=session.error_code)
    fetch = _Fetch(context, request, session)
    _read_all(fetch)
    bytes_min = min(request.min_bytes, fetch.limit_bytes)
    if (
        request.max_wait_ms <= 0
        or not fetch.readable_count
        or fetch.bytes_read >= bytes_min
        or fetch.failed
    ):
        return _respond(fetch)
    return _wait(fetch, bytes_min)


def _wait(fetch: _Fetch, bytes_min: int) -> Awaitable[FetchResponse]:
    request = fetch.request
    partitions = fetch.context.services.partitions
    positions = []
    for _, asked, _ in fetch.results:
        partition = partitions.find(asked.topic or "", asked.index)
        if partition is not None:
            positions.append(
                FetchPosition(
                    partition, asked.fetch_offset, asked.max_bytes, request.isolation_level
                )
            )

    def read_again() -> FetchResponse:
        _read_all(fetch)
        return _respond(fetch)

    bytes_wanted = bytes_min - fetch.bytes_read
    loop = asyncio.get_running_loop()
    return DelayedFetch(loop, positions, bytes_wanted, request.max_wait_ms, read_again).future


def _session(context: RequestContext, request: FetchRequest) -> FetchContext:
    """The partitions of this fetch: the request's own, or those of its session."""
    uses_ids = context.version >= 13
    image = context.services.cluster.image
    asked: OrderedDict[PartitionKey, FetchPartition] = OrderedDict()
    for topic in request.topics:
        name: str | None = topic.topic
        if uses_ids:
            known = image.topic_by_id.get(topic.topic_id)
            name = known.name if known is not None else None
        for part in topic.partitions:
            key = (topic.topic_id if uses_ids else topic.topic, part.partition)
            asked[key] = FetchPartition(
                topic=name,
                topic_id=topic.topic_id,
                index=part.partition,
                fetch_offset=part.fetch_offset,
                max_bytes=part.partition_max_bytes,
                current_leader_epoch=part.current_leader_epoch,
                last_fetched_epoch=part.last_fetched_epoch,
            )
    if context.version < 7:
        return FetchContext(asked, None)
    forgotten: list[PartitionKey] = [
        (topic.topic_id if uses_ids else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    return context.services.fetch_sessions.context(
        request.session_id, request.session_epoch, asked, forgotten, uses_topic_ids=uses_ids
    )


def _read_all(fetch: _Fetch) -> None:
    """One pass over the partitions: fill `results`, `bytes_read` and `failed`.

    Partitions that do not exist stand behind the others, as in Kafka's answer.
    """
    results: list[tuple[PartitionKey, FetchPartition, PartitionData]] = []
    unknown: list[tuple[PartitionKey, FetchPartition, PartitionData]] = []
    fetch.bytes_read = 0
    fetch.failed = False
    left_bytes = fetch.limit_bytes
    min_one_batch = fetch.context.version >= 3
    image = fetch.context.services.cluster.image
    for key, asked in fetch.session:
        if asked.topic is None:
            known = image.topic_by_id.get(asked.topic_id)
            asked.topic = known.name if known is not None else None
        data = PartitionData(partition_index=asked.index, high_watermark=-1, records=_NO_RECORDS)
        try:
            size = _read(fetch, asked, data, left_bytes, min_one_batch)
        except KafkaError as error:
            if error.code in _KNOWN_BEFORE_READING:
                data.error_code = int(error.code)
                unknown.append((key, asked, data))
                continue
            _fail(fetch, data, error)
            size = 0
        if size:
            min_one_batch = False
            left_bytes = max(0, left_bytes - size)
            fetch.bytes_read += size
        results.append((key, asked, data))
    fetch.readable_count = len(results)
    fetch.results = results + unknown


def _read(
    fetch: _Fetch, asked: FetchPartition, data: PartitionData, left_bytes: int, min_one_batch: bool
) -> int:
    """Read one partition into `data`; returns the bytes read. Raises KafkaError."""
    context = fetch.context
    partition = _leader(context, asked)
    partition.check_leader_epoch(asked.current_leader_epoch)
    if asked.last_fetched_epoch >= 0 and _diverges(partition, asked, data):
        fetch.failed = True  # like an error, it is told at once
        return 0
    isolation_level = fetch.request.isolation_level
    read = partition.read(
        asked.fetch_offset,
        min(asked.max_bytes, left_bytes),
        isolation_level=isolation_level,
        min_one_batch=min_one_batch,
    )
    data.high_watermark = partition.high_watermark
    data.last_stable_offset = partition.last_stable_offset
    data.log_start_offset = partition.log_start_offset
    data.aborted_transactions = None
    if isolation_level == READ_COMMITTED:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset, _, _ in partition.aborted_transactions(
                asked.fetch_offset, read
            )
        ]
    if read.is_first_batch_cut and context.version >= 3:
        return 0
    data.records = read.records
    return len(read.records)


def _leader(context: RequestContext, asked: FetchPartition) -> Partition:
    if asked.topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = context.services.partitions.get(asked.topic, asked.index)
    if context.version >= 13 and partition.topic_id != asked.topic_id:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
    return partition


def _diverges(partition: Partition, asked: FetchPartition, data: PartitionData) -> bool:
    """KIP-595: the reader's last epoch ended here before the offset that it wants."""
    epoch, end_offset = partition.end_offset_for_epoch(asked.last_fetched_epoch)
    if end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= asked.last_fetched_epoch and end_offset >= asked.fetch_offset:
        return False
    data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    data.aborted_transactions = None
    data.high_watermark = partition.high_watermark
    data.last_stable_offset = partition.last_stable_offset
    data.log_start_offset = partition.log_start_offset
    return True


def _fail(fetch: _Fetch, data: PartitionData, error: KafkaError) -> None:
    code = error.code
    if code == ErrorCode.KAFKA_STORAGE_ERROR and fetch.context.version <= 5:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # clients of that age do not know the other
    data.error_code = int(code)
    data.records = _NO_RECORDS
    data.aborted_transactions = None
    fetch.failed = True


# Kafka sorts these out before it reads; they do not end the wait for the other partitions.
_KNOWN_BEFORE_READING = frozenset(
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
)


def _respond(fetch: _Fetch) -> FetchResponse:
    """The answer: results that the session lets through, grouped by topic in order."""
    context = fetch.context
    if context.services.quotas.is_active and (throttled := _throttled(fetch)) is not None:
        return throttled
    response = FetchResponse()
    selected = fetch.session.select((key, _session_result(data)) for key, _, data in fetch.results)
    response.session_id = fetch.session.session_id()
    group: FetchableTopicResponse | None = None
    group_key: object = None
    for (key, asked, data), is_selected in zip(fetch.results, selected, strict=True):
        if not is_selected:
            continue
        if context.version >= 16 and data.error_code in _LEADER_ERRORS:
            hints = LeaderHints(context, response.node_endpoints, (LeaderIdAndEpoch, NodeEndpoint))
            data.current_leader = hints.of(asked.topic or "", asked.index)
        if group is None or group_key != key[0]:
            group_key = key[0]
            group = FetchableTopicResponse(topic=asked.topic or "", topic_id=asked.topic_id)
            response.responses.append(group)
        group.partitions.append(data)
    return response


def _throttled(fetch: _Fetch) -> FetchResponse | None:
    """Charge for the answer; over the quota it goes out empty, and the session stays as it is."""
    context = fetch.context
    is_incremental = fetch.session.is_incremental
    group: FetchableTopicResponse | None = None
    group_key: object = None
    whole = FetchResponse()
    for key, asked, data in fetch.results:
        if is_incremental and not data.records and not data.error_code:
            continue
        if group is None or group_key != key[0]:
            group_key = key[0]
            group = FetchableTopicResponse(topic=asked.topic or "", topic_id=asked.topic_id)
            whole.responses.append(group)
        group.partitions.append(data)
    writer = Writer()
    whole.write(writer, context.version)
    delay_ms = context.services.quotas.record_fetch(context.quota_client, writer.size + 4)
    if not delay_ms:
        return None
    session_id = fetch.session.session_id() if is_incremental else 0
    return FetchResponse(throttle_time_ms=delay_ms, session_id=session_id)


_LEADER_ERRORS = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))


def _session_result(data: PartitionData) -> PartitionResult:
    records = data.records
    return PartitionResult(
        data.error_code,
        data.high_watermark,
        data.log_start_offset,
        len(records) if records is not None else 0,
        has_diverging_epoch=data.diverging_epoch is not None,
    )


def error_response(
    request: FetchRequest, version: int, code: ErrorCode, detail: str | None
) -> FetchResponse:
    """The whole fetch failed: a top-level code from version 7 on, else one per partition."""
    response = FetchResponse(error_code=int(code))
    if version >= 7 and request.session_epoch != FINAL_EPOCH:
        return response
    for topic in request.topics:
        group = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
        group.partitions = [
            PartitionData(partition_index=part.partition, error_code=int(code), high_watermark=-1)
            for part in topic.partitions
        ]
        response.responses.append(group)
    return response
