"""WriteTxnMarkers: key 27, versions 0-2.

Behaviour: a transaction coordinator ends a transaction in partitions that this broker leads. Admin
clients use it too, to abort a transaction that hangs (KIP-664). A marker that the followers do not
have within `request.timeout.ms` is REQUEST_TIMED_OUT, and stays in the log: it is sent again.

Versions:
- 1: flexible
- 2: transaction version of each marker (KIP-1228)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.permissions import Need
from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.broker.slices import gather, run_all, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.markers import Codes
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.write_txn_markers import WritableTxnMarker

WRITTEN_MAX: Final = 64
"""Partitions that get a marker in one step."""


def handle(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> Steps[WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]]:
    """Write each marker; one code per producer id and partition.

    An awaitable until all of them are visible, where they have to be synced or replicated first.
    Raises KafkaError(UNKNOWN_SERVER_ERROR) for a marker of no producer (Kafka fails to build it).
    """
    if not context.authorize(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True):
        Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER).check(context, request)
    codes: dict[int, Codes] = {}
    unanswered = 0
    waiting: asyncio.Future[None] | None = None

    def take(producer_id: int, marker_codes: Codes) -> None:
        nonlocal unanswered
        codes[producer_id] |= marker_codes
        unanswered -= 1
        if not unanswered and waiting is not None and not waiting.done():
            waiting.set_result(None)

    services = context.services
    after = partial(services.timers.after, services.config.request_timeout_ms)
    for marker in request.markers:
        yield
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"marker of producer {marker.producer_id}, epoch {marker.producer_epoch}",
            )
        codes.setdefault(marker.producer_id, {})
        ending = EndOfTransaction(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            marker.transaction_version,
        )
        # A partition that is named twice gets one marker, as in Kafka.
        names = dict.fromkeys((yield from gather(_partitions_of(marker))))
        rest = iter(names)
        while part := tuple(islice(rest, WRITTEN_MAX)):
            unanswered += 1
            services.transactions.markers.write(
                ending, part, partial(take, marker.producer_id), after=after
            )
            yield
    if not unanswered:
        return (yield from _response(codes))
    waiting = asyncio.get_running_loop().create_future()
    return _when_written(waiting, codes)


def _partitions_of(marker: WritableTxnMarker) -> Iterator[TopicPartition]:
    for topic in marker.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index)


async def _when_written(
    waiting: asyncio.Future[None], codes: dict[int, Codes]
) -> WriteTxnMarkersResponse:
    await waiting
    return await run_with_pauses(_response(codes))


def _response(codes: dict[int, Codes]) -> Steps[WriteTxnMarkersResponse]:
    response = WriteTxnMarkersResponse()
    for producer_id, marker_codes in codes.items():
        topics = yield from _topics(marker_codes)
        response.markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
    return response


def _topics(codes: Codes) -> Steps[list[WritableTxnMarkerTopicResult]]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for name, code in codes.items():
        topic = topics.get(name.topic)
        if topic is None:
            topic = topics[name.topic] = WritableTxnMarkerTopicResult(name=name.topic)
        topic.partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=name.partition, error_code=int(code))
        )
        yield
    return list(topics.values())


def error_response(
    request: WriteTxnMarkersRequest, _version: int, code: ErrorCode, _detail: str | None
) -> WriteTxnMarkersResponse:
    """Return one error for every partition of every marker."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=run_all(_topics(dict.fromkeys(_partitions_of(marker), code))),
            )
            for marker in request.markers
        ]
    )
