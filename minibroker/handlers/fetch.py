"""Fetch: key 1, versions 0-18.

Behaviour: reads from each partition in turn until `max_bytes` are together; with less than
`min_bytes` it waits up to `max_wait_ms`, unless the reader is behind the newest segment:
`partitions/waiters` counts as Kafka's DelayedFetch does. Records go out as slices of mapped
segments, untouched.
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
from minibroker.handlers.fetch_reading import FetchPass, read_all
from minibroker.handlers.leaders import LeaderHints
from minibroker.partitions.fetch_session import (
    FINAL_EPOCH,
    FetchContext,
    FetchPartition,
    PartitionKey,
    PartitionResult,
)
from minibroker.partitions.waiters import DelayedFetch, FetchPosition, has_enough
from minibroker.protocol.messages.fetch import (
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

_FIRST_VERSION_UNCONVERTED: Final = 10
"""From here on a consumer reads whatever is stored (zstd came last)."""


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
    fetch = FetchPass(context, request, session)
    read_all(fetch)
    bytes_min = min(request.min_bytes, fetch.limit_bytes)
    if (
        request.max_wait_ms <= 0
        or not fetch.readable_count
        or fetch.bytes_read >= bytes_min
        or fetch.failed
    ):
        return _respond(fetch)
    return _wait(fetch, bytes_min)


def _wait(fetch: FetchPass, bytes_min: int) -> FetchResponse | Awaitable[FetchResponse]:
    """The answer when there is enough in the partitions: now, if that is more than was read."""
    request = fetch.request
    partitions = fetch.context.services.partitions
    positions = []
    for _, asked, _ in fetch.results[: fetch.readable_count]:
        partition = partitions.get(asked.topic or "", asked.index)
        positions.append(
            FetchPosition(partition, asked.fetch_offset, asked.max_bytes, request.isolation_level)
        )
    if has_enough(positions, bytes_min):
        return _respond(fetch)

    def read_again() -> FetchResponse:
        read_all(fetch)
        return _respond(fetch)

    loop = asyncio.get_running_loop()
    return DelayedFetch(loop, positions, bytes_min, request.max_wait_ms, read_again).future


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


def _respond(fetch: FetchPass) -> FetchResponse:
    """The answer: results that the session lets through, grouped by topic in order."""
    context = fetch.context
    if context.services.quotas.is_active and (throttled := _throttled(fetch)) is not None:
        return throttled
    response = FetchResponse()
    refusal = fetch.session.refusal()
    if refusal:
        return FetchResponse(error_code=refusal, session_id=fetch.session.session_id())
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


def _throttled(fetch: FetchPass) -> FetchResponse | None:
    """Charge for the answer; over the quota it goes out empty, and the session stays as it is."""
    context = fetch.context
    if context.services.quotas.fetch_bytes_max(context.quota_client) is None:
        return None
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
