"""InitProducerId: key 22, versions 0-6.

Behaviour: without a transactional id, a fresh producer id with epoch 0 (behaviours P1, P2).
Versions: 2 flexible; 3 producer id and epoch for recovery (KIP-360); 4 PRODUCER_FENCED; 6 two-phase
commit (KIP-939).
Differs from Kafka: a transactional id is answered with COORDINATOR_NOT_AVAILABLE (retriable) until
transactions are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError
from minibroker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import RequestContext


def handle(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    """Hand out an id from this broker's block at once, or when the next block is there."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producer_id = context.services.cluster.next_producer_id()
    if isinstance(producer_id, int):
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return _when_refilled(producer_id)


async def _when_refilled(producer_id: Awaitable[int]) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await producer_id, producer_epoch=0)
    except CoordinationError:
        # Kafka answers so while the controller cannot hand out a block; clients retry.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=int(code), producer_epoch=-1)
