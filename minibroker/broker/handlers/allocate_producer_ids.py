"""AllocateProducerIds: key 67, version 0. Brokers send it to the controller.

Behaviour: gives the broker the next 1,000 producer ids. No other broker gets them, ever.
Source: KIP-730. Differs from Kafka: a metadata tree out of reach is REQUEST_TIMED_OUT, after which
the broker asks again; Kafka waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.producer_ids import take_block
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import as_answer
from minibroker.kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


async def handle(
    context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    """Return a block of ids, or the error."""
    cluster = context.services.cluster
    broker = cluster.image.brokers.get(request.broker_id)
    if not cluster.is_controller:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if broker is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != request.broker_epoch:
        return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    try:
        block = await take_block(cluster.tree, request.broker_id)
    except Exception as error:
        code, _ = as_answer(error, f"a block of producer ids for broker {request.broker_id}")
        return AllocateProducerIdsResponse(error_code=code)
    return AllocateProducerIdsResponse(
        producer_id_start=block.first, producer_id_len=block.last - block.first + 1
    )
