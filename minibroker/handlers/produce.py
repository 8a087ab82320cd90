"""Produce: key 0, versions 0-13.

Behaviour: each partition's records are checked, get their offsets and are staged; the connection
writes everything staged before this answer leaves. With acks=0 the answer is not sent
(`is_silent`): an error in it ends the connection, so that the producer refreshes its metadata.
Versions: 1 throttle time; 2 log append time; 3 transactional id and record batches only; 5 log
start offset; 7 zstd; 8 errors per record (KIP-467); 9 flexible; 10 current leader (KIP-951);
11 TRANSACTION_ABORTABLE, 12 implicit transaction partitions (KIP-890); 13 topic ids (KIP-516).
Versions 0-2 carry message sets of format 0 and 1 (or, as Kafka lets them, a batch of format 2); the
topic's `message.format.version` decides what becomes of them (`storage.old_formats`).
Differs from Kafka: what batches may unfold to is bounded, and so is the list of refused records
(`storage.record_checks`, `storage.validator`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.cluster.image import INTERNAL_TOPICS
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, answer_error
from minibroker.handlers.leaders import LeaderHints
from minibroker.handlers.produce_checks import look_at_batches, topic_name
from minibroker.ids import ZERO_TOPIC_ID
from minibroker.partitions import verification
from minibroker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from minibroker.records.batch import read_header
from minibroker.records.produce_rules import (
    FIRST_VERSION_OF_V2,
    InvalidRecordsError,
    NotVerifiedError,
    check_produce_version,
    is_nothing,
    is_transactional,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import RequestContext
    from minibroker.partitions.checking import Checks
    from minibroker.partitions.manager import PartitionManager
    from minibroker.partitions.partition import Partition
    from minibroker.protocol.messages.produce import PartitionProduceData

    Refusals = dict[tuple[str, int], KafkaError]
    """Topic and partition → why its transactional batch may not be appended."""

_NOTHING_REFUSED: Final[Refusals] = {}
_ACKS_ALLOWED = (-1, 0, 1)
_ADMIN_CLIENT_ID = "__admin_client"


def handle(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse]:
    """Append to every partition of the request; one result per partition, in order.

    An awaitable where a batch is checked beside the loop, and where a transaction has to wait for
    the end of the one before it. Raises KafkaError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED) where
    transactional records come without their id.
    """
    checks = look_at_batches(context, request)
    rest = checks.rest(context.services.partitions.checker, context.services.clock.now_ms())
    if rest is not None:
        return _when_checked(context, request, checks, rest)
    return _handle_checked(context, request, checks)


async def _when_checked(
    context: RequestContext, request: ProduceRequest, checks: Checks, rest: Awaitable[None]
) -> ProduceResponse:
    await rest
    outcome = _handle_checked(context, request, checks)
    return outcome if isinstance(outcome, ProduceResponse) else await outcome


def _handle_checked(
    context: RequestContext, request: ProduceRequest, checks: Checks
) -> ProduceResponse | Awaitable[ProduceResponse]:
    if context.version >= FIRST_VERSION_OF_V2:
        if request.transactional_id is not None:
            from minibroker.handlers import produce_transactions  # noqa: PLC0415  most do without

            refused = produce_transactions.verify_batches(context, request)
            if not isinstance(refused, dict):
                return _when_verified(context, request, refused, checks)
            return _append_all(context, request, refused, checks)
        if _has_transactional(request):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return _append_all(context, request, _NOTHING_REFUSED, checks)


async def _when_verified(
    context: RequestContext,
    request: ProduceRequest,
    refused: Awaitable[Refusals],
    checks: Checks,
) -> ProduceResponse:
    return _append_all(context, request, await refused, checks)


def _append_all(
    context: RequestContext, request: ProduceRequest, refused: Refusals, checks: Checks
) -> ProduceResponse:
    services = context.services
    version = context.version
    partitions = services.partitions
    response = ProduceResponse()
    now_ms = services.clock.now_ms()
    for topic in request.topic_data:
        name = topic_name(context, topic)
        answer = TopicProduceResponse(name=topic.name)
        if version >= 13:
            answer.topic_id = topic.topic_id
        if topic.partition_data:
            response.responses.append(answer)
        for data in topic.partition_data:
            result = PartitionProduceResponse(index=data.index)
            answer.partition_responses.append(result)
            try:
                if version >= 13 and not name:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                if (name, data.index) in refused:
                    raise refused[name, data.index]
                _append(context, partitions, name, data, result, request.acks, now_ms, checks)
            except Exception as error:
                refusal = answer_error(error, f"appending to {name}-{data.index}")
                _fail(context, response, name, result, refusal)
    return response


def _append(  # noqa: PLR0917  one call per partition of every request
    context: RequestContext,
    partitions: PartitionManager,
    topic: str,
    data: PartitionProduceData,
    result: PartitionProduceResponse,
    acks: int,
    now_ms: int,
    checks: Checks,
) -> None:
    partition = partitions.get(topic, data.index)
    records = data.records
    check_produce_version(records, context.version)
    if acks not in _ACKS_ALLOWED:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic in INTERNAL_TOPICS and context.client_id != _ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if records is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "records are null")
    assert isinstance(records, memoryview)
    if context.version < FIRST_VERSION_OF_V2 and is_nothing(records):
        result.base_offset = -1
        result.log_start_offset = partition.log_start_offset
        return  # as in Kafka: nothing appended, base offset -1, no error
    checked = checks.of(partition, records)
    result.log_start_offset = partition.log_start_offset
    if partition.unverified and is_transactional(records):
        header = read_header(records)
        verification.check_sequence(partition, header.producer_id, header.base_sequence)
        appended = partition.append(records, acks, now_ms, result, checked=checked)
        verification.on_append(partition, header.producer_id)
    else:
        appended = partition.append(records, acks, now_ms, result, checked=checked)
    result.base_offset = appended.first_offset
    result.log_append_time_ms = appended.append_time_ms
    result.log_start_offset = appended.log_start_offset


def _fail(
    context: RequestContext,
    response: ProduceResponse,
    topic: str,
    result: PartitionProduceResponse,
    error: KafkaError,
) -> None:
    """Kafka's answer to a refused append; record errors and a message where it gives them.

    `result.log_start_offset` is set already when the refusal came from the log itself.
    """
    result.error_code = int(error.code)
    result.base_offset = -1
    if isinstance(error, NotVerifiedError):
        result.error_message = error.detail
    elif isinstance(error, InvalidRecordsError):
        result.error_message = error.detail
        result.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    elif error.code == ErrorCode.CORRUPT_MESSAGE and result.log_start_offset < 0:
        result.error_message = error.detail  # refused before the log was looked at
    if error.code in _WITHOUT_LOG_START:
        result.log_start_offset = -1
    if context.version >= 10 and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        hints = LeaderHints(context, response.node_endpoints, (LeaderIdAndEpoch, NodeEndpoint))
        result.current_leader = hints.of(topic, result.index)


# Kafka's ReplicaManager fills the log start offset only for errors that it did not expect.
_WITHOUT_LOG_START = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )
)


def refused(context: RequestContext, partition: Partition, error: KafkaError) -> ProduceResponse:
    """The answer to a request for one partition whose append was refused."""
    response = ProduceResponse()
    result = PartitionProduceResponse(
        index=partition.index, log_start_offset=partition.log_start_offset
    )
    topic = TopicProduceResponse(name=partition.topic, partition_responses=[result])
    if context.version >= 13:
        topic.topic_id = partition.topic_id
    response.responses.append(topic)
    _fail(context, response, partition.topic, result, error)
    return response


def _has_transactional(request: ProduceRequest) -> bool:
    """Transactional records need a transactional id (KafkaApis)."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None and is_transactional(data.records):
                return True
    return False


def is_silent(request: ProduceRequest) -> bool:
    """Return whether the client waits for no answer (acks=0)."""
    return request.acks == 0


def has_failed(response: ProduceResponse) -> bool:
    """Return whether some partition was refused."""
    return any(
        part.error_code for topic in response.responses for part in topic.partition_responses
    )


def error_response(
    request: ProduceRequest, version: int, code: ErrorCode, detail: str | None
) -> ProduceResponse:
    """One error for every partition of the request."""
    response = ProduceResponse()
    for topic in request.topic_data:
        answer = TopicProduceResponse(name=topic.name)
        if version >= 13:
            answer.topic_id = topic.topic_id or ZERO_TOPIC_ID
        for data in topic.partition_data:
            answer.partition_responses.append(
                PartitionProduceResponse(
                    index=data.index, error_code=int(code), base_offset=-1, error_message=detail
                )
            )
        response.responses.append(answer)
    return response
