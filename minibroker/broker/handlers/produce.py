"""Produce: key 0, versions 0-13.

Behaviour: each partition's records are checked, get their offsets and are staged; the connection
writes everything staged before this answer leaves. With acks=0 the answer is not sent
(`is_silent`): an error in it ends the connection, so that the producer refreshes its metadata.

Versions:
- 1: throttle time
- 2: log append time
- 3: transactional id and record batches only
- 5: log start offset
- 7: zstd
- 8: errors per record (KIP-467)
- 9: flexible
- 10: current leader (KIP-951)
- 11: TRANSACTION_ABORTABLE (KIP-890)
- 12: implicit transaction partitions (KIP-890)
- 13: topic ids (KIP-516)

Versions 0-2 carry message sets of format 0 and 1 (or, as Kafka lets them, a batch of format 2); the
topic's `message.format.version` decides what becomes of them (`storage.old_formats`). They have no
transactional id, so a transactional batch is refused in them.

Differs from Kafka: what batches may unfold to is bounded, and so is the list of refused records
(`storage.record_checks`, `storage.validator`). Records that are null are refused with
INVALID_RECORD, and the other partitions are taken; Kafka never answers such a request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.image import INTERNAL_TOPICS
from minibroker.broker.handlers.appends.batches import (
    check_batches,
    cold_producers,
    has_transactional,
    receive_batches,
    without_forbidden,
)
from minibroker.broker.handlers.appends.failures import fail
from minibroker.broker.handlers.appends.short_way import short_way
from minibroker.broker.handlers.common.waits import when_all_done
from minibroker.broker.partitions import verification
from minibroker.broker.partitions.append_queue import fail_answer
from minibroker.broker.partitions.cold_reads import ROUNDS_MAX, warm
from minibroker.broker.partitions.partition import ACKS_ALL
from minibroker.broker.slices import run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, answer_error
from minibroker.kafka.ids import TopicPartition, may_be_same_topic
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from minibroker.kafka.records.produce_rules import (
    FIRST_VERSION_OF_V2,
    check_produce_version,
    is_nothing,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from typing import TypeAlias

    from minibroker.broker.handlers.appends.batches import ReceivedTopic, Refusals
    from minibroker.broker.handlers.appends.transactions import Verdict
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.append_queue import Flushing
    from minibroker.broker.partitions.checking import AnyBatch
    from minibroker.broker.partitions.cold_reads import ColdError
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.slices import Steps

    Unreplicated = tuple[Partition, int, PartitionProduceResponse]
    """Partition, end of what was appended, the answer to it."""
    Outcome: TypeAlias = (
        ProduceResponse | Awaitable[ProduceResponse | asyncio.Future[ProduceResponse]]
    )

__all__ = ["handle", "has_failed", "is_silent", "short_way"]

_NOTHING_REFUSED: Final[Refusals] = {}
APPENDS_MAX: Final = 64
"""Appends of one step."""
_ACKS_ALLOWED = (ACKS_ALL, 0, 1)
_ADMIN_CLIENT_ID = "__admin_client"


def handle(context: RequestContext, request: ProduceRequest) -> Steps[Outcome]:
    """Append to every partition of the request; return one result per partition, in order.

    An awaitable where a batch is checked beside the loop, where the producers of a log are loaded
    first, and where a transaction has to wait for the end of the one before it. Raises
    KafkaError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED) where transactional records come without their
    id, or with one that the client may not use.
    """
    topics = yield from receive_batches(context, request)
    if context.services.authorizer is not None:
        topics = yield from without_forbidden(context, request, topics)
    large = yield from check_batches(context, topics)
    cold = yield from cold_producers(topics)
    if large or cold:
        return _when_checked(context, request, topics, large, cold)
    return (yield from _handle_checked(context, request, topics))


async def _when_checked(
    context: RequestContext,
    request: ProduceRequest,
    topics: list[ReceivedTopic],
    large: list[AnyBatch],
    cold: list[ColdError],
) -> ProduceResponse | asyncio.Future[ProduceResponse]:
    services = context.services
    for _ in range(ROUNDS_MAX):
        if not cold:
            break
        await warm(cold)
        cold = await run_with_pauses(cold_producers(topics))
    await services.partitions.checker.check_large(large, services.clock.now_ms())
    return await _work_of(await run_with_pauses(_handle_checked(context, request, topics)))


async def _work_of(outcome: Outcome) -> ProduceResponse | asyncio.Future[ProduceResponse]:
    """Return the response, or what waits for replicas: a wait takes no place of a task."""
    return outcome if isinstance(outcome, ProduceResponse | asyncio.Future) else await outcome


def _handle_checked(
    context: RequestContext, request: ProduceRequest, topics: list[ReceivedTopic]
) -> Steps[Outcome]:
    if request.transactional_id is not None:
        from minibroker.broker.handlers.appends.transactions import (  # noqa: PLC0415  most do without
            Verdict,
            verify_batches,
        )

        verdict = yield from verify_batches(context, request.transactional_id, topics)
        if not isinstance(verdict, Verdict):
            return _when_verified(context, request, topics, verdict)
        return (yield from _append_all(context, request, topics, verdict))
    if (yield from has_transactional(topics)):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return (yield from _append_all(context, request, topics, None))


async def _when_verified(
    context: RequestContext,
    request: ProduceRequest,
    topics: list[ReceivedTopic],
    verdict: Awaitable[Verdict],
) -> ProduceResponse | asyncio.Future[ProduceResponse]:
    steps = _append_all(context, request, topics, await verdict)
    return await _work_of(await run_with_pauses(steps))


def _append_all(
    context: RequestContext,
    request: ProduceRequest,
    topics: list[ReceivedTopic],
    verdict: Verdict | None,
) -> Steps[Outcome]:
    """Append what is not refused. Behind `APPENDS_MAX` partitions it is written before others have
    the loop: the answers of others do not depend on it, and this one waits for its fsyncs and
    replicas. Each wait begins in the step of the write: later this broker may lead no more.

    `verdict`: None where the request has no transactional id.
    """
    version = context.version
    refused = _NOTHING_REFUSED if verdict is None else verdict.refused
    response = ProduceResponse()
    now_ms = context.services.clock.now_ms()
    unreplicated: list[Unreplicated] = []
    waits: list[asyncio.Future[None]] = []
    flushes: dict[Flushing, None] = {}
    count = 0
    for name, topic, batches, is_authorized in topics:
        answer = TopicProduceResponse(name=topic.name)
        if version >= 13:
            answer.topic_id = topic.topic_id
        if batches:
            response.responses.append(answer)
        for data, batch in batches:
            result = PartitionProduceResponse(index=data.index)
            answer.partition_responses.append(result)
            try:
                if name is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                if not is_authorized:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if (name, data.index) in refused:
                    raise refused[name, data.index]
                if verdict is not None:
                    verdict.check_still_open(context, TopicPartition(name, data.index))
                appended = _append(
                    context, name, topic.topic_id, batch, result, request.acks, now_ms
                )
                if appended is not None:
                    unreplicated.append(appended)
            except Exception as error:
                refusal = answer_error(error, f"appending to {name}-{data.index}")
                fail(context, response, name, result, refusal)
            count += 1
            if not count % APPENDS_MAX:
                _write_part(context, flushes)
                waits += _replica_waits(unreplicated, request.timeout_ms)
                unreplicated.clear()
                yield
    if unreplicated:
        context.services.partitions.commit()
        waits += _replica_waits(unreplicated, request.timeout_ms)
    outcome = when_all_done(waits, response) if waits else response
    return _when_flushed(flushes, outcome) if flushes else outcome


def _write_part(context: RequestContext, flushes: dict[Flushing, None]) -> None:
    """Write what is staged, and note the fsyncs that the answer has to wait for."""
    appends = context.services.partitions.appends
    appends.commit()
    flushing = appends.flushing  # whoever commits next waits for it, too
    if flushing is not None and not flushing.future.done():
        flushes[flushing] = None


async def _when_flushed(
    flushes: Iterable[Flushing], outcome: ProduceResponse | asyncio.Future[ProduceResponse]
) -> ProduceResponse | asyncio.Future[ProduceResponse]:
    for flushing in flushes:
        await asyncio.shield(flushing.future)
    return outcome


def _replica_waits(unreplicated: list[Unreplicated], timeout_ms: int) -> list[asyncio.Future[None]]:
    """Return what is done when all replicas in sync have the records, which are written now
    (acks=all). The result of a partition says so where that takes longer than `timeout_ms`, and
    where this broker does not lead it any more.

    Source: Kafka ReplicaManager.appendRecords, DelayedProduce.
    """
    waits = []
    for partition, end_offset, result in unreplicated:
        if result.error_code:
            continue
        if partition.replicas is None:  # its directory failed behind its own write
            fail_answer(result)
        elif end_offset > partition.high_watermark:
            waits.append(partition.replicas.wait(end_offset, result, timeout_ms))
    return waits


def _append(  # noqa: PLR0917  one call per partition of every request
    context: RequestContext,
    topic: str,
    topic_id: bytes,
    batch: AnyBatch | None,
    result: PartitionProduceResponse,
    acks: int,
    now_ms: int,
) -> Unreplicated | None:
    """Append one batch; return what its answer waits for besides the disk, None for nothing.

    `topic_id`: of the request, zero where it has names.
    """
    partition = context.services.partitions.get(topic, result.index)
    if not may_be_same_topic(topic_id, partition.topic_id):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"{partition} was made again")
    if batch is None:
        check_produce_version(None, None, context.version)
    else:
        check_produce_version(batch.records, batch.header, context.version)
    if acks not in _ACKS_ALLOWED:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic in INTERNAL_TOPICS and context.client_id != _ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if batch is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "records are null")
    records, header = batch.records, batch.header
    if context.version < FIRST_VERSION_OF_V2 and is_nothing(records):
        result.base_offset = -1
        result.log_start_offset = partition.log_start_offset
        return None  # as in Kafka: nothing appended, base offset -1, no error
    checked = batch.checked_for(partition)
    result.log_start_offset = partition.log_start_offset
    is_unverified = partition.unverified and header is not None and header.is_transactional
    if is_unverified:
        assert header is not None
        verification.check_sequence(partition, header.producer_id, header.base_sequence)
    appended = partition.append(records, acks, now_ms, result, header=header, checked=checked)
    if is_unverified:
        assert header is not None
        verification.on_append(partition, header.producer_id)
    result.base_offset = appended.first_offset
    result.log_append_time_ms = appended.append_time_ms
    result.log_start_offset = appended.log_start_offset
    if acks == ACKS_ALL and partition.replicas is not None:
        return partition, appended.last_offset + 1, result
    return None


def is_silent(request: ProduceRequest) -> bool:
    """Return whether the client waits for no answer (acks=0)."""
    return request.acks == 0


def has_failed(response: ProduceResponse) -> bool:
    """Return whether some partition was refused."""
    return any(
        part.error_code for topic in response.responses for part in topic.partition_responses
    )
