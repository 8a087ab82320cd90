"""Fetch: key 1, versions 0-18.

Behaviour: reads from each partition in turn until `max_bytes` are together; with less than
`min_bytes` it waits up to `max_wait_ms`, unless the reader is behind the newest segment:
`partitions/waiters` counts as Kafka's DelayedFetch does. Records go out as slices of mapped
segments, untouched.

Versions:
- 3: max_bytes and a first batch that is always whole (KIP-74)
- 4: isolation level, last stable offset, aborted transactions
- 5: log start offset
- 7: sessions (KIP-227)
- 9: leader epochs (KIP-320)
- 11: rack, and followers answer consumers (KIP-392)
- 12: flexible, diverging epochs
- 13: topic ids (KIP-516)
- 16: current leader (KIP-951)

Versions 0-1 read record format 0, 2-3 format 1: see `reads/conversion`.

Differs from Kafka: what `records.conversion` and `reads/conversion` tell; nothing else is known.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.broker.handlers.common.leaders import LeaderHints
from minibroker.broker.handlers.reads.fetch_pass import (
    STEP_PARTITIONS,
    FetchPass,
    follower_of,
    read_all,
    read_steps,
    replica_for,
)
from minibroker.broker.partitions.cold_reads import ROUNDS_MAX, warm
from minibroker.broker.partitions.fetch_session import (
    CONSUMER,
    FetchContext,
    FetchPartition,
    FetchResult,
    IncrementalFetchContext,
    PartitionKey,
)
from minibroker.broker.partitions.partition import LOG_END
from minibroker.broker.partitions.role import NO_EPOCH
from minibroker.broker.partitions.waiters import DelayedFetch, FetchPosition, has_enough
from minibroker.broker.slices import TimeSlice, begin_in_slices, collect, end_in_slices
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from minibroker.kafka.protocol.primitives import Writer
from minibroker.kafka.protocol.writer import RECORDS_BY_REFERENCE_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.slices import Steps

    Places = OrderedDict[PartitionKey, FetchPartition]

Answer = TypeVar("Answer")
AT_ONCE_MAX: int = 256
"""Partitions, and topics, of a request that are looked at in one step."""
_FIRST_VERSION_UNCONVERTED: Final = 10
"""From here on a consumer reads whatever is stored (zstd came last)."""


def handle(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse] | Steps[FetchResponse | Awaitable[FetchResponse]]:
    """Answer at once if there is enough to send, else when there is or the time is over."""
    topics = request.topics
    if len(topics) == 1 and len(topics[0].partitions) <= AT_ONCE_MAX:  # most often
        return _handle(context, request, OrderedDict(_places_of(context, request)))
    if sum([len(topic.partitions) for topic in topics]) > AT_ONCE_MAX or len(topics) > AT_ONCE_MAX:
        return _handle_in_steps(context, request)
    return _handle(context, request, OrderedDict(_places_of(context, request)))


def _handle_in_steps(
    context: RequestContext, request: FetchRequest
) -> Steps[FetchResponse | Awaitable[FetchResponse]]:
    places: Places = OrderedDict()
    for key, partition in _places_of(context, request):
        places[key] = partition
        yield
    return _handle(context, request, places)


def _handle(
    context: RequestContext, request: FetchRequest, places: Places
) -> FetchResponse | Awaitable[FetchResponse]:
    answer = _answer(context, request, places)
    if context.version >= _FIRST_VERSION_UNCONVERTED:
        return answer
    from minibroker.broker.handlers.reads.conversion import (  # noqa: PLC0415  rarely
        convert_awaited,
        for_old_consumer,
    )

    if isinstance(answer, FetchResponse):
        return for_old_consumer(context, request, answer)
    return _as_future(convert_awaited(context, request, answer))


def _answer(
    context: RequestContext, request: FetchRequest, places: Places
) -> FetchResponse | Awaitable[FetchResponse]:
    """Return the answer with the records as they are stored."""
    session = _session(context, request, places)
    if session.error_code:
        return FetchResponse(error_code=session.error_code)
    fetch = FetchPass(context, request, session)
    steps = read_steps(fetch, resident_only=True)
    if not begin_in_slices(steps) or fetch.cold:
        return _as_future(_answer_in_slices(fetch, steps))
    return _answer_read(fetch)


def _as_future(answering: Coroutine[Any, Any, FetchResponse]) -> asyncio.Future[FetchResponse]:
    """Return a future of the answer. It takes no place of a task (`queued.max.requests`), because
    it may be a long poll. A connection that is lost cancels it."""
    task = asyncio.get_running_loop().create_task(answering)
    future = asyncio.shield(task)
    future.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)
    return future


async def _answer_in_slices(fetch: FetchPass, steps: Iterator[None]) -> FetchResponse:
    """Return the answer to a Fetch of many partitions, or of records that are not in memory.

    `steps` is the rest of the first pass. Workers bring into memory what is not there.
    """
    await end_in_slices(steps)
    await _read_cold(fetch)
    bytes_min = _bytes_to_wait_for(fetch)
    if bytes_min is not None:
        positions = await collect(_positions(fetch))
        if not has_enough(positions, bytes_min):
            await _delay(fetch, positions, bytes_min, lambda: None)
            await end_in_slices(read_steps(fetch, resident_only=False))
    if fetch.context.services.quotas.is_active:
        _look_again_where_changed(fetch, fetch.results)
        return _respond(fetch)
    return await _respond_in_slices(fetch)


async def _read_cold(fetch: FetchPass) -> None:
    """Repeat the pass until all it asks for was in memory. The last try waits for the disk."""
    for _ in range(ROUNDS_MAX):
        if not fetch.cold:
            return
        await warm(fetch.cold)
        await end_in_slices(read_steps(fetch, resident_only=True))
    if fetch.cold:
        read_all(fetch)


def _answer_read(fetch: FetchPass) -> FetchResponse | Awaitable[FetchResponse]:
    """Return the answer with what was read, now or when there is enough."""
    bytes_min = _bytes_to_wait_for(fetch)
    if bytes_min is None:
        return _respond(fetch)
    positions = [
        _position_in(fetch, place, place.read_to_end_of)
        for _, place, _ in fetch.results[: fetch.readable_count]
    ]
    if not fetch.is_at_end and has_enough(positions, bytes_min):
        return _respond(fetch)

    def read_again() -> FetchResponse:
        read_all(fetch)
        return _respond(fetch)

    return _delay(fetch, positions, bytes_min, read_again)


def _bytes_to_wait_for(fetch: FetchPass) -> int | None:
    """Return how many bytes the answer has to have, None: it leaves with what was read."""
    request = fetch.request
    bytes_min = min(request.min_bytes, fetch.limit_bytes)
    if (
        request.max_wait_ms <= 0
        or not (fetch.readable_count or fetch.session.has_settled)
        or fetch.bytes_read >= bytes_min
        or fetch.failed
    ):
        return None
    return bytes_min


def _positions(fetch: FetchPass) -> Iterator[FetchPosition]:
    """Yield the place in each partition that was read. Raises KafkaError."""
    for _, place, _ in fetch.results[: fetch.readable_count]:
        yield _position_in(fetch, place)


def _position_in(
    fetch: FetchPass, place: FetchPartition, partition: Partition | None = None
) -> FetchPosition:
    """Return the place in a partition; None: the one that is hosted now. Raises KafkaError."""
    if partition is None:
        partition = replica_for(fetch, place)
    return FetchPosition(
        partition,
        place.fetch_offset,
        place.max_bytes,
        fetch.isolation_level,
        is_held=partial(fetch.is_held, partition) if fetch.throttle is not None else None,
    )


def _delay(
    fetch: FetchPass,
    positions: list[FetchPosition],
    bytes_min: int,
    read_again: Callable[[], Answer],
) -> asyncio.Future[Answer]:
    """Return a future of what `read_again` returns once these places have `bytes_min` bytes, or
    the time of the request is over."""
    session = fetch.session
    fetch.is_new = False
    delayed = DelayedFetch(
        asyncio.get_running_loop(),
        positions,
        bytes_min,
        fetch.request.max_wait_ms,
        read_again,
    )
    if isinstance(session, IncrementalFetchContext):
        delayed.follow(
            lambda: [_position_in(fetch, place) for place in session.more()], session.leave
        )
        session.hang(delayed)
    return delayed.future


def _places_of(
    context: RequestContext, request: FetchRequest
) -> Iterator[tuple[PartitionKey, FetchPartition]]:
    """Yield the partitions that the request names, in order."""
    uses_ids = context.version >= 13
    image = context.services.cluster.image
    for topic in request.topics:
        name: str | None = topic.topic
        if uses_ids:
            image_topic = image.topic_by_id.get(topic.topic_id)
            name = image_topic.name if image_topic is not None else None
        for part in topic.partitions:
            key = (topic.topic_id if uses_ids else topic.topic, part.partition)
            yield (
                key,
                FetchPartition(
                    topic=name,
                    topic_id=topic.topic_id,
                    index=part.partition,
                    fetch_offset=part.fetch_offset,
                    max_bytes=part.partition_max_bytes,
                    # Any negative epoch is none; in other requests only -1 is.
                    current_leader_epoch=max(part.current_leader_epoch, NO_EPOCH),
                    last_fetched_epoch=part.last_fetched_epoch,
                    follower_start_offset=part.log_start_offset,
                ),
            )


def _session(context: RequestContext, request: FetchRequest, places: Places) -> FetchContext:
    """Return the partitions of this fetch: the request's own, or those of its session."""
    uses_ids = context.version >= 13
    if context.version < 7:
        return FetchContext(places, None)
    forgotten: list[PartitionKey] = [
        (topic.topic_id if uses_ids else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    follower = follower_of(request)
    authorizer = context.services.authorizer
    return context.services.fetch_sessions.context(
        request.session_id,
        request.session_epoch,
        places,
        forgotten,
        uses_topic_ids=uses_ids,
        isolation_level=LOG_END if follower else request.isolation_level,
        follower_id=follower.broker_id if follower else CONSUMER,
        acl_changes=0 if authorizer is None else authorizer.changes,
    )


def _respond(fetch: FetchPass) -> FetchResponse:
    """Return the answer at once: results that the session lets through, by topic in order."""
    context = fetch.context
    is_charged = context.services.quotas.is_active and fetch.follower is None
    if is_charged and (throttled := _throttled(fetch)) is not None:
        return throttled
    session = fetch.session
    refusal = session.refusal()
    if refusal:
        return FetchResponse(error_code=refusal, session_id=session.session_id())
    response = FetchResponse()
    _add_results(fetch, response, fetch.results)
    if fetch.follower is not None:
        _record_throttled(fetch)
    response.session_id = session.session_id()
    return response


async def _respond_in_slices(fetch: FetchPass) -> FetchResponse:
    """Return what `_respond` does without quotas, made and encoded in slices."""
    session, results = fetch.session, fetch.results
    is_encoded = fetch.context.version >= _FIRST_VERSION_UNCONVERTED
    response = FetchResponse()
    turn = TimeSlice()
    for start in range(0, len(results), STEP_PARTITIONS):
        if turn.is_over:
            await turn.pause()
        refusal = session.refusal()
        if refusal:
            return FetchResponse(error_code=refusal, session_id=session.session_id())
        step = results[start : start + STEP_PARTITIONS]
        _look_again_where_changed(fetch, step)
        _add_results(fetch, response, step, is_encoded=is_encoded)
    _record_throttled(fetch)
    response.session_id = session.session_id()
    return response


def _add_results(
    fetch: FetchPass,
    response: FetchResponse,
    results: Sequence[FetchResult],
    *,
    is_encoded: bool = False,
) -> None:
    """Put the results that the session lets through into the answer.

    `is_encoded`: as bytes, unless their records are large.
    """
    context = fetch.context
    throttle = fetch.throttle
    selected = fetch.session.select(results)
    group = response.responses[-1] if response.responses else None
    for (_, place, data), is_selected in zip(results, selected, strict=True):
        if not is_selected:
            continue
        topic = place.topic or ""
        if context.version >= 16 and data.error_code in _LEADER_ERRORS:
            hints = LeaderHints(context, response.node_endpoints, (LeaderIdAndEpoch, NodeEndpoint))
            data.current_leader = hints.of(topic, place.index)
        if group is None or group.topic != topic or group.topic_id != place.topic_id:
            group = FetchableTopicResponse(topic=topic, topic_id=place.topic_id)
            response.responses.append(group)
        if throttle is not None and throttle.is_throttled(topic, place.index):
            writer = Writer()
            data.write(writer, context.version)
            fetch.throttled_bytes += writer.size
        answered: Any = data
        if is_encoded and len(data.records or b"") < RECORDS_BY_REFERENCE_BYTES:
            answered = EncodedStruct(data, context.version, data.error_code)
        group.partitions.append(answered)


def _record_throttled(fetch: FetchPass) -> None:
    """Count what a follower gets of throttled partitions, whether it is in sync or not.

    Kafka counts the frame around them, too: some twenty bytes.
    """
    throttle = fetch.throttle
    if throttle is not None:
        throttle.record(fetch.throttled_bytes)


def _look_again_where_changed(fetch: FetchPass, results: Iterable[FetchResult]) -> None:
    """Have the session look again at partitions that changed since a slice read them to the end."""
    partitions = fetch.context.services.partitions
    for _, place, data in results:
        replica = place.read_to_end_of
        if replica is not None and not (
            replica is partitions.replica(replica.topic, replica.index)
            and (replica.is_leader or (replica.has_log and not fetch.needs_leader))
            and place.fetch_offset == replica.end_offset_for(fetch.isolation_level)
            and place.current_leader_epoch in {-1, replica.leader_epoch}
            and replica.high_watermark == data.high_watermark
            and replica.last_stable_offset == data.last_stable_offset
            and replica.log_start_offset == data.log_start_offset
        ):
            place.read_to_end_of = None


def _throttled(fetch: FetchPass) -> FetchResponse | None:
    """Charge for the answer; over the quota it goes out empty, and the session stays as it is."""
    context = fetch.context
    if context.services.quotas.fetch_bytes_max(context.quota_client) is None:
        return None
    is_incremental = fetch.session.is_incremental
    group: FetchableTopicResponse | None = None
    group_key: object = None
    whole = FetchResponse()
    for key, place, data in fetch.results:
        if is_incremental and not data.records and not data.error_code:
            continue
        if group is None or group_key != key[0]:
            group_key = key[0]
            group = FetchableTopicResponse(topic=place.topic or "", topic_id=place.topic_id)
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
